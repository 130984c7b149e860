// Broadcast along a binomial tree of ranks. With v = rank - root (mod N):
//
//   v's parent is v - d, d = lowest set bit of v;  its children are v + d/2, v + d/4, .., v + 1
//   (the root's d: the first power of two >= N)
#include "parallel/comm/algorithms.hpp"

namespace weft {

namespace {

class BinomialBroadcast final : public CollectiveTask {
 public:
  BinomialBroadcast(Channel& channel, const Broadcast& what) : channel_(channel), what_(what) {
    const int v = (channel.rank() + channel.size() - what.root) % channel.size();
    while (distance_ < channel.size() && (v & distance_) == 0) distance_ *= 2;
    if (v != 0) receive_.receive(channel, rank_of(v - distance_), buffer());
  }

  bool step() override {
    if (!has_data_) {
      if (!receive_.done(channel_)) return false;
      has_data_ = true;
      const int v = (channel_.rank() + channel_.size() - what_.root) % channel_.size();
      for (int d = distance_ / 2; d >= 1; d /= 2) {  // the widest subtree first: it takes longest
        if (v + d < channel_.size()) sends_.send(channel_, rank_of(v + d), buffer());
      }
    }
    return sends_.done(channel_);
  }

  int waiting_for() const override {
    return has_data_ ? sends_.waiting_for() : receive_.waiting_for();
  }

 private:
  std::span<std::byte> buffer() const { return bytes_at(what_.buffer, 0, what_.bytes); }
  int rank_of(int v) const { return (v + what_.root) % channel_.size(); }

  Channel& channel_;
  Broadcast what_;
  int distance_ = 1;  // to the parent; the root's: the first power of two >= size
  bool has_data_ = false;
  Transfers receive_;
  Transfers sends_;
};

}  // namespace

TaskPointer make_binomial(Channel& channel, const Broadcast& what) {
  return std::make_unique<BinomialBroadcast>(channel, what);
}

}  // namespace weft
