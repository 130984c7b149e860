// Advice on legal plans: what costs time or will surprise. Nothing in here stops a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "parallel/plan/balance.hpp"
#include "parallel/plan/nearest.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

namespace {

using Warnings = std::vector<PlanFault>;

// Below this width of a piece, computing piece by piece costs over 5 % of a matrix product
// (EXACT section 6).
constexpr index_t narrow_piece = 96;

// A pipeline that waits longer than this part of a step.
constexpr double long_bubble = 0.2;

struct Axis {
  const char* key;  // layout.tp
  index_t size;
  const char* count_key;  // numerics.shards
  index_t count;
};

// Lists longer than this help nobody.
constexpr std::size_t longest_list = 32;

std::string shares_text(const std::vector<index_t>& shares) {
  if (shares.size() > longest_list) return "not all alike";
  return fmt::format("{}", fmt::join(shares, " "));
}

// "layout.tp = 4 or 6": sizes of the axis near its own that divide its items.
std::string balanced_sizes(const Axis& axis, std::vector<PlanFix>& fixes) {
  std::string nearest;
  const auto divides = [&](index_t size) { return axis.count % size == 0; };
  for (const index_t size : nearest_legal(axis.size, 1, axis.count, 1, divides)) {
    nearest += fmt::format("{}{}", nearest.empty() ? "" : " or ", size);
    fixes.push_back({{axis.key, fmt::format("{}", size)}});
  }
  return fmt::format("{} = {}", axis.key, nearest);
}

void warn_of_imbalance(const Axis& axis, Warnings& found) {
  if (axis.count % axis.size == 0) return;
  std::vector<PlanFix> fixes;
  const std::string balanced = balanced_sizes(axis, fixes);
  found.push_back(
      {.key = axis.key,
       .message = fmt::format("{} {} on {} ranks are {} a rank: the largest share is {:.2f} times "
                              "the mean; balanced: {}",
                              axis.count, axis.count_key, axis.size,
                              shares_text(shares(axis.size, axis.count)),
                              imbalance(axis.size, axis.count), balanced),
       .fixes = std::move(fixes)});
}

// By the range rule or by hand; a list's nearest balanced form is the range rule's.
void warn_of_uneven_stages(const Plan& plan, Warnings& found) {
  const std::vector<index_t> sizes = stage_shares(plan);
  if (imbalance(sizes) == 1.0) return;
  const Axis axis{"layout.pp", plan.layout.pp, "model.layers", plan.model.layers};
  std::vector<PlanFix> fixes;
  std::string balanced;
  if (axis.count % axis.size == 0) {
    balanced = "layout.stages = \"even\"";
    fixes.push_back({{"layout.stages", "\"even\""}});
  } else {
    // A list is for its own number of stages.
    balanced = balanced_sizes(axis, fixes);
    for (PlanFix& fix : fixes) {
      if (!plan.layout.stages.empty()) fix.push_back({"layout.stages", "\"even\""});
    }
  }
  found.push_back({.key = plan.layout.stages.empty() ? "layout.pp" : "layout.stages",
                   .message = fmt::format(
                       "{} blocks on {} stages are {} a stage: the largest share is {:.2f} "
                       "times the mean; balanced: {}",
                       axis.count, axis.size, shares_text(sizes), imbalance(sizes), balanced),
                   .fixes = std::move(fixes)});
}

void warn_of_bubble(const Plan& plan, Warnings& found) {
  const index_t p = plan.layout.pp, m = pipeline_microbatches(plan);
  if (ideal_bubble(p, m) <= long_bubble) return;
  std::vector<PlanFix> fixes;
  std::string message = fmt::format(
      "{} stages with {} microbatch{} a step wait ({} - 1) / ({} + {} - 1) = {:.0f} % of it at "
      "best",
      p, m, m == 1 ? "" : "es", p, m, p, 100 * ideal_bubble(p, m));
  index_t fewer = p - 1;
  while (ideal_bubble(fewer, m) > long_bubble) --fewer;
  message += fmt::format("; at most {:.0f} % with layout.pp <= {}", 100 * long_bubble, fewer);
  PlanFix fix = {{"layout.pp", fmt::format("{}", fewer)}};
  if (!plan.layout.stages.empty()) fix.push_back({"layout.stages", "\"even\""});
  found.push_back({.key = "layout.pp", .message = std::move(message), .fixes = {std::move(fix)}});
}

void warn_of_tree(const Axis& axis, const TreeFactor& tree, Warnings& found) {
  if (tree.nodes <= 1) return;
  std::vector<PlanFix> fixes;
  std::string better;
  for (const index_t count : tree.better) {
    better += fmt::format("{}{}", better.empty() ? "" : " or ", count);
    fixes.push_back({{axis.count_key, fmt::format("{}", count)}});
  }
  std::string message = fmt::format(
      "{} {} on {} ranks leave {:.2f} tree nodes a rank: an all-reduce moves {:.2f} "
      "times the bytes of a ring",
      axis.count, axis.count_key, axis.size, tree.nodes, tree.all_reduce_rings());
  if (!better.empty()) {
    message +=
        fmt::format("; less with {} = {} (another plan, another result)", axis.count_key, better);
  }
  found.push_back(
      {.key = axis.count_key, .message = std::move(message), .fixes = std::move(fixes)});
}

void warn_of_narrow_pieces(const Plan& plan, Warnings& found) {
  const index_t pieces = plan.num_pieces();
  const index_t feed_forward = plan.feed_forward() / pieces;
  const index_t attention = plan.is_vit() ? plan.model.hidden / pieces : feed_forward;
  if (pieces == 1 || std::min(feed_forward, attention) >= narrow_piece) return;
  std::string widths;
  if (attention < narrow_piece && plan.is_vit()) {
    widths = fmt::format("attention's heads are {} wide", attention);
  }
  if (feed_forward < narrow_piece) {
    widths += fmt::format("{}the feed-forward width are {} wide", widths.empty() ? "" : ", of ",
                          feed_forward);
  }
  found.push_back({.key = "numerics.shards",
                   .message = fmt::format("pieces of {}; below {} the price of computing piece by "
                                          "piece passes 5 %",
                                          widths, narrow_piece)});
}

void warn_of_uneven_rows(const Plan& plan, Warnings& found) {
  if (!plan.layout.sequence_parallel || plan.layout.tp == 1) return;
  const std::vector<index_t> rows = row_shares(plan);
  if (imbalance(rows) == 1.0) return;
  found.push_back(
      {.key = "layout.sequence_parallel",
       .message = fmt::format("the {} rows of a microbatch, in {} token blocks, are {} rows on the "
                              "{} tp ranks: the largest share is {:.2f} times the mean",
                              plan.rows_per_microbatch(), plan.num_token_blocks(),
                              shares_text(rows), plan.layout.tp, imbalance(rows))});
}

void warn_of_warmup(const Plan& plan, Warnings& found) {
  const index_t warmup = plan.optimizer.schedule.warmup_steps;
  if (warmup < plan.num_steps() || warmup == 0) return;
  found.push_back({.key = "optimizer.schedule.warmup_steps",
                   .message = fmt::format("warm-up takes {} steps, the run has {}: it ends before "
                                          "the learning rate reaches lr",
                                          warmup, plan.num_steps())});
}

void warn_of_lost_stop(const Plan& plan, Warnings& found) {
  if (plan.run.time_limit.seconds == 0) return;
  if (plan.saves_on_the_way() || plan.checkpoint.at_end) return;
  found.push_back({.key = "run.time_limit",
                   .message = "the plan saves no checkpoints, so a run that is stopped there is "
                              "lost; set checkpoint.every_steps or checkpoint.at_end = true"});
}

// "multiples of 200 steps", with what else is saved.
std::string saved_text(const Plan& plan) {
  const CheckpointPlan& checkpoint = plan.checkpoint;
  const bool by_time = plan.saves_by_time();
  if (checkpoint.every_steps == 0) return by_time ? "by the clock alone" : "only at the end";
  return fmt::format("at multiples of {} steps{}", checkpoint.every_steps,
                     by_time ? " and by the clock" : "");
}

// The best can be kept only of steps that are both saved and evaluated; the last one is the newest
// anyway. By the clock a step is met by chance.
void warn_of_no_best(const Plan& plan, Warnings& found) {
  const CheckpointPlan& checkpoint = plan.checkpoint;
  const index_t last = plan.num_steps(), epoch = plan.steps_per_epoch();
  const index_t interval = plan.steps_per_evaluation();
  if (checkpoint.keep_best == 0) return;
  const bool is_evaluated = interval > 0 && interval < last;
  if (is_evaluated && checkpoint.every_steps > 0 &&
      std::lcm(interval, checkpoint.every_steps) < last)
    return;
  std::string message = fmt::format(
      "no step before the last is both saved and evaluated, so no earlier checkpoint can be the "
      "best: steps are saved {}, and evaluated {}",
      saved_text(plan),
      is_evaluated ? fmt::format("at multiples of {}", interval) : "only at the end");
  std::vector<PlanFix> fixes;
  if (epoch >= last) {
    message += fmt::format("; with an epoch of {} steps a run of {} has nothing to choose from",
                           epoch, last);
  } else {
    const index_t wanted = is_evaluated ? interval : epoch;
    const auto divides = [&](index_t steps) { return wanted % steps == 0; };
    const index_t now = checkpoint.every_steps > 0 ? checkpoint.every_steps : wanted;
    std::string better;
    for (const index_t steps : nearest_legal(now, 1, wanted, 1, divides)) {
      better += fmt::format("{}{}", better.empty() ? "" : " or ", steps);
      fixes.push_back({{"checkpoint.every_steps", fmt::format("{}", steps)}});
      if (!is_evaluated) fixes.back().push_back({"eval.every_epochs", "1"});
    }
    message += fmt::format("; all evaluated ones are saved with checkpoint.every_steps = {}{}",
                           better, is_evaluated ? "" : " and eval.every_epochs = 1");
  }
  found.push_back(
      {.key = "checkpoint.keep_best", .message = std::move(message), .fixes = std::move(fixes)});
}

// The same for steps that stay by their number.
void warn_of_none_kept(const Plan& plan, Warnings& found) {
  const index_t every = plan.checkpoint.keep_every, saved = plan.checkpoint.every_steps;
  if (every == 0) return;
  const bool ends_on_one = plan.checkpoint.at_end && plan.num_steps() % every == 0;
  if (ends_on_one || (saved > 0 && std::lcm(every, saved) <= plan.num_steps())) return;
  std::vector<PlanFix> fixes;
  std::string better;
  const auto any = [](index_t) { return true; };
  if (saved > 0) {
    for (const index_t steps : nearest_legal(every, saved, plan.num_steps(), saved, any)) {
      better += fmt::format(
          "{}{}", better.empty() ? "; kept are some with checkpoint.keep_every = " : " or ", steps);
      fixes.push_back({{"checkpoint.keep_every", fmt::format("{}", steps)}});
    }
  }
  found.push_back({.key = "checkpoint.keep_every",
                   .message = fmt::format("no step that is surely saved is a multiple of {}: steps "
                                          "are saved {}{}",
                                          every, saved_text(plan), better),
                   .fixes = std::move(fixes)});
}

}  // namespace

std::vector<PlanFault> warnings(const Plan& plan) {
  Warnings found;
  if (plan.is_exact()) {
    const Axis tp{"layout.tp", plan.layout.tp, "numerics.shards", plan.numerics.shards};
    const Axis dp{"layout.dp", plan.layout.dp, "numerics.lanes", plan.numerics.lanes};
    warn_of_imbalance(tp, found);
    warn_of_imbalance(dp, found);
    warn_of_tree(tp, tp_tree_factor(plan), found);
    warn_of_tree(dp, dp_tree_factor(plan), found);
    warn_of_narrow_pieces(plan, found);
  } else {
    found.push_back({.key = "numerics.mode",
                     .message = "fast mode uses one piece per tp rank and one lane per dp rank; "
                                "numerics.shards and numerics.lanes are not used, and results "
                                "depend on the layout"});
  }
  warn_of_uneven_stages(plan, found);
  warn_of_bubble(plan, found);
  warn_of_uneven_rows(plan, found);
  warn_of_warmup(plan, found);
  warn_of_lost_stop(plan, found);
  warn_of_no_best(plan, found);
  warn_of_none_kept(plan, found);
  return found;
}

}  // namespace weft
