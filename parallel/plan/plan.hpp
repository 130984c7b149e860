// Everything that decides a run's result and its layout, validated once, before any device is
// touched. A record: it computes nothing but the arithmetic of its own numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "parallel/plan/time_span.hpp"

namespace weft {

enum class NumericsMode { exact, fast };
enum class LastBatch { drop, pad };

// A quality of the model whose time is to be known. The result does not depend on it.
struct TargetPlan {
  std::string metric = "none";  // none, accuracy, loss, macro_f1; of two classes roc_auc, pr_auc
  std::string split = "validation";
  std::optional<double> at_least;  // of a metric that is better when it is larger
  std::optional<double> at_most;   // of one that is better when it is smaller: loss
  friend bool operator==(const TargetPlan&, const TargetPlan&) = default;
  bool is_set() const { return metric != "none"; }
  bool smaller_is_better() const { return metric == "loss"; }
};

// What readers of a plan are told, in the plan's author's words.
struct TaskText {
  std::string source;    // of the data: who made it, when, terms
  std::string moment;    // at which a prediction is made
  std::string features;  // what is known then
  std::string label;     // what is predicted
  friend bool operator==(const TaskText&, const TaskText&) = default;
};

struct TaskPlan {
  std::string dataset = "cifar10";
  std::string path;  // empty: --data or WEFT_DATA
  index_t train = 45000;
  index_t validation = 5000;
  index_t test = 0;                   // where the data set has no test part of its own
  std::string split_kind = "random";  // bank: or "time", "group"
  std::string split_by;               // bank, group: the column whose values stay together
  std::uint64_t split_seed = 7;
  bool augment = true;  // cifar10

  std::string table = "bank-additional-full";  // bank: or "bank-full"
  bool allow_leak = false;                     // bank: `duration` is a feature, too
  std::string class_weights = "none";          // bank: or "balanced"
  double rare_share =
      0.0;  // bank: of an epoch's samples, how many are drawn from class 1; 0: as is

  index_t tokens = 128;        // ag_news, text: of a sample
  index_t vocabulary = 20000;  // ag_news: words, with what stands for none and for others
  // ag_news: lengths that a batch can have, rising to `tokens`; empty: all have `tokens`
  std::vector<index_t> length_buckets;
  std::string faulty_rows = "refuse";  // bank, ag_news: rows that break the form; or "skip"
  TargetPlan target;
  TargetPlan accept;  // what the model is to reach in the end; a range where both bounds are given
  TaskText text;
  friend bool operator==(const TaskPlan&, const TaskPlan&) = default;
  // Files of which faulty rows are left out; else the first one is refused.
  bool skips_faulty_rows() const { return faulty_rows == "skip"; }
};

struct ModelPlan {
  std::string kind = "mlp";  // mlp, vit, text_encoder, gpt
  index_t layers = 0;        // blocks
  index_t hidden = 0;
  index_t heads = 0;  // of a transformer; 0: not given
  index_t patch = 4;  // vit: pixels of a square patch's side
  index_t mlp_ratio = 4;
  double dropout = 0.0;
  bool tied = true;  // gpt: the head's weight is the embedding's
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

  // Numbers of state that it keeps for each parameter.
  index_t num_moments() const { return kind == "adamw" ? 2 : momentum > 0 ? 1 : 0; }
};

struct RunPlan {
  std::optional<index_t> steps;  // one of the two
  std::optional<index_t> epochs;
  // Of one process, from its start; 0: none. Then it saves and ends, to be started again. The
  // result does not depend on it.
  TimeSpan time_limit = {};
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
  index_t pp = 1;
  index_t zero = 0;               // 1: each dp rank keeps a slice of the optimizer's state
  std::string schedule = "1f1b";  // of the pipeline: gpipe, 1f1b
  bool sequence_parallel = false;
  std::vector<index_t> stages;   // blocks of each stage; empty: even
  bool measures_stages = false;  // even at first, then by measured times
  index_t threads = 1;
  std::string order = "tp,dp,pp";  // fastest first
  friend bool operator==(const LayoutPlan&, const LayoutPlan&) = default;
};

struct CommPlan {
  std::string transport = "auto";           // auto, ucx, mpi, local
  index_t bucket_bytes = index_t{4} << 20;  // of gradients, sent while earlier layers compute
  double timeout_s = 600.0;                 // longest wait for a peer
  friend bool operator==(const CommPlan&, const CommPlan&) = default;
};

// When the state is saved, and how much of it stays. The result does not depend on it.
struct CheckpointPlan {
  index_t every_steps = 0;  // 0: none by number
  TimeSpan every = {};      // since the one before, by rank 0's clock; 0: none by time
  double overhead = 0.0;    // as often as steps wait this share of the time for saving; 0: none
  index_t keep = 2;         // newest ones that stay
  index_t keep_every = 0;   // and those of every so many steps; 0: none
  index_t keep_best = 0;    // and so many whose evaluation was best
  bool at_end = true;       // one after the last step
  bool read_back = true;    // read and verify a new one before an older one is deleted
  bool async = false;       // steps go on while a copy of the state is written
  friend bool operator==(const CheckpointPlan&, const CheckpointPlan&) = default;
};

// What is looked at while a run goes on. It decides whether a run ends, not what it computes.
struct IntegrityPlan {
  index_t replicas_every_steps = 100;  // copies compared, also before each checkpoint; 0: never
  std::string on_nonfinite = "stop";   // a step whose loss or gradient is not finite: or "skip" it
  index_t max_skips = 10;              // in a row, before the run stops all the same
  friend bool operator==(const IntegrityPlan&, const IntegrityPlan&) = default;
  bool skips() const { return on_nonfinite == "skip"; }
};

// The machines that the plan is made for. Nothing is done with it but said and compared.
struct ResourcesPlan {
  index_t nodes = 0;             // 0: not said
  index_t devices_per_node = 0;  // a rank needs one
  std::string device;            // what they are
  friend bool operator==(const ResourcesPlan&, const ResourcesPlan&) = default;
};

// Layouts to compare, as `weft layouts --grid` reads them.
struct StudyPlan {
  std::string baseline;  // what the others are compared with
  std::string candidates;
  friend bool operator==(const StudyPlan&, const StudyPlan&) = default;
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
  CheckpointPlan checkpoint;
  IntegrityPlan integrity;
  ResourcesPlan resources;
  StudyPlan study;
  friend bool operator==(const Plan&, const Plan&) = default;

  index_t num_ranks() const { return layout.tp * layout.dp * layout.pp; }
  bool is_exact() const { return numerics.mode == NumericsMode::exact; }
  bool is_vit() const { return model.kind == "vit"; }
  bool is_text_encoder() const { return model.kind == "text_encoder"; }
  bool is_gpt() const { return model.kind == "gpt"; }
  // Blocks with attention, in which heads are cut over tp.
  bool is_transformer() const { return is_vit() || is_text_encoder() || is_gpt(); }
  // One table, with which the model begins as embedding and ends as head.
  bool ties_embedding() const { return is_gpt() && model.tied; }
  index_t feed_forward() const { return model.hidden * model.mlp_ratio; }
  // Rows of the residual stream that one sample has, and one microbatch.
  index_t tokens_per_sample() const;
  index_t rows_per_microbatch() const { return batch.micro * tokens_per_sample(); }
  // Input features of one such row: all of an image or a table's row, or those of a patch; tokens
  // have none.
  index_t features_per_token() const;
  // Pieces of every tensor-parallel dim, and lanes: of the plan in exact mode; in fast mode one per
  // rank, so that each rank makes one partial and nothing is folded by the tree's rules.
  index_t num_pieces() const { return is_exact() ? numerics.shards : layout.tp; }
  index_t num_lanes() const { return is_exact() ? numerics.lanes : layout.dp; }
  // Classes with pads, such that each piece of the head holds at least one and all hold as many.
  index_t padded_classes() const;
  // The same of the rows of an embedding.
  index_t padded_vocabulary() const;
  // Parts in which the rows of a microbatch are summed and, with sequence parallel, cut over tp.
  index_t num_token_blocks() const;
  index_t microbatches_per_lane() const { return batch.global / (batch.micro * num_lanes()); }
  // Optimizer steps of one pass over the training split: whole global batches (drop), or all
  // samples (pad).
  index_t steps_per_epoch() const;
  // Optimizer steps of the whole run.
  index_t num_steps() const;
  // Whether a checkpoint is due once `num_done` steps are done, and how many a whole run writes.
  bool is_checkpoint_due(index_t num_done) const;
  index_t num_checkpoints() const;
  // At most so many lie on the disk at once: a new one is whole before an older one goes.
  index_t most_checkpoints() const;
  // Steps from one evaluation to the next; 0: only at the end.
  index_t steps_per_evaluation() const { return eval.every_epochs * steps_per_epoch(); }
  // Whether checkpoints on the way are written from copies of the state, so that steps go on.
  bool stages_checkpoints() const { return checkpoint.async && saves_on_the_way(); }
  // Some by the clock, so that no one knows how many.
  bool saves_by_time() const { return checkpoint.every.seconds > 0 || checkpoint.overhead > 0.0; }
  bool saves_on_the_way() const { return checkpoint.every_steps > 0 || saves_by_time(); }

  // What a rank of the grid owns, by the range rule.
  Range pieces_of(index_t tp_rank) const { return part_of(tp_rank, layout.tp, num_pieces()); }
  Range lanes_of(index_t dp_rank) const { return part_of(dp_rank, layout.dp, num_lanes()); }
  index_t microbatches_of(index_t dp_rank) const {
    return lanes_of(dp_rank).size() * microbatches_per_lane();
  }
  // The token blocks that a tp rank sums, and the rows of a microbatch that it works on between
  // crossings: its own with sequence parallel, else all.
  Range token_blocks_of(index_t tp_rank) const;
  Range rows_of(index_t tp_rank) const;
  // The blocks of the model on a pipeline stage. The first stage also has what comes before the
  // blocks, the last one what comes after them and the loss.
  Range blocks_of_stage(index_t pp_rank) const;
  // The rank at a place of the grid, as `layout.order` lays it out.
  index_t world_rank(index_t tp_rank, index_t dp_rank, index_t pp_rank) const;
};

// What one sample of a data set looks like to a model: a square image, a row of a table, or a text.
struct SampleShape {
  index_t channels = 0;
  index_t side = 0;        // pixels
  index_t columns = 0;     // numbers that a table's row becomes
  index_t tokens = 0;      // of a text, pads included
  index_t vocabulary = 0;  // ids of tokens are below it
  index_t classes = 0;
  index_t labels = 1;  // of a sample: its class, or one for each token
  index_t features() const { return columns + channels * side * side; }
};
SampleShape sample_shape(const TaskPlan& task);
// Kinds of models that take such samples.
const std::vector<std::string>& models_for(const TaskPlan& task);

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
// narrow pieces, long pipeline bubbles, a warm-up that outlasts the run. For a plan without faults.
std::vector<PlanFault> warnings(const Plan& plan);

}  // namespace weft
