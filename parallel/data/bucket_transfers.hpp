// Buckets on their way over dp: each is launched when all of it is complete, in the one order that
// all dp ranks follow, and moves whenever somebody polls. Knows no lanes and no layers: whoever
// completes elements says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "core/parameter.hpp"
#include "core/tensor.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/data/buckets.hpp"

namespace weft {

// Of one step. A group of one has no transfers: all are 0.
struct TransferStatistics {
  index_t num_buckets = 0;
  index_t launched_early = 0;     // before backward ended
  index_t finished_early = 0;     // before anyone waited for them
  std::int64_t under_way_ns = 0;  // while at least one bucket was under way
  std::int64_t exposed_ns = 0;    // the part of it that finish() waited
  std::int64_t publish_ns = 0;    // all of publish()
  std::uint64_t bytes_sent = 0;   // over dp from the first launch to the end of finish() and in
                                  // publish(): by this rank, small messages in between included
  double hidden_share() const {
    return under_way_ns == 0
               ? 0.0
               : 1.0 - static_cast<double>(exposed_ns) / static_cast<double>(under_way_ns);
  }
};

class BucketTransfers {
 public:
  struct Sum {
    index_t num_leaves = 1;
    Order order = Order::tree;
    bool scatter = false;  // each rank gets its slices alone (ZeRO); else everyone gets all
  };

  BucketTransfers(Communicator& dp, const ParameterSet& parameters, std::vector<Bucket> buckets,
                  const Sum& sum);

  // Local. A step begins. `nodes`: flat blocks of the nodes that this rank will have, in index
  // order.
  void begin(std::vector<float*> nodes);
  // Elements `flat` of the nodes are complete: of a piece of a parameter, or of all parameters that
  // are summed by token blocks. Launches what is full and polls. Collective in so far as each rank
  // completes the same, in any order.
  void complete(Context& context, Range flat);
  // Backward has ended; for the statistics.
  void backward_done() { statistics_.launched_early = num_launched(); }
  // Collective. Waits for all; sums are in the first node. Everything was complete.
  void finish(Context& context);
  // Collective; after finish(). Each rank's slices of `flat` to all ranks.
  void publish(Context& context, float* flat);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const TransferStatistics& statistics() const { return statistics_; }

 private:
  struct Transfer {
    std::vector<HostMirror> mirrors;  // of the inputs; the first gets the sum
    Request request;                  // goes first, then the memory that it reads and writes
  };

  void count_pieces(const ParameterSet& parameters);
  void launch(const Bucket& bucket, const std::string& name);
  void poll(Context& context);
  void take_back(Context& context, Transfer& transfer);
  index_t num_launched() const { return static_cast<index_t>(under_way_.size()); }

  Communicator& dp_;
  std::vector<Bucket> buckets_;  // in order of launch
  Sum sum_;
  std::vector<std::string> names_;
  std::vector<std::size_t> by_position_;  // buckets in order of their place in the flat block
  std::vector<index_t> num_pieces_;       // of each bucket
  std::vector<index_t> missing_;          // of them, in this step
  std::vector<std::int64_t> ready_ns_;    // when the last of them was there
  std::vector<float*> nodes_;
  std::vector<Transfer> under_way_;  // launched in this step, finished or not
  std::size_t num_finished_ = 0;     // the first of them
  std::int64_t busy_since_ns_ = 0;
  std::uint64_t bytes_before_ = 0;
  TransferStatistics statistics_;
};

}  // namespace weft
