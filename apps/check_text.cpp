// The report of `weft check` for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>

#include "apps/check_report.hpp"
#include "apps/leak_mark.hpp"
#include "apps/stage_resplit.hpp"

namespace weft {

namespace {

std::string bytes_text(double bytes) {
  constexpr double kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
  if (bytes < kib) return fmt::format("{:.0f} B", bytes);
  if (bytes < mib) return fmt::format("{:.1f} KiB", bytes / kib);
  if (bytes < gib) return fmt::format("{:.1f} MiB", bytes / mib);
  return fmt::format("{:.2f} GiB", bytes / gib);
}

std::string bytes_text(index_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string range_text(Range range) {
  return range.size() == 1 ? fmt::format("{}", range.begin)
                           : fmt::format("{}-{}", range.begin, range.end - 1);
}

const char* plural(index_t count) { return count == 1 ? "" : "s"; }

void print_model(const Plan& plan, std::ostream& text) {
  text << fmt::format("model       {} of {} block{}, hidden {}, feed-forward {}", plan.model.kind,
                      plan.model.layers, plural(plan.model.layers), plan.model.hidden,
                      plan.feed_forward());
  if (plan.is_transformer()) {
    text << fmt::format(", {} heads of {}, {} tokens a sample", plan.model.heads,
                        plan.model.hidden / plan.model.heads, plan.tokens_per_sample());
  }
  if (!plan.task.length_buckets.empty())
    text << fmt::format(" at most (batches of {})", fmt::join(plan.task.length_buckets, ", "));
  if (plan.is_vit())
    text << fmt::format(" (patches of {} x {})", plan.model.patch, plan.model.patch);
  if (const index_t words = sample_shape(plan.task).vocabulary; words > 0)
    text << fmt::format(", a vocabulary of {}", words);
  text << '\n';
}

// The ranks of each group along an axis: "0 1 | 2 3".
void print_groups(const AxisReport& axis, const char* meaning, std::ostream& text) {
  if (axis.shares.size() == 1) return;
  std::vector<std::string> groups;
  for (const std::vector<index_t>& ranks : axis.groups) {
    groups.push_back(fmt::format("{}", fmt::join(ranks, " ")));
  }
  text << fmt::format("  {} groups {} ({})\n", axis.name, fmt::join(groups, " | "), meaning);
}

void print_layout(const CheckReport& report, std::ostream& text) {
  const Plan& plan = report.plan;
  const LayoutPlan& layout = plan.layout;
  text << fmt::format(
      "layout      {} rank{} = tp {} x dp {} x pp {}, order {} (fastest first), {} thread{} a "
      "rank, transport {}\n",
      plan.num_ranks(), plural(plan.num_ranks()), layout.tp, layout.dp, layout.pp, layout.order,
      layout.threads, plural(layout.threads), plan.comm.transport);
  if (plan.num_ranks() > CheckReport::small_grid) return;
  print_groups(report.axes[0], "one part of the model each", text);
  print_groups(report.axes[1], "same parameters, other samples", text);
  print_groups(report.axes[2], "the stages of one model", text);
}

void print_batch(const Plan& plan, std::ostream& text) {
  const index_t lanes = plan.num_lanes(), dp = plan.layout.dp;
  const index_t samples_per_lane = plan.batch.global / lanes;
  text << fmt::format("batch       {} = {} sample{} x {} microbatch{} x {} lane{}",
                      plan.batch.global, plan.batch.micro, plural(plan.batch.micro),
                      plan.microbatches_per_lane(), plan.microbatches_per_lane() == 1 ? "" : "es",
                      lanes, plural(lanes));
  if (dp <= CheckReport::small_grid) {
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

std::string balance_text(const AxisReport& axis) {
  const index_t ranks = std::ssize(axis.shares);
  index_t count = 0;
  for (const index_t share : axis.shares) count += share;
  std::string sizes = "a rank";
  if (ranks <= CheckReport::small_grid) {
    sizes = fmt::format("{} a rank", fmt::join(axis.shares, " "));
  }
  return fmt::format("{:11} {} {} on {} rank{}: {}, largest / mean {:.2f}", axis.name, count,
                     axis.items, ranks, plural(ranks), sizes, imbalance(axis.shares));
}

void print_balance(const CheckReport& report, std::ostream& text) {
  const auto line = [&](const AxisReport& axis, const TreeFactor& tree) {
    text << balance_text(axis)
         << fmt::format("; tree P = {:.2f}, an all-reduce moves {:.2f} x a ring's bytes\n",
                        tree.nodes, tree.all_reduce_rings());
  };
  line(report.axes[0], report.tp_tree);
  const Plan& plan = report.plan;
  if (plan.layout.sequence_parallel && plan.layout.tp <= CheckReport::small_grid) {
    text << fmt::format("  sequence parallel: {} of {} rows of a microbatch a rank\n",
                        fmt::join(row_shares(plan), " "), plan.rows_per_microbatch());
  }
  line(report.axes[1], report.dp_tree);
  text << balance_text(report.axes[2]) << '\n';
}

// What each stage holds, and how long the pipeline waits.
void print_schedule(const CheckReport& report, std::ostream& text) {
  const Plan& plan = report.plan;
  const index_t p = plan.layout.pp, m = report.num_microbatches;
  if (p == 1) return;
  if (p <= CheckReport::small_grid) {
    for (std::size_t stage = 0; stage < report.stages.size(); ++stage) {
      const StageReport& one = report.stages[stage];
      text << fmt::format("  stage {}: block{} {}, {} parameters\n", stage,
                          plural(one.blocks.size()), range_text(one.blocks), one.parameters);
    }
  }
  if (plan.layout.measures_stages) {
    text << fmt::format(
        "  measured: even at first; after {} steps of a process split by its stages' times, if that "
        "gains {:.0f} %\n",
        StageResplit::num_warm_up + StageResplit::num_measured, 100 * StageResplit::least_gain);
  }
  text << fmt::format("  at each cut {} of activations a microbatch, and as much of gradients back{}\n",
                      bytes_text(cut_bytes(plan)),
                      plan.layout.tp == 1 ? "" : fmt::format(" (all {} tp ranks)", plan.layout.tp));
  text << fmt::format(
      "schedule    {}, {} microbatch{} through {} stages; ideal bubble ({} - 1) / ({} + {} - 1) = "
      "{:.1f} %\n",
      plan.layout.schedule, m, m == 1 ? "" : "es", p, p, m, p, 100 * report.bubble);
  if (report.grid.empty()) return;
  std::istringstream lines(report.grid);
  for (std::string line; std::getline(lines, line);) text << "  " << line << '\n';
}

void print_memory(const CheckReport& report, std::ostream& text) {
  const Extremes<index_t>& parameters = report.parameters;
  const RankMemory& memory = report.memory;
  const LayoutPlan& layout = report.plan.layout;
  text << fmt::format("parameters  {} in all; a rank holds {}", num_parameters(report.plan),
                      parameters.max);
  if (parameters.min != parameters.max)
    text << fmt::format(" at most, {} at least", parameters.min);
  text << fmt::format("\nmemory      {} on the rank that needs most, activations not counted\n",
                      bytes_text(memory.total_bytes()));
  text << fmt::format("  parameters {}, gradients {} ({} x the local model), optimizer {}",
                      bytes_text(memory.parameter_bytes), bytes_text(memory.gradient_bytes),
                      report.copies.max, bytes_text(memory.optimizer_bytes));
  if (layout.zero == 1) text << fmt::format(" (ZeRO-1: one of {} slices)", layout.dp);
  if (memory.staging_bytes > 0)
    text << fmt::format(", staged copy of a save {}", bytes_text(memory.staging_bytes));
  text << '\n';
}

void print_traffic(const CheckReport& report, std::ostream& text) {
  const auto most = [](const Extremes<double>& sent) { return bytes_text(sent.max); };
  const LayoutPlan& layout = report.plan.layout;
  text << fmt::format("sent        {} a step and rank at most, about{}\n", most(report.sent),
                      report.plan.task.length_buckets.empty() ? "" : ", where texts are longest");
  text << fmt::format(
      "  tp {} ({}), dp {} (gradients{}), pp {} (stage boundaries), each on its busiest rank\n",
      most(report.tp_sent), layout.sequence_parallel ? "rows, sequence parallel" : "activations",
      most(report.dp_sent), layout.zero == 1 ? " out, parameters back" : "", most(report.pp_sent));
}

std::string best_metric(const Plan& plan) {
  return "validation " + (plan.task.target.is_set() ? plan.task.target.metric : "accuracy");
}

// When the state is saved, and what that takes on the disk. A new one is whole before an old one
// goes, so for a moment there is one more than is kept.
void print_checkpoints(const Plan& plan, std::ostream& text) {
  const CheckpointPlan& checkpoint = plan.checkpoint;
  const index_t count = plan.num_checkpoints(), bytes = checkpoint_bytes(plan);
  const bool by_time = plan.saves_by_time();
  if (count == 0 && !by_time) {
    text << "checkpoints none; set checkpoint.every_steps or checkpoint.at_end\n";
    return;
  }
  std::vector<std::string> moments_of;
  if (checkpoint.every.seconds > 0) moments_of.push_back("every " + text_of(checkpoint.every));
  if (checkpoint.overhead > 0.0)
    moments_of.push_back(fmt::format(
        "as often as steps wait {:g} % of the time for saving (measured while the run goes on)",
        100 * checkpoint.overhead));
  if (checkpoint.every_steps > 0 && checkpoint.every_steps <= plan.num_steps())
    moments_of.push_back(
        fmt::format("every {} step{}", checkpoint.every_steps, plural(checkpoint.every_steps)));
  if (checkpoint.at_end) moments_of.push_back("at the end");
  const std::string when = fmt::format("{}", fmt::join(moments_of, " and "));
  const index_t moments = plan.optimizer.num_moments();
  std::string kept = fmt::format("the newest {} kept",
                                 by_time ? checkpoint.keep : std::min(count, checkpoint.keep));
  if (checkpoint.keep_every > 0)
    kept += fmt::format(", and each at a multiple of {} steps", checkpoint.keep_every);
  if (checkpoint.keep_best > 0)
    kept += fmt::format(", and the best {} by {}", checkpoint.keep_best, best_metric(plan));
  text << fmt::format(
      "checkpoints {}: {} in all{}, {}{}\n"
      "  one has {} (parameters and {} moment{}); {} on disk at most\n",
      when, count, by_time ? " but those by time" : "", kept,
      plan.stages_checkpoints() ? "; written while steps go on" : "", bytes_text(bytes), moments,
      plural(moments), bytes_text(bytes * plan.most_checkpoints()));
}

}  // namespace

void print_report(const CheckReport& report, std::ostream& text) {
  const Plan& plan = report.plan;
  text << fmt::format("plan        {}: legal; {} mode, seed {}\n", plan.name,
                      plan.is_exact() ? "exact" : "fast", plan.numerics.seed);
  say_leak(plan.task, text);
  if (plan.task.skips_faulty_rows())
    text << "faulty rows are left out and counted, not refused (task.faulty_rows)\n";
  print_model(plan, text);
  print_layout(report, text);
  print_batch(plan, text);
  print_balance(report, text);
  print_schedule(report, text);
  print_memory(report, text);
  print_traffic(report, text);
  print_checkpoints(plan, text);
  for (const PlanFault& warning : report.advice) {
    text << fmt::format("warning     {}: {}\n", warning.key, warning.message);
  }
}

}  // namespace weft
