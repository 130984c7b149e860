#include "apps/check_report.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/reduce_tree.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/schedule_grid.hpp"

namespace weft {

namespace {

// Above this many ranks, dp ranks that do the same work are looked at once.
constexpr index_t largest_full_sweep = 4096;

// Ranks of dp that hold and send alike but for their shares of the optimizer's state: in a large
// grid those with equal (number of lanes, nodes, memory for gradients), else each for itself.
std::vector<std::vector<index_t>> dp_ranks_alike(const Plan& plan) {
  const bool each_alone = plan.num_ranks() <= largest_full_sweep;
  const PlaceMemory memory(plan, 0, 0);
  std::map<std::tuple<index_t, std::size_t, index_t, index_t>, std::vector<index_t>> classes;
  for (index_t rank = 0; rank < plan.layout.dp; ++rank) {
    const Range lanes = plan.lanes_of(rank);
    const std::size_t nodes = reduce_tree::maximal_nodes(lanes, plan.num_lanes()).size();
    classes[{lanes.size(), nodes, memory.of(rank).gradient_bytes, each_alone ? rank : 0}].push_back(
        rank);
  }
  std::vector<std::vector<index_t>> alike;
  for (auto& entry : classes) alike.push_back(std::move(entry.second));
  return alike;
}

template <class T>
void widen(Extremes<T>& extremes, T value, bool is_first) {
  extremes.min = is_first ? value : std::min(extremes.min, value);
  extremes.max = is_first ? value : std::max(extremes.max, value);
}

// The groups along one axis: `outer` x `inner` of them, `rank_at(outer, inner, member)`.
template <class RankAt>
std::vector<std::vector<index_t>> groups_of(index_t outer, index_t inner, index_t size,
                                            RankAt&& rank_at) {
  std::vector<std::vector<index_t>> groups;
  for (index_t a = 0; a < outer; ++a) {
    for (index_t b = 0; b < inner; ++b) {
      groups.emplace_back();
      for (index_t member = 0; member < size; ++member) {
        groups.back().push_back(rank_at(a, b, member));
      }
    }
  }
  return groups;
}

// A transport that this program does not have: the plan is legal, but not here.
void warn_of_transport(const Plan& plan, std::vector<PlanFault>& advice) {
  const std::vector<std::string> built_in = built_in_transports();
  const std::string& name = plan.comm.transport;
  if (name == "auto" || std::find(built_in.begin(), built_in.end(), name) != built_in.end()) return;
  PlanFault fault{.key = "comm.transport",
                  .message = "this build does not have " + name + ", only"};
  for (const std::string& other : built_in) {
    fault.message += (other == built_in.front() ? " " : ", ") + other;
    fault.fixes.push_back({{"comm.transport", '"' + other + '"'}});
  }
  advice.push_back(std::move(fault));
}

}  // namespace

CheckReport::CheckReport(const Plan& p)
    : plan(p),
      tp_tree(tp_tree_factor(p)),
      dp_tree(dp_tree_factor(p)),
      num_microbatches(pipeline_microbatches(p)),
      bubble(ideal_bubble(p.layout.pp, num_microbatches)),
      advice(warnings(p)) {
  warn_of_transport(plan, advice);
  add_axes();
  for (index_t stage = 0; stage < plan.layout.pp; ++stage) {
    stages.push_back({plan.blocks_of_stage(stage), stage_parameters(plan, stage)});
  }
  draw_schedule();
  add_ranks();
}

void CheckReport::draw_schedule() {
  const index_t p = plan.layout.pp, slots = 2 * (num_microbatches + p - 1);
  if (p == 1 || p > small_grid || slots > most_slots) return;
  grid = pipeline::ScheduleGrid(
             pipeline::make_schedule(plan.layout.schedule, static_cast<int>(p), num_microbatches))
             .text();
}

void CheckReport::add_axes() {
  const index_t tp = plan.layout.tp, dp = plan.layout.dp, pp = plan.layout.pp;
  axes = {{"tp", "pieces", {}, shares(tp, plan.num_pieces())},
          {"dp", "lanes", {}, shares(dp, plan.num_lanes())},
          {"pp", "blocks", {}, stage_shares(plan)}};
  if (plan.num_ranks() > small_grid) return;
  axes[0].groups = groups_of(
      pp, dp, tp, [&](index_t a, index_t b, index_t m) { return plan.world_rank(m, b, a); });
  axes[1].groups = groups_of(
      pp, tp, dp, [&](index_t a, index_t b, index_t m) { return plan.world_rank(b, m, a); });
  axes[2].groups = groups_of(
      dp, tp, pp, [&](index_t a, index_t b, index_t m) { return plan.world_rank(b, a, m); });
}

void CheckReport::add_place(index_t tp_rank, index_t pp_rank,
                            const std::vector<std::vector<index_t>>& dp_alike) {
  const PlaceMemory place(plan, tp_rank, pp_rank);
  const PlaceTraffic place_traffic(plan, tp_rank, pp_rank);
  bool is_first = tp_rank == 0 && pp_rank == 0;
  widen(parameters, local_parameters(plan, tp_rank, pp_rank).real, is_first);
  for (const std::vector<index_t>& ranks : dp_alike) {
    const index_t dp_rank =
        *std::max_element(ranks.begin(), ranks.end(), [&](index_t a, index_t b) {
          return place.optimizer_elements(a) < place.optimizer_elements(b);
        });
    const RankMemory mine = place.of(dp_rank);
    if (is_first || mine.total_bytes() > memory.total_bytes()) memory = mine;
    const RankTraffic traffic = place_traffic.of(dp_rank);
    widen(copies, gradient_copies(plan, dp_rank), is_first);
    widen(tp_sent, traffic.tp_bytes, is_first);
    widen(dp_sent, traffic.dp_bytes, is_first);
    widen(pp_sent, traffic.pp_bytes, is_first);
    widen(sent, traffic.total_bytes(), is_first);
    is_first = false;
  }
}

void CheckReport::add_ranks() {
  const std::vector<std::vector<index_t>> dp_alike = dp_ranks_alike(plan);
  for (index_t pp_rank = 0; pp_rank < plan.layout.pp; ++pp_rank) {
    for (index_t tp_rank = 0; tp_rank < plan.layout.tp; ++tp_rank)
      add_place(tp_rank, pp_rank, dp_alike);
  }
}

}  // namespace weft
