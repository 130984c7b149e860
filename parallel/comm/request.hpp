// A collective under way. Must be waited for before it goes out of scope: the buffers belong to the
// collective until then. Dropping one that is not done ends the program, unless an error is on its
// way.
#pragma once

#include <memory>

namespace weft {

class Operation;  // the collective's state, private to comm

class Request {
 public:
  Request();  // done
  explicit Request(std::unique_ptr<Operation> operation);
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  // Local; moves nothing.
  bool is_done() const;
  // Local; moves everything that this rank has under way; never blocks. True once it is done.
  bool test();
  // Blocks until done: spins, then yields, then sleeps. Throws Error(peer) after the deadline,
  // naming group, collective, sequence number and the rank waited for.
  void wait();

 private:
  void require_gone() noexcept;

  std::unique_ptr<Operation> operation_;  // null once done or failed
};

}  // namespace weft
