// The messages of one collective: peers by their rank in the group, one tag, bytes counted. All
// that an algorithm sees of the world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/range.hpp"
#include "parallel/comm/staging.hpp"
#include "parallel/comm/transport.hpp"

namespace weft {

class Channel {
 public:
  // `members`, `transport` and `pool` must outlive the channel.
  Channel(Transport& transport, const std::vector<int>& members, int rank, Tag tag,
          StagingPool& pool)
      : transport_(transport), members_(members), rank_(rank), tag_(tag), pool_(pool) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  std::unique_ptr<Transfer> send(int peer, std::span<const std::byte> bytes) {
    bytes_sent_ += bytes.size();
    return transport_.start_send(world_rank(peer), tag_, bytes);
  }
  std::unique_ptr<Transfer> receive(int peer, std::span<std::byte> bytes) {
    return transport_.start_receive(world_rank(peer), tag_, bytes);
  }
  Staging stage(index_t num_bytes) { return pool_.take(static_cast<std::size_t>(num_bytes)); }

  // Polls. Counts what completes.
  bool done(Transfer& transfer) {
    const bool yes = transfer.done();
    num_completed_ += yes;
    return yes;
  }

  std::uint64_t bytes_sent() const { return bytes_sent_; }
  // Grows whenever something has moved: messages that are done, or parts of one.
  std::uint64_t num_moves() const { return num_completed_ + transport_.num_events(); }

 private:
  int world_rank(int peer) const { return members_[static_cast<std::size_t>(peer)]; }

  Transport& transport_;
  const std::vector<int>& members_;
  int rank_;
  Tag tag_;
  StagingPool& pool_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t num_completed_ = 0;
};

// Messages under way whose order of completion does not matter.
class Transfers {
 public:
  // Messages of zero bytes are not sent: both sides know the length.
  void send(Channel& channel, int peer, std::span<const std::byte> bytes) {
    if (!bytes.empty()) pending_.push_back({peer, channel.send(peer, bytes)});
  }
  void receive(Channel& channel, int peer, std::span<std::byte> bytes) {
    if (!bytes.empty()) pending_.push_back({peer, channel.receive(peer, bytes)});
  }

  // Polls each; true when all are done.
  bool done(Channel& channel) {
    std::erase_if(pending_, [&](const auto& entry) { return channel.done(*entry.transfer); });
    return pending_.empty();
  }
  // The peer of the oldest message that is not done; -1 where there is none.
  int waiting_for() const { return pending_.empty() ? -1 : pending_.front().peer; }

 private:
  struct Entry {
    int peer;
    std::unique_ptr<Transfer> transfer;
  };
  std::vector<Entry> pending_;
};

}  // namespace weft
