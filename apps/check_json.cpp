// The report of `weft check` as one JSON object.
#include <algorithm>

#include "apps/check_report.hpp"
#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json extremes_json(const Extremes<T>& extremes) {
  return {{"min", extremes.min}, {"max", extremes.max}};
}

// Groups are null where the grid is too large to list.
Json axis_json(const AxisReport& axis) {
  index_t count = 0;
  for (const index_t share : axis.shares) count += share;
  Json json = {{"ranks", axis.shares.size()},
               {"items", count},
               {"kind", axis.items},
               {"shares", axis.shares},
               {"imbalance", imbalance(axis.shares)},
               {"groups", nullptr}};
  if (!axis.groups.empty()) json["groups"] = axis.groups;
  return json;
}

Json tree_axis_json(const AxisReport& axis, const TreeFactor& tree) {
  Json json = axis_json(axis);
  json["tree_factor"] = tree.nodes;
  json["better_items"] = tree.better;
  return json;
}

Json model_json(const Plan& plan) {
  Json json = {{"kind", plan.model.kind},
               {"layers", plan.model.layers},
               {"hidden", plan.model.hidden},
               {"feed_forward", plan.feed_forward()},
               {"tokens_per_sample", plan.tokens_per_sample()}};
  if (plan.is_transformer()) json["heads"] = plan.model.heads;
  if (!plan.task.length_buckets.empty()) json["length_buckets"] = plan.task.length_buckets;
  if (plan.is_vit()) json["patch"] = plan.model.patch;
  if (const index_t words = sample_shape(plan.task).vocabulary; words > 0)
    json["vocabulary"] = words;
  return json;
}

Json pipeline_json(const CheckReport& report) {
  Json stages = Json::array();
  for (const StageReport& stage : report.stages) {
    stages.push_back({{"first_block", stage.blocks.begin},
                      {"blocks", stage.blocks.size()},
                      {"parameters", stage.parameters}});
  }
  return {{"schedule", report.plan.layout.schedule},
          {"microbatches", report.num_microbatches},
          {"ideal_bubble", report.bubble},
          {"grid", report.grid},
          {"stages", std::move(stages)},
          {"cuts", cuts_json(report.plan)}};
}

Json checkpoints_json(const Plan& plan) {
  const CheckpointPlan& checkpoint = plan.checkpoint;
  const index_t count = plan.num_checkpoints(), bytes = checkpoint_bytes(plan);
  return {{"every_steps", checkpoint.every_steps},
          {"every_s", checkpoint.every.seconds},
          {"overhead", checkpoint.overhead},
          {"at_end", checkpoint.at_end},
          {"keep", checkpoint.keep},
          {"keep_every", checkpoint.keep_every},
          {"keep_best", checkpoint.keep_best},
          {"read_back", checkpoint.read_back},
          {"async", checkpoint.async},
          {"count", count},
          {"bytes_each", bytes},
          {"bytes_on_disk_at_most", bytes * plan.most_checkpoints()}};
}

}  // namespace

Json faults_json(const std::vector<PlanFault>& faults) {
  Json list = Json::array();
  for (const PlanFault& fault : faults) {
    Json fixes = Json::array();
    for (const PlanFix& fix : fault.fixes) {
      Json changes = Json::object();
      for (const PlanChange& change : fix) changes[change.key] = change.value;
      fixes.push_back(std::move(changes));
    }
    list.push_back({{"key", fault.key}, {"message", fault.message}, {"fixes", std::move(fixes)}});
  }
  return list;
}

Json report_json(const CheckReport& report) {
  const Plan& plan = report.plan;
  Json json;
  json["plan"] = plan.name;
  json["legal"] = true;
  mark_leak(plan.task, json);
  json["ranks"] = plan.num_ranks();
  json["model"] = model_json(plan);
  json["layout"] = layout_json(plan);
  json["batch"] = {{"global", plan.batch.global},
                   {"micro", plan.batch.micro},
                   {"microbatches_per_lane", plan.microbatches_per_lane()},
                   {"lanes", plan.num_lanes()},
                   {"rows_per_microbatch", plan.rows_per_microbatch()}};
  json["steps"] = plan.num_steps();
  json["steps_per_epoch"] = plan.steps_per_epoch();
  json["tp"] = tree_axis_json(report.axes[0], report.tp_tree);
  json["tp"]["rows"] = row_shares(plan);
  json["dp"] = tree_axis_json(report.axes[1], report.dp_tree);
  json["pp"] = axis_json(report.axes[2]);
  json["pipeline"] = pipeline_json(report);
  json["parameters"] = num_parameters(plan);
  json["parameters_per_rank"] = extremes_json(report.parameters);
  json["memory_bytes"] = {{"parameters", report.memory.parameter_bytes},
                          {"gradients", report.memory.gradient_bytes},
                          {"optimizer", report.memory.optimizer_bytes},
                          {"staging", report.memory.staging_bytes},
                          {"total", report.memory.total_bytes()}};
  json["bytes_sent_per_step"] = {{"tp", extremes_json(report.tp_sent)},
                                 {"dp", extremes_json(report.dp_sent)},
                                 {"pp", extremes_json(report.pp_sent)},
                                 {"total", extremes_json(report.sent)}};
  json["checkpoints"] = checkpoints_json(plan);
  json["faults"] = Json::array();
  json["warnings"] = faults_json(report.advice);
  return json;
}

}  // namespace weft
