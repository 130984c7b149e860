// All-gather of slices of any length, lying at cuts[r]..cuts[r+1] of the output.
//
//   direct: everyone sends its slice to all others: one round
//   ring:   in step s rank r passes slice r-s to rank r+1 and gets slice r-s-1 from rank r-1; every
//           link carries each slice once
#include <cstring>

#include "parallel/comm/algorithms.hpp"

namespace weft {

namespace {

std::span<std::byte> slice_of(const AllGather& what, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  return bytes_at(what.output, what.cuts[r], what.cuts[r + 1]);
}

void place_own_slice(const AllGather& what, int rank) {
  const std::span<std::byte> slice = slice_of(what, rank);
  if (what.input && what.input != slice.data() && !slice.empty())
    std::memmove(slice.data(), what.input, slice.size());
}

class DirectAllGather final : public CollectiveTask {
 public:
  DirectAllGather(Channel& channel, const AllGather& what) : channel_(channel) {
    place_own_slice(what, channel.rank());
    for (int step = 1; step < channel.size(); ++step) {
      const int from = (channel.rank() + channel.size() - step) % channel.size();
      const int to = (channel.rank() + step) % channel.size();
      receives_.receive(channel, from, slice_of(what, from));
      sends_.send(channel, to, slice_of(what, channel.rank()));
    }
  }

  bool step() override {
    const bool all_here = receives_.done(channel_);
    return sends_.done(channel_) && all_here;
  }

  int waiting_for() const override {
    return receives_.waiting_for() >= 0 ? receives_.waiting_for() : sends_.waiting_for();
  }

 private:
  Channel& channel_;
  Transfers receives_;
  Transfers sends_;
};

class RingAllGather final : public CollectiveTask {
 public:
  RingAllGather(Channel& channel, const AllGather& what) : channel_(channel), what_(what) {
    place_own_slice(what, channel.rank());
    start_step();
  }

  bool step() override {
    while (step_ < channel_.size() - 1) {
      if (!receive_.done(channel_)) return false;  // the next step sends what comes here
      ++step_;
      if (step_ < channel_.size() - 1) start_step();
    }
    return sends_.done(channel_);
  }

  int waiting_for() const override {
    return receive_.waiting_for() >= 0 ? receive_.waiting_for() : sends_.waiting_for();
  }

 private:
  void start_step() {
    const int size = channel_.size(), rank = channel_.rank();
    const int passed = (rank + size - step_) % size;
    receive_.receive(channel_, (rank + size - 1) % size,
                     slice_of(what_, (passed + size - 1) % size));
    sends_.send(channel_, (rank + 1) % size, slice_of(what_, passed));
  }

  Channel& channel_;
  AllGather what_;
  int step_ = 0;
  Transfers receive_;
  Transfers sends_;
};

}  // namespace

TaskPointer make_direct(Channel& channel, const AllGather& what) {
  return std::make_unique<DirectAllGather>(channel, what);
}

TaskPointer make_ring(Channel& channel, const AllGather& what) {
  if (channel.size() == 1) return make_direct(channel, what);
  return std::make_unique<RingAllGather>(channel, what);
}

}  // namespace weft
