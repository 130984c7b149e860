#include "apps/check_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/error.hpp"
#include "parallel/plan/memory_model.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

// Above this many ranks lists of them help nobody.
constexpr index_t small_grid = 32;

struct Extremes {
  index_t min = 0;
  index_t max = 0;
  index_t arg_max = 0;
};

// Smallest and largest value of `value(rank)` over [0, num_ranks).
template <class Value>
Extremes extremes(index_t num_ranks, Value&& value) {
  Extremes found{value(0), value(0), 0};
  for (index_t rank = 1; rank < num_ranks; ++rank) {
    const index_t v = value(rank);
    if (v > found.max) found.arg_max = rank;
    found.min = std::min(found.min, v);
    found.max = std::max(found.max, v);
  }
  return found;
}

// All numbers of the report, computed once and then written twice.
struct Report {
  const Plan& plan;
  Extremes parameters;  // without pads
  Extremes stored;      // with pads
  Extremes copies;      // of the local gradient, over dp ranks
  RankMemory memory;    // of the rank that needs most
  Extremes sent;        // bytes for gradients, over dp ranks, on the tp rank that holds most
  TreeFactor tp_tree;
  TreeFactor dp_tree;
  std::vector<PlanFault> advice;

  explicit Report(const Plan& p)
      : plan(p), tp_tree(tp_tree_factor(p)), dp_tree(dp_tree_factor(p)), advice(warnings(p)) {
    const index_t tp = p.layout.tp, dp = p.layout.dp;
    parameters = extremes(tp, [&](index_t rank) { return local_parameters(p, rank).real; });
    stored = extremes(tp, [&](index_t rank) { return local_parameters(p, rank).stored; });
    copies = extremes(dp, [&](index_t rank) { return gradient_copies(p, rank); });
    memory = rank_memory(p, stored.arg_max, copies.arg_max);
    const index_t tp_rank = stored.arg_max;
    sent = extremes(dp, [&](index_t rank) { return gradient_bytes_sent(p, tp_rank, rank); });
  }
};

std::string bytes_text(index_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", value / 1024);
  if (bytes < 1024 * 1024 * 1024) return fmt::format("{:.1f} MiB", value / (1024 * 1024));
  return fmt::format("{:.2f} GiB", value / (1024.0 * 1024 * 1024));
}

std::string range_text(Range range) {
  return range.size() == 1 ? fmt::format("{}", range.begin)
                           : fmt::format("{}-{}", range.begin, range.end - 1);
}

// The ranks of each group along one axis: "0 1 | 2 3".
template <class RankAt>
std::string groups_text(index_t num_groups, index_t group_size, RankAt&& rank_at) {
  std::vector<std::string> groups;
  for (index_t group = 0; group < num_groups; ++group) {
    std::vector<index_t> ranks;
    for (index_t member = 0; member < group_size; ++member) {
      ranks.push_back(rank_at(group, member));
    }
    groups.push_back(fmt::format("{}", fmt::join(ranks, " ")));
  }
  return fmt::format("{}", fmt::join(groups, " | "));
}

void print_layout(const Plan& plan, std::ostream& text) {
  const LayoutPlan& layout = plan.layout;
  text << fmt::format(
      "layout      {} rank{} = tp {} x dp {}, order {} (fastest first), {} thread{} a rank, "
      "transport {}\n",
      plan.num_ranks(), plan.num_ranks() == 1 ? "" : "s", layout.tp, layout.dp, layout.order,
      layout.threads, layout.threads == 1 ? "" : "s", plan.comm.transport);
  if (plan.num_ranks() == 1 || plan.num_ranks() > small_grid) return;
  const auto tp_member = [&](index_t dp, index_t tp) { return plan.world_rank(tp, dp); };
  const auto dp_member = [&](index_t tp, index_t dp) { return plan.world_rank(tp, dp); };
  text << fmt::format("  tp groups {} (one model each)\n",
                      groups_text(layout.dp, layout.tp, tp_member));
  text << fmt::format("  dp groups {} (same parameters, other samples)\n",
                      groups_text(layout.tp, layout.dp, dp_member));
}

void print_batch(const Plan& plan, std::ostream& text) {
  const index_t lanes = plan.num_lanes(), dp = plan.layout.dp;
  const index_t samples_per_lane = plan.batch.global / lanes;
  text << fmt::format("batch       {} = {} rows x {} microbatches x {} lanes", plan.batch.global,
                      plan.batch.micro, plan.microbatches_per_lane(), lanes);
  if (dp <= small_grid) {
    std::vector<std::string> ranges, samples;
    for (index_t rank = 0; rank < dp; ++rank) {
      ranges.push_back(range_text(plan.lanes_of(rank)));
      samples.push_back(fmt::format("{}", plan.lanes_of(rank).size() * samples_per_lane));
    }
    if (lanes % dp == 0) samples.resize(1);
    text << fmt::format("; {} {} computes lanes {}: {} samples a step",
                        dp == 1 ? "the one" : fmt::format("each of {}", dp),
                        dp == 1 ? "replica" : "replicas", fmt::join(ranges, ", "),
                        fmt::join(samples, ", "));
  }
  text << '\n';
  const index_t epoch = plan.steps_per_epoch();
  const index_t rest = epoch * plan.batch.global - plan.task.train;
  text << fmt::format("steps       {} in all; an epoch of {} samples is {} ({} {})\n",
                      plan.num_steps(), plan.task.train, epoch, rest < 0 ? -rest : rest,
                      rest > 0 ? "rows padded" : "samples dropped");
}

void print_balance(const Report& report, std::ostream& text) {
  const Plan& plan = report.plan;
  const auto line = [&](const char* name, const char* items, index_t count, index_t ranks,
                        const TreeFactor& tree) {
    std::string sizes = "a rank";
    if (ranks <= small_grid) {
      sizes = fmt::format("{} a rank", fmt::join(shares(ranks, count), " "));
    }
    text << fmt::format(
        "{:11} {} {} on {} {}: {}, largest / mean {:.2f}; tree P = {:.2f}, an "
        "all-reduce moves {:.2f} x a ring's bytes\n",
        name, count, items, ranks, ranks == 1 ? "rank" : "ranks", sizes, imbalance(ranks, count),
        tree.nodes, tree.all_reduce_rings());
  };
  line("tp", "pieces", plan.num_pieces(), plan.layout.tp, report.tp_tree);
  line("dp", "lanes", plan.num_lanes(), plan.layout.dp, report.dp_tree);
}

void print_memory(const Report& report, std::ostream& text) {
  const Extremes& parameters = report.parameters;
  const RankMemory& memory = report.memory;
  text << fmt::format("parameters  {} in all; a rank holds {}", num_parameters(report.plan),
                      parameters.max);
  if (parameters.min != parameters.max)
    text << fmt::format(" at most, {} at least", parameters.min);
  text << fmt::format("\nmemory      {} on the rank that needs most, activations not counted\n",
                      bytes_text(memory.total_bytes()));
  text << fmt::format("  parameters {}, gradients {} ({} x the local model), optimizer {}\n",
                      bytes_text(memory.parameter_bytes), bytes_text(memory.gradient_bytes),
                      report.copies.max, bytes_text(memory.optimizer_bytes));
  text << fmt::format("sent        {} a step and rank at most to sum gradients over dp {}\n",
                      bytes_text(report.sent.max), report.plan.layout.dp);
}

void print_report(const Report& report, std::ostream& text) {
  const Plan& plan = report.plan;
  text << fmt::format("plan        {}: legal; {} mode, seed {}\n", plan.name,
                      plan.numerics.mode == NumericsMode::exact ? "exact" : "fast",
                      plan.numerics.seed);
  print_layout(plan, text);
  print_batch(plan, text);
  print_balance(report, text);
  print_memory(report, text);
  for (const PlanFault& warning : report.advice) {
    text << fmt::format("warning     {}: {}\n", warning.key, warning.message);
  }
}

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

Json axis_json(index_t count, index_t ranks, const TreeFactor& tree) {
  return {{"ranks", ranks},
          {"items", count},
          {"imbalance", imbalance(ranks, count)},
          {"tree_factor", tree.nodes},
          {"better_items", tree.better}};
}

Json report_json(const Report& report) {
  const Plan& plan = report.plan;
  Json json;
  json["plan"] = plan.name;
  json["legal"] = true;
  json["ranks"] = plan.num_ranks();
  json["layout"] = {{"tp", plan.layout.tp},
                    {"dp", plan.layout.dp},
                    {"order", plan.layout.order},
                    {"threads", plan.layout.threads},
                    {"transport", plan.comm.transport}};
  json["batch"] = {{"global", plan.batch.global},
                   {"micro", plan.batch.micro},
                   {"microbatches_per_lane", plan.microbatches_per_lane()},
                   {"lanes", plan.num_lanes()}};
  json["steps"] = plan.num_steps();
  json["steps_per_epoch"] = plan.steps_per_epoch();
  json["tp"] = axis_json(plan.num_pieces(), plan.layout.tp, report.tp_tree);
  json["dp"] = axis_json(plan.num_lanes(), plan.layout.dp, report.dp_tree);
  json["parameters"] = num_parameters(plan);
  json["parameters_per_rank"] = {{"min", report.parameters.min}, {"max", report.parameters.max}};
  json["memory_bytes"] = {{"parameters", report.memory.parameter_bytes},
                          {"gradients", report.memory.gradient_bytes},
                          {"optimizer", report.memory.optimizer_bytes},
                          {"total", report.memory.total_bytes()}};
  json["gradient_bytes_sent_per_step"] = {{"min", report.sent.min}, {"max", report.sent.max}};
  json["faults"] = Json::array();
  json["warnings"] = faults_json(report.advice);
  return json;
}

}  // namespace

int check_plan(const Plan& plan, std::optional<index_t> num_ranks, bool json, std::ostream& text,
               std::ostream& out) {
  const std::vector<PlanFault> faults = validate(plan, num_ranks);
  if (!faults.empty()) {
    for (const PlanFault& fault : faults) text << fault.key << ": " << fault.message << '\n';
    const Json record = {{"plan", plan.name}, {"legal", false}, {"faults", faults_json(faults)}};
    if (json) out << record.dump() << '\n';
    return static_cast<int>(ExitCode::usage);
  }
  const Report report(plan);
  print_report(report, text);
  if (json) out << report_json(report).dump() << '\n';
  return static_cast<int>(ExitCode::done);
}

}  // namespace weft
