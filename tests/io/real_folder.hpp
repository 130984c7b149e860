// Where a real data set lies, for tests that are skipped without it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

namespace weft::test {

// What `variable` names; none, and the words that make CTest call the program skipped, where it is
// not set. Where the data was there once, skipping is a fault: WEFT_REQUIRE_REAL_DATA says so.
inline std::optional<std::string> real_folder(const char* variable) {
  const char* const folder = std::getenv(variable);
  if (folder != nullptr && *folder != '\0') return folder;
  REQUIRE(std::getenv("WEFT_REQUIRE_REAL_DATA") == nullptr);
  std::cout << "SKIPPED: " << variable << " does not name a folder\n";
  return std::nullopt;
}

}  // namespace weft::test
