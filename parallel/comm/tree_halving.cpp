// All-reduce by the tree where N is a power of two and the ranks' nodes pair up all the way to the
// root. Vector halving, the nearest partner first:
//
//   d = 1, 2, .., N/2:  partner r ^ d; the lower of the two keeps the lower half of the segment
//                       they share, gets the partner's half of it, adds: a node of 2d ranks
//   d = N/2, .., 2, 1:  the way back: partners exchange their finished segments
//
// Textbook halving takes the farthest partner first. That adds ranks r and r + N/2, which are not
// children of one node: another tree, forbidden (EXACT section 2).
#include <algorithm>
#include <bit>
#include <utility>

#include "core/reduce_tree.hpp"
#include "parallel/comm/add.hpp"
#include "parallel/comm/algorithms.hpp"

namespace weft {

namespace {

class TreeHalving final : public CollectiveTask {
 public:
  TreeHalving(Channel& channel, const AllReduce& what)
      : channel_(channel),
        precision_(what.precision),
        element_bytes_(bytes_of(what.precision)),
        source_(static_cast<std::byte*>(what.inputs.front())),
        output_(static_cast<std::byte*>(what.output)),
        received_(channel.stage((what.count / 2 + block) * bytes_of(what.precision))) {
    segments_.push_back({0, what.count});
    start_halving();
  }

  bool step() override {
    while (transfers_.done(channel_)) {
      if (is_doubling_) {
        segments_.pop_back();
      } else {
        finish_halving();
        is_doubling_ = static_cast<int>(segments_.size()) == num_steps() + 1;
      }
      if (is_doubling_ && segments_.size() == 1) return true;
      is_doubling_ ? start_doubling() : start_halving();
    }
    return false;
  }

  int waiting_for() const override { return transfers_.waiting_for(); }

 private:
  static constexpr index_t block = 16;  // halves are cut at multiples of this

  int num_steps() const { return std::countr_zero(static_cast<unsigned>(channel_.size())); }

  int distance(std::size_t step) const {
    return 1 << step;
  }

  // The two halves of the segment shared at `step`: {this rank's, its partner's}.
  std::pair<Range, Range> halves(std::size_t step) const {
    const Range whole = segments_[step];
    const index_t middle = std::min(whole.end, whole.begin + round_up(whole.size() / 2, block));
    const Range low{whole.begin, middle}, high{middle, whole.end};
    return (channel_.rank() & distance(step)) == 0 ? std::pair{low, high} : std::pair{high, low};
  }

  std::span<std::byte> bytes(std::byte* base, Range r) const {
    return bytes_at(base, r.begin * element_bytes_, r.end * element_bytes_);
  }

  void start_halving() {
    const std::size_t step = segments_.size() - 1;
    const auto [mine, other] = halves(step);
    const int partner = channel_.rank() ^ distance(step);
    transfers_.receive(channel_, partner,
                       bytes_at(received_->data, 0, mine.size() * element_bytes_));
    transfers_.send(channel_, partner, bytes(source_, other));
  }

  void finish_halving() {
    const Range mine = halves(segments_.size() - 1).first;
    add_values(precision_, mine.size(), bytes(source_, mine).data(), received_->data,
               bytes(output_, mine).data());
    source_ = output_;
    segments_.push_back(mine);
  }

  // The segment finished so far is the back; the partner has the other half of the one before it.
  void start_doubling() {
    const std::size_t step = segments_.size() - 2;
    const auto [mine, other] = halves(step);
    const int partner = channel_.rank() ^ distance(step);
    transfers_.receive(channel_, partner, bytes(output_, other));
    transfers_.send(channel_, partner, bytes(output_, mine));
  }

  Channel& channel_;
  Precision precision_;
  index_t element_bytes_;
  std::byte* source_;  // the node so far: the input before the first addition, then the output
  std::byte* output_;
  std::vector<Range> segments_;  // elements; one more after each halving
  bool is_doubling_ = false;
  Staging received_;
  Transfers transfers_;
};

}  // namespace

bool tree_halving_fits(int num_ranks, index_t num_leaves) {
  if (num_ranks < 2 || !std::has_single_bit(static_cast<unsigned>(num_ranks))) return false;
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (!reduce_tree::is_node(leaves_of(rank, num_ranks, num_leaves), num_leaves)) return false;
  }
  // [first of rank a, last of rank b)
  const auto span = [&](int a, int b) {
    return Range{leaves_of(a, num_ranks, num_leaves).begin,
                 leaves_of(b, num_ranks, num_leaves).end};
  };
  for (int d = 1; d < num_ranks; d *= 2) {
    for (int rank = 0; rank < num_ranks; rank += 2 * d) {
      if (!reduce_tree::are_children(span(rank, rank + d - 1), span(rank + d, rank + 2 * d - 1),
                                     num_leaves)) {
        return false;
      }
    }
  }
  return true;
}

TaskPointer make_tree_halving(Channel& channel, const AllReduce& what) {
  return std::make_unique<TreeHalving>(channel, what);
}

}  // namespace weft
