#include "parallel/plan/plan.hpp"

#include <algorithm>
#include <numeric>

#include "parallel/plan/plan_keys.hpp"
#include "parallel/plan/plan_rules.hpp"

namespace weft {

index_t Plan::tokens_per_sample() const {
  if (is_text_encoder() || is_gpt()) return task.tokens;
  if (!is_vit()) return 1;
  const index_t patches = sample_shape(task).side / model.patch;  // along one side
  return patches * patches;
}

index_t Plan::features_per_token() const {
  const SampleShape sample = sample_shape(task);
  return is_vit() ? sample.channels * model.patch * model.patch : sample.features();
}

index_t Plan::steps_per_epoch() const {
  const index_t padded = batch.last == LastBatch::pad ? batch.global - 1 : 0;
  return (task.train + padded) / batch.global;
}

index_t Plan::num_steps() const {
  return run.steps ? *run.steps : run.epochs.value_or(0) * steps_per_epoch();
}

bool Plan::is_checkpoint_due(index_t num_done) const {
  if (num_done == num_steps() && checkpoint.at_end) return true;
  return num_done > 0 && checkpoint.every_steps > 0 && num_done % checkpoint.every_steps == 0;
}

index_t Plan::num_checkpoints() const {
  const index_t on_the_way = checkpoint.every_steps > 0 ? num_steps() / checkpoint.every_steps : 0;
  const bool end_is_one = checkpoint.every_steps > 0 && num_steps() % checkpoint.every_steps == 0;
  return on_the_way + (checkpoint.at_end && !end_is_one ? 1 : 0);
}

index_t Plan::most_checkpoints() const {
  const bool by_time = saves_by_time();
  index_t marked = 0;  // by keep_every
  if (const index_t every = checkpoint.keep_every; every > 0) {
    const index_t apart = by_time                      ? every
                          : checkpoint.every_steps > 0 ? std::lcm(every, checkpoint.every_steps)
                                                       : num_steps() + 1;
    marked = num_steps() / apart;
  }
  const index_t kept = checkpoint.keep + 1 + marked + checkpoint.keep_best;
  return by_time ? kept : std::min(kept, num_checkpoints());
}

index_t Plan::padded_classes() const { return round_up(sample_shape(task).classes, num_pieces()); }

index_t Plan::padded_vocabulary() const {
  return round_up(sample_shape(task).vocabulary, num_pieces());
}

index_t Plan::num_token_blocks() const {
  if (is_exact()) return numerics.shards;
  return layout.sequence_parallel ? layout.tp : 1;
}

Range Plan::token_blocks_of(index_t tp_rank) const {
  if (!layout.sequence_parallel) return {0, num_token_blocks()};
  return part_of(tp_rank, layout.tp, num_token_blocks());
}

Range Plan::rows_of(index_t tp_rank) const {
  const Range blocks = token_blocks_of(tp_rank);
  const auto first_row = [&](index_t block) {
    return part_of(block, num_token_blocks(), rows_per_microbatch()).begin;
  };
  return {first_row(blocks.begin), first_row(blocks.end)};
}

Range Plan::blocks_of_stage(index_t pp_rank) const {
  if (layout.stages.empty()) return part_of(pp_rank, layout.pp, model.layers);
  const auto first = layout.stages.begin();
  const index_t begin = std::accumulate(first, first + pp_rank, index_t{0});
  return {begin, begin + first[pp_rank]};
}

index_t Plan::world_rank(index_t tp_rank, index_t dp_rank, index_t pp_rank) const {
  // Axis names have two letters, so they stand at 0, 3 and 6; the last one is the slowest.
  index_t rank = 0;
  for (const std::size_t at : {6, 3, 0}) {
    const std::string axis = layout.order.substr(at, 2);
    if (axis == "tp") rank = rank * layout.tp + tp_rank;
    if (axis == "dp") rank = rank * layout.dp + dp_rank;
    if (axis == "pp") rank = rank * layout.pp + pp_rank;
  }
  return rank;
}

namespace {

// A number for each numeric column and for whether there was a contact before, one for each
// category that the data set's description names, and one for others, of each categorical column.
index_t bank_columns(std::string_view table, bool allow_leak) {
  return (table == "bank-full" ? 60 : 75) + (allow_leak ? 1 : 0);
}

}  // namespace

SampleShape sample_shape(const TaskPlan& task) {
  if (task.dataset == "cifar10") return {.channels = 3, .side = 32, .classes = 10};
  if (task.dataset == "bank")
    return {.columns = bank_columns(task.table, task.allow_leak), .classes = 2};
  if (task.dataset == "ag_news")
    return {.tokens = task.tokens, .vocabulary = task.vocabulary, .classes = 4};
  if (task.dataset == "text")
    return {.tokens = task.tokens, .vocabulary = 256, .classes = 256, .labels = task.tokens};
  return {};
}

const std::vector<std::string>& models_for(const TaskPlan& task) {
  // Made once: the searches for advice ask again for each value that they try.
  static const std::vector<std::string> tokens = {"gpt"}, text = {"text_encoder"}, table = {"mlp"},
                                        image = {"mlp", "vit"};
  const SampleShape shape = sample_shape(task);
  if (shape.labels > 1) return tokens;
  if (shape.tokens > 0) return text;
  return shape.columns > 0 ? table : image;
}

std::vector<PlanFault> validate(const Plan& plan, std::optional<index_t> num_ranks) {
  std::vector<PlanFault> faults = check_keys(plan);
  for (PlanFault& fault : plan_rules::check_rules(plan, num_ranks, faults)) {
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace weft
