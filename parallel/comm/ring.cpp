// Reduce-scatter around a ring: fast mode only, since the sum of slice o begins at rank o+1 and
// goes round, which is another order for every slice and every N.
//
//   s = 0, 1, .., N-2:  rank r sends slice r-s-1 to rank r+1, gets slice r-s-2 from rank r-1, adds
//
// After the last step rank r holds slice r. Sent by each rank: (N-1)/N of the vector.
#include <algorithm>

#include "parallel/comm/add.hpp"
#include "parallel/comm/algorithms.hpp"

namespace weft {

namespace {

class RingReduceScatter final : public CollectiveTask {
 public:
  RingReduceScatter(Channel& channel, const ReduceScatter& what)
      : channel_(channel),
        what_(what),
        element_bytes_(bytes_of(what.precision)),
        input_(what.inputs.front()) {
    index_t longest = 0;
    for (int rank = 0; rank < channel.size(); ++rank)
      longest = std::max(longest, slice(rank).size());
    received_ = channel.stage(longest * element_bytes_);
    start_step();
  }

  bool step() override {
    while (transfers_.done(channel_)) {
      finish_step();
      if (++step_ == channel_.size() - 1) return true;
      start_step();
    }
    return false;
  }

  int waiting_for() const override { return transfers_.waiting_for(); }

 private:
  Range slice(int rank) const {
    return {what_.cuts[static_cast<std::size_t>(rank)],
            what_.cuts[static_cast<std::size_t>(rank) + 1]};
  }
  std::span<std::byte> bytes(Range r) const {
    return bytes_at(input_, r.begin * element_bytes_, r.end * element_bytes_);
  }
  // The slice that arrives in this step; the one that leaves is its right neighbour.
  int arriving() const {
    return (channel_.rank() + 2 * channel_.size() - step_ - 2) % channel_.size();
  }

  void start_step() {
    const int size = channel_.size(), rank = channel_.rank();
    const Range here = slice(arriving());
    transfers_.receive(channel_, (rank + size - 1) % size,
                       bytes_at(received_->data, 0, here.size() * element_bytes_));
    transfers_.send(channel_, (rank + 1) % size, bytes(slice((arriving() + 1) % size)));
  }

  void finish_step() {
    const Range here = slice(arriving());
    const bool is_last = step_ == channel_.size() - 2;
    void* const sum = is_last ? what_.output : bytes(here).data();
    add_values(what_.precision, here.size(), bytes(here).data(), received_->data, sum);
  }

  Channel& channel_;
  ReduceScatter what_;
  index_t element_bytes_;
  void* input_;
  int step_ = 0;
  Staging received_;
  Transfers transfers_;
};

}  // namespace

TaskPointer make_ring(Channel& channel, const ReduceScatter& what) {
  return std::make_unique<RingReduceScatter>(channel, what);
}

TaskPointer make_ring(Channel& channel, const AllReduce& what) {
  ReduceScatter scatter{what.precision,
                        what.order,
                        what.num_leaves,
                        what.count,
                        even_cuts(what.count, channel.size()),
                        what.inputs,
                        nullptr};
  const AllGather gather = gather_of_slices(what, scatter.cuts);
  scatter.output =
      static_cast<std::byte*>(what.output) + gather.cuts[static_cast<std::size_t>(channel.rank())];
  return std::make_unique<TwoTasks>(make_ring(channel, scatter),
                                    [&channel, gather] { return make_ring(channel, gather); });
}

}  // namespace weft
