// Everything that decides a run's result and its layout, validated once, before any device is
// touched. A record: it computes nothing but the arithmetic of its own numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

enum class NumericsMode { exact, fast };
enum class LastBatch { drop, pad };

struct TaskPlan {
  std::string dataset = "cifar10";
  std::string path;  // empty: --data or WEFT_DATA
  index_t train = 45000;
  index_t validation = 5000;
  std::uint64_t split_seed = 7;
  bool augment = true;
  friend bool operator==(const TaskPlan&, const TaskPlan&) = default;
};

struct ModelPlan {
  std::string kind = "mlp";
  index_t layers = 0;
  index_t hidden = 0;
  index_t mlp_ratio = 4;
  double dropout = 0.0;
  friend bool operator==(const ModelPlan&, const ModelPlan&) = default;
};

struct BatchPlan {
  index_t global = 0;
  index_t micro = 0;
  LastBatch last = LastBatch::drop;
  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;
};

struct NumericsPlan {
  NumericsMode mode = NumericsMode::exact;
  index_t shards = 4;
  index_t lanes = 4;
  std::string dtype = "f32";
  std::uint64_t seed = 1;
  friend bool operator==(const NumericsPlan&, const NumericsPlan&) = default;
};

struct SchedulePlan {
  std::string kind = "constant";  // constant, cosine
  index_t warmup_steps = 0;
  double final_fraction = 0.0;  // of lr, where the cosine ends
  friend bool operator==(const SchedulePlan&, const SchedulePlan&) = default;
};

struct OptimizerPlan {
  std::string kind = "adamw";  // sgd, adamw
  double lr = 0.0;
  double weight_decay = 0.0;
  double clip_norm = 0.0;  // 0: off
  double momentum = 0.0;   // sgd
  double beta1 = 0.9;      // adamw
  double beta2 = 0.999;
  double eps = 1e-8;
  SchedulePlan schedule;
  friend bool operator==(const OptimizerPlan&, const OptimizerPlan&) = default;
};

struct RunPlan {
  std::optional<index_t> steps;  // one of the two
  std::optional<index_t> epochs;
  friend bool operator==(const RunPlan&, const RunPlan&) = default;
};

struct EvalPlan {
  index_t every_epochs = 1;  // 0: only at the end
  friend bool operator==(const EvalPlan&, const EvalPlan&) = default;
};

// In exact mode nothing in here changes the result.
struct LayoutPlan {
  index_t tp = 1;
  index_t dp = 1;
  index_t threads = 1;
  std::string order = "tp,dp";  // fastest first
  friend bool operator==(const LayoutPlan&, const LayoutPlan&) = default;
};

struct CommPlan {
  std::string transport = "auto";  // auto, mpi, local
  friend bool operator==(const CommPlan&, const CommPlan&) = default;
};

struct Plan {
  std::string name;  // of the file, without its extension, unless the file says otherwise
  TaskPlan task;
  ModelPlan model;
  BatchPlan batch;
  NumericsPlan numerics;
  OptimizerPlan optimizer;
  RunPlan run;
  EvalPlan eval;
  LayoutPlan layout;
  CommPlan comm;
  friend bool operator==(const Plan&, const Plan&) = default;

  index_t num_ranks() const { return layout.tp * layout.dp; }
  index_t feed_forward() const { return model.hidden * model.mlp_ratio; }
  // Pieces of every tensor-parallel dim, and lanes: of the plan in exact mode; in fast mode one per
  // rank, so that each rank makes one partial and nothing is folded by the tree's rules.
  index_t num_pieces() const {
    return numerics.mode == NumericsMode::exact ? numerics.shards : layout.tp;
  }
  index_t num_lanes() const {
    return numerics.mode == NumericsMode::exact ? numerics.lanes : layout.dp;
  }
  index_t microbatches_per_lane() const { return batch.global / (batch.micro * num_lanes()); }
  // Optimizer steps of one pass over the training split: whole global batches (drop), or all
  // samples (pad).
  index_t steps_per_epoch() const;
  // Optimizer steps of the whole run.
  index_t num_steps() const;

  // What a rank of the grid owns, by the range rule.
  Range pieces_of(index_t tp_rank) const { return part_of(tp_rank, layout.tp, num_pieces()); }
  Range lanes_of(index_t dp_rank) const { return part_of(dp_rank, layout.dp, num_lanes()); }
  // The rank at a place of the grid, as `layout.order` lays it out.
  index_t world_rank(index_t tp_rank, index_t dp_rank) const;
};

// What one sample of a data set looks like to a model.
struct SampleShape {
  index_t features = 0;
  index_t classes = 0;
};
SampleShape sample_shape(const TaskPlan& task);

// A change that would make a plan legal. `value` is TOML, so "KEY=VALUE" is an argument of --set.
struct PlanChange {
  std::string key;
  std::string value;
};
using PlanFix = std::vector<PlanChange>;  // to be made together

// One fault of a plan: the key, and a sentence that says what was expected, what was found and the
// nearest legal values.
struct PlanFault {
  std::string key;
  std::string message;
  std::vector<PlanFix> fixes = {};         // the same nearest values for programs; one is enough
  std::vector<std::string> involved = {};  // every key that the broken rule looks at
};

// Every fault of the plan at once. `num_ranks`: ranks started, if they are to match the layout.
std::vector<PlanFault> validate(const Plan& plan, std::optional<index_t> num_ranks);

// What is legal but costs time or surprises: imbalance, trees that move more bytes than a ring,
// narrow pieces, a warm-up that outlasts the run. For a plan without faults.
std::vector<PlanFault> warnings(const Plan& plan);

}  // namespace weft
