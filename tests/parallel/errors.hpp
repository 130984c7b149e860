// What tests of errors ask of them.
#pragma once

#include <stdexcept>
#include <string>

#include "core/error.hpp"

namespace weft {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The error that body throws.
template <class Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("nothing was thrown");
}

}  // namespace weft
