// Advice on legal plans: what costs time or will surprise. Nothing in here stops a run.
#include <fmt/format.h>

#include "parallel/plan/memory_model.hpp"
#include "parallel/plan/nearest.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

namespace {

using Warnings = std::vector<PlanFault>;

// Below this width of a piece, computing piece by piece costs over 5 % of a matrix product
// (EXACT section 6).
constexpr index_t narrow_piece = 96;

struct Axis {
  const char* key;  // layout.tp
  index_t size;
  const char* count_key;  // numerics.shards
  index_t count;
};

void warn_of_imbalance(const Axis& axis, Warnings& found) {
  if (axis.count % axis.size == 0) return;
  std::string sizes;
  for (const index_t share : shares(axis.size, axis.count)) {
    sizes += fmt::format("{}{}", sizes.empty() ? "" : " ", share);
  }
  std::vector<PlanFix> fixes;
  std::string nearest;
  const auto divides = [&](index_t size) { return axis.count % size == 0; };
  for (const index_t size : nearest_legal(axis.size, 1, axis.count, 1, divides)) {
    nearest += fmt::format("{}{}", nearest.empty() ? "" : " or ", size);
    fixes.push_back({{axis.key, fmt::format("{}", size)}});
  }
  found.push_back({.key = axis.key,
                   .message = fmt::format("{} {} on {} ranks are {} a rank: the largest share is "
                                          "{:.2f} times the mean; balanced: {} = {}",
                                          axis.count, axis.count_key, axis.size, sizes,
                                          imbalance(axis.size, axis.count), axis.key, nearest),
                   .fixes = std::move(fixes)});
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
  const index_t width = plan.feed_forward() / plan.num_pieces();
  if (plan.num_pieces() == 1 || width >= narrow_piece) return;
  found.push_back(
      {.key = "numerics.shards",
       .message = fmt::format("pieces of the feed-forward width are {} wide; below {} the price of "
                              "computing piece by piece passes 5 %",
                              width, narrow_piece)});
}

void warn_of_warmup(const Plan& plan, Warnings& found) {
  const index_t warmup = plan.optimizer.schedule.warmup_steps;
  if (warmup < plan.num_steps() || warmup == 0) return;
  found.push_back({.key = "optimizer.schedule.warmup_steps",
                   .message = fmt::format("warm-up takes {} steps, the run has {}: it ends before "
                                          "the learning rate reaches lr",
                                          warmup, plan.num_steps())});
}

}  // namespace

std::vector<PlanFault> warnings(const Plan& plan) {
  Warnings found;
  if (plan.numerics.mode == NumericsMode::exact) {
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
  warn_of_warmup(plan, found);
  return found;
}

}  // namespace weft
