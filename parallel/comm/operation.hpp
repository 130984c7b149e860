// One collective or message that has been started: its algorithm's state, its transfers and its
// names. What a Request owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/trace.hpp"
#include "parallel/comm/channel.hpp"
#include "parallel/comm/choose.hpp"
#include "parallel/comm/collective.hpp"
#include "parallel/comm/progress.hpp"

namespace weft {

class Operation {
 public:
  struct Group {  // of the communicator, which outlives the operation
    const std::string& name;
    const std::vector<int>& members;
    int rank;
    std::uint64_t& bytes_sent;
  };

  // Starts the collective's first messages.
  Operation(Transport& transport, std::shared_ptr<Progress> progress, Trace* trace, Group group,
            Tag tag, const Collective& collective, Algorithm algorithm);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // True where something has moved. Errors name the collective.
  bool step();
  bool is_done() const { return is_done_; }

  // For Request: the same, of everything under way, with the time traced.
  bool test();
  void wait();

  // May be dropped without a wait?
  bool may_go() const { return is_done_ || progress_->has_failed(); }
  // "collective 'a.b' (number 3 of group 'tp')", "receive 'a.b' (number 3 from rank 1 of group ..)"
  std::string describe() const;
  std::string deadline_message() const;

 private:
  // Of the group's collectives; -1: a message.
  std::int64_t number() const { return peer_ < 0 ? tag_.sequence / 2 : -1; }
  Trace::Exchange exchange() const;

  std::shared_ptr<Progress> progress_;
  Trace* trace_;
  Group group_;
  Tag tag_;
  std::string name_;
  int peer_;  // of a message, else -1
  bool is_send_;
  Activity waiting_;
  Channel channel_;
  TaskPointer task_;  // after channel_: its messages go first
  bool is_done_ = false;
  std::int64_t begin_ns_ = -1;  // where the trace records it
};

}  // namespace weft
