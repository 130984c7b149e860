// One message between two members. Unlike the parts of a collective an empty one is sent, too: only
// so does a receiver learn that the two do not agree about the length.
#include "parallel/comm/algorithms.hpp"

namespace weft {

namespace {

class MessageTask final : public CollectiveTask {
 public:
  MessageTask(Channel& channel, int peer, std::unique_ptr<Transfer> transfer)
      : channel_(channel), peer_(peer), transfer_(std::move(transfer)) {}

  bool step() override { return channel_.done(*transfer_); }
  int waiting_for() const override { return peer_; }

 private:
  Channel& channel_;
  int peer_;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace

TaskPointer make_message(Channel& channel, const Send& what) {
  const std::span bytes(static_cast<const std::byte*>(what.buffer),
                        static_cast<std::size_t>(what.bytes));
  return std::make_unique<MessageTask>(channel, what.peer, channel.send(what.peer, bytes));
}

TaskPointer make_message(Channel& channel, const Receive& what) {
  return std::make_unique<MessageTask>(
      channel, what.peer, channel.receive(what.peer, bytes_at(what.buffer, 0, what.bytes)));
}

}  // namespace weft
