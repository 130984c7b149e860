// How the ranks of a run fail together: one message, from one rank, and the same exit code on all.
#pragma once

#include <functional>
#include <source_location>
#include <string>

#include "core/error.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

// An error that every rank knows of: rank 0 prints it, and all leave in order, without abort.
class AgreedError : public Error {
 public:
  // Not `using Error::Error`: nvcc 13.0 breaks down over its default argument.
  AgreedError(ExitCode code, const std::string& message,
              std::source_location place = std::source_location::current())
      : Error(code, message, place) {}
};

// Collective over `world`. Runs `body` on every rank; where it threw an Error on any, throws
// AgreedError on all: the first rank's, with how many others failed too.
void agree(Communicator& world, const std::string& phase, const std::function<void()>& body);

// Collective over `world`. Throws AgreedError unless `value` is the same text on every rank; `what`
// names it, `remedy` says what to change.
void require_equal(Communicator& world, const std::string& what, const std::string& value,
                   const std::string& remedy);

}  // namespace weft
