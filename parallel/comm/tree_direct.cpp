// Reduce-scatter by the tree, any number of ranks and leaves. With slice o = elements of owner o:
//
//   rank r: P_r nodes  --slice o of all P_r, one message-->  owner o: nodes of r = 0, 1, .., N-1
//                                                            pushed in this order, root = slice o
//
// Sent by rank r: P_r * (N-1)/N of the vector. A message that comes early waits for its turn.
#include <cstring>

#include "core/reduce_tree.hpp"
#include "parallel/comm/add.hpp"
#include "parallel/comm/algorithms.hpp"
#include "parallel/comm/tree_fold.hpp"

namespace weft {

namespace {

class TreeDirect final : public CollectiveTask {
 public:
  TreeDirect(Channel& channel, const ReduceScatter& what)
      : channel_(channel),
        num_leaves_(what.num_leaves),
        element_bytes_(bytes_of(what.precision)),
        slice_bytes_(slice(what, channel.rank()).size()),
        fold_(what.precision, what.num_leaves, slice_bytes_ / element_bytes_,
              static_cast<std::byte*>(what.output)),
        arrived_(static_cast<std::size_t>(channel.size())) {
    if (slice_bytes_ > 0) start_receives();
    for (int step = 1; step < channel.size(); ++step) {
      // Each rank begins with another owner, so that no owner is stormed.
      start_send(what, (channel.rank() + step) % channel.size());
    }
    const Range mine = slice(what, channel.rank());
    for (void* input : what.inputs)
      own_nodes_.push_back(static_cast<std::byte*>(input) + mine.begin);
    if (slice_bytes_ == 0) next_rank_ = channel.size();  // nothing to own
  }

  bool step() override {
    while (next_rank_ < channel_.size() && push_nodes_of(next_rank_)) {
      if (++next_rank_ == channel_.size()) fold_.finish();
    }
    return sends_.done(channel_) && next_rank_ == channel_.size();
  }

  int waiting_for() const override {
    return next_rank_ < channel_.size() ? next_rank_ : sends_.waiting_for();
  }

 private:
  struct Arrival {
    Staging nodes;  // outlives the transfer into it
    std::unique_ptr<Transfer> transfer;
  };

  // Bytes of the vector that `owner` finishes.
  Range slice(const ReduceScatter& what, int owner) const {
    const auto o = static_cast<std::size_t>(owner);
    return {what.cuts[o] * element_bytes_, what.cuts[o + 1] * element_bytes_};
  }

  std::vector<Range> nodes_of(int rank) const {
    return reduce_tree::maximal_nodes(leaves_of(rank, channel_.size(), num_leaves_), num_leaves_);
  }

  void start_receives() {
    for (int rank = 0; rank < channel_.size(); ++rank) {
      const auto num_bytes = static_cast<index_t>(nodes_of(rank).size()) * slice_bytes_;
      if (rank == channel_.rank() || num_bytes == 0) continue;
      Arrival& arrival = arrived_[static_cast<std::size_t>(rank)];
      arrival.nodes = channel_.stage(num_bytes);
      arrival.transfer = channel_.receive(rank, bytes_at(arrival.nodes->data, 0, num_bytes));
    }
  }

  void start_send(const ReduceScatter& what, int owner) {
    const Range part = slice(what, owner);
    const std::vector<void*>& nodes = what.inputs;
    if (nodes.size() == 1) {  // no copy where one buffer holds it all
      sends_.send(channel_, owner, bytes_at(nodes[0], part.begin, part.end));
      return;
    }
    if (nodes.empty() || part.empty()) return;
    const index_t num_bytes = static_cast<index_t>(nodes.size()) * part.size();
    packed_.push_back(channel_.stage(num_bytes));
    std::byte* to = packed_.back()->data;
    for (void* node : nodes) {
      std::memcpy(to, static_cast<std::byte*>(node) + part.begin,
                  static_cast<std::size_t>(part.size()));
      to += part.size();
    }
    sends_.send(channel_, owner, bytes_at(packed_.back()->data, 0, num_bytes));
  }

  // False where the nodes of `rank` have not arrived.
  bool push_nodes_of(int rank) {
    Arrival& arrival = arrived_[static_cast<std::size_t>(rank)];
    if (arrival.transfer && !channel_.done(*arrival.transfer)) return false;
    arrival.transfer.reset();
    index_t i = 0;
    for (const Range node : nodes_of(rank)) {
      const bool is_own = rank == channel_.rank();
      fold_.push(node, is_own ? own_nodes_[static_cast<std::size_t>(i)]
                              : arrival.nodes->data + i * slice_bytes_);
      ++i;
    }
    return true;
  }

  Channel& channel_;
  index_t num_leaves_;
  index_t element_bytes_;
  index_t slice_bytes_;  // of the slice that this rank owns
  TreeFold fold_;
  std::vector<std::byte*> own_nodes_;
  std::vector<Arrival> arrived_;  // by rank
  std::vector<Staging> packed_;
  Transfers sends_;
  int next_rank_ = 0;  // whose nodes are pushed next
};

}  // namespace

TaskPointer make_tree_direct(Channel& channel, const ReduceScatter& what) {
  return std::make_unique<TreeDirect>(channel, what);
}

TaskPointer make_tree_direct(Channel& channel, const AllReduce& what) {
  ReduceScatter scatter{what.precision,
                        what.order,
                        what.num_leaves,
                        what.count,
                        even_cuts(what.count, channel.size()),
                        what.inputs,
                        nullptr};
  const AllGather gather = gather_of_slices(what, scatter.cuts);
  // The owner finishes its slice where the gather expects it.
  scatter.output =
      static_cast<std::byte*>(what.output) + gather.cuts[static_cast<std::size_t>(channel.rank())];
  return std::make_unique<TwoTasks>(make_tree_direct(channel, scatter), [&channel, gather] {
    return make_all_gather(channel, gather);
  });
}

}  // namespace weft
