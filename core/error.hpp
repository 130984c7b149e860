// One exception type for everything a user or a peer can cause, with the program's exit code.
// Our own broken invariants are `assert`s, not Errors.
#pragma once

#include <exception>
#include <source_location>
#include <stdexcept>
#include <string>

namespace weft {

// The program's exit codes (README, "Exit codes").
enum class ExitCode : int {
  done = 0,
  failed = 1,   // something that no other code names
  usage = 2,    // bad command line or plan
  stopped = 3,  // stopped on purpose: requeue me
  peer = 4,     // a peer died, or a collective timed out
  data = 5,     // data or checkpoint missing, truncated or altered
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message,
        std::source_location place = std::source_location::current());

  ExitCode code() const { return code_; }
  // "file.cpp:123", for logs; the message itself is for the user.
  const std::string& place() const { return place_; }

 private:
  ExitCode code_;
  std::string place_;
};

// Throws Error(code, message) unless `condition` holds. The message says what was expected, what
// was found and what to change.
inline void require(bool condition, ExitCode code, const std::string& message,
                    std::source_location place = std::source_location::current()) {
  if (!condition) [[unlikely]]
    throw Error(code, message, place);
}

// What `body` threw, to be handed to another thread; null: nothing. Not from inside the handler,
// since the handler's own reference would outlive the hand-over, and the exception could be
// destroyed here while it is read there, ordered by nothing but the count in a library that
// ThreadSanitizer cannot see into.
template <typename Body>
std::exception_ptr exception_of(Body body) {
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace weft
