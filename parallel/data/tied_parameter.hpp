// A parameter with two uses: the first pipeline stage's, who owns its state, and the last stage's,
// who has a copy of its values; one stage may be both (EXACT 3.11). What GradSync does for it in a
// step beside the stage's own parameters:
//
//                     first stage                            last stage
//   lanes             gradient of its use, by GradSync       gradient of its use, here
//   finish            sum over lanes and dp, by GradSync     sum over lanes and dp, here
//                     g = g of first + g of last, once  <--  sends its sum
//   update, publish   new values                        -->  takes them
//
// Messages go between ranks of one tp and dp, whose pieces are alike. Stages between do nothing.
// Norm, hash, optimizer, checkpoint know nothing of copies.
#pragma once

#include <cstdint>
#include <string>

#include "core/context.hpp"
#include "core/parameter.hpp"
#include "core/reduce_tree.hpp"
#include "core/tensor.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

class TiedParameter {
 public:
  struct Options {
    std::string name;
    index_t num_lanes = 1;
    Order order = Order::tree;                 // of the sum over dp
    index_t message_bytes = index_t{4} << 20;  // the most that goes to another stage at once
  };
  // Of a step; nothing of it is hidden behind the computation.
  struct Statistics {
    std::int64_t reduce_ns = 0;      // the sum over dp; 0 in a group of one
    std::uint64_t reduce_bytes = 0;  // that this rank has sent in it
    std::int64_t publish_ns = 0;
  };

  // Local; after parameters.allocate(). On the last stage `copies` holds the parameter `name` and
  // nothing else, cut as the first stage's in `parameters`, and gets its memory here: none of its
  // own where the stage is the first, too. All must outlive it.
  TiedParameter(Context& context, const ParameterSet& parameters, ParameterSet& copies,
                Communicator& dp, Communicator& pp, const Options& options);

  // Null on a stage without that use.
  const Parameter* original() const { return original_; }
  const Parameter* copy() const { return copy_; }

  // Local. As GradSync's, of the copy's gradient.
  void begin_lane(Context& context);
  void end_lane(Context& context, index_t lane);
  // Collective over dp, then messages over pp. The original's gradient is bound to its sum over
  // lanes and dp, as far as this rank owns it; afterwards it is that of both uses.
  void finish(Context& context);
  // Messages over pp: the copy gets the original's values. After an update, and wherever else the
  // values have changed.
  void publish(Context& context);
  // Local.
  void release() { nodes_.clear(); }

  const Statistics& statistics() const { return statistics_; }

 private:
  bool is_one_stage() const { return original_ != nullptr && copy_ != nullptr; }
  Tensor sum_over_dp(Context& context);
  void send(Context& context, const char* name, int peer, float* values);
  void add_received(Context& context, float* sum);
  void receive_values(Context& context);

  Communicator& dp_;
  Communicator& pp_;
  Options options_;
  const Parameter* original_ = nullptr;
  const Parameter* copy_ = nullptr;
  ParameterSet& copies_;
  Tensor lane_gradient_;
  reduce_tree::Stack<Tensor> nodes_;
  Statistics statistics_;
};

}  // namespace weft
