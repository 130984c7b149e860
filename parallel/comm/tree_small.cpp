// All-reduce by the tree for short vectors: one round instead of two.
//
//   every rank: sends its P nodes, whole, to all others; then pushes all nodes of ranks 0, 1, ..,
//   N-1
//
// Sent by rank r: (N-1) * P_r vectors.
#include <cstring>

#include "core/reduce_tree.hpp"
#include "parallel/comm/add.hpp"
#include "parallel/comm/algorithms.hpp"
#include "parallel/comm/tree_fold.hpp"

namespace weft {

namespace {

class TreeSmall final : public CollectiveTask {
 public:
  TreeSmall(Channel& channel, const AllReduce& what)
      : channel_(channel),
        num_leaves_(what.num_leaves),
        vector_bytes_(what.count * bytes_of(what.precision)),
        fold_(what.precision, what.num_leaves, what.count, static_cast<std::byte*>(what.output)) {
    for (int rank = 0; rank < channel.size(); ++rank) {
      const auto num_nodes = static_cast<index_t>(nodes_of(rank).size());
      first_byte_.push_back(first_byte_.empty() ? 0 : end_byte_.back());
      end_byte_.push_back(first_byte_.back() + num_nodes * vector_bytes_);
    }
    all_nodes_ = channel.stage(end_byte_.back());
    // The own nodes too are copied: they are sent while the fold writes into the nodes it is given.
    sent_ = channel.stage(bytes_of_rank(channel.rank()).size());
    index_t position = 0;
    for (const void* node : what.inputs) {
      if (vector_bytes_ == 0) break;
      std::memcpy(bytes_of_rank(channel.rank()).data() + position, node,
                  static_cast<std::size_t>(vector_bytes_));
      std::memcpy(sent_->data + position, node, static_cast<std::size_t>(vector_bytes_));
      position += vector_bytes_;
    }
    for (int step = 1; step < channel.size(); ++step) {
      const int from = (channel.rank() + channel.size() - step) % channel.size();
      const int to = (channel.rank() + step) % channel.size();
      receives_.receive(channel, from, bytes_of_rank(from));
      sends_.send(channel, to, bytes_at(sent_->data, 0, position));
    }
  }

  bool step() override {
    if (!is_folded_) {
      if (!receives_.done(channel_)) return false;
      fold();
      is_folded_ = true;
    }
    return sends_.done(channel_);
  }

  int waiting_for() const override {
    return is_folded_ ? sends_.waiting_for() : receives_.waiting_for();
  }

 private:
  std::vector<Range> nodes_of(int rank) const {
    return reduce_tree::maximal_nodes(leaves_of(rank, channel_.size(), num_leaves_), num_leaves_);
  }

  std::span<std::byte> bytes_of_rank(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return bytes_at(all_nodes_->data, first_byte_[r], end_byte_[r]);
  }

  void fold() {
    for (int rank = 0; rank < channel_.size(); ++rank) {
      std::byte* data = bytes_of_rank(rank).data();
      for (const Range node : nodes_of(rank)) {
        fold_.push(node, data);
        data += vector_bytes_;
      }
    }
    fold_.finish();
  }

  Channel& channel_;
  index_t num_leaves_;
  index_t vector_bytes_;
  TreeFold fold_;
  std::vector<index_t> first_byte_, end_byte_;  // of each rank's nodes in all_nodes_
  Staging all_nodes_;
  Staging sent_;
  Transfers receives_;
  Transfers sends_;
  bool is_folded_ = false;
};

}  // namespace

TaskPointer make_tree_small(Channel& channel, const AllReduce& what) {
  return std::make_unique<TreeSmall>(channel, what);
}

}  // namespace weft
