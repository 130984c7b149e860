#include "parallel/plan/plan_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "parallel/plan/nearest.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft::plan_rules {

namespace {

bool is_exact(const Plan& plan) { return plan.numerics.mode == NumericsMode::exact; }

IntegerRange range_of(const char* key) { return std::get<IntegerRange>(find_key(key)->legal); }

// The largest global batch that the split allows.
index_t most_global(const Plan& plan) {
  const index_t limit = range_of("batch.global").most;
  return plan.batch.last == LastBatch::drop ? std::min(limit, plan.task.train) : limit;
}

}  // namespace

// Rules may be asked while another key is broken, to try values for advice; broken numbers fit
// nothing.
constexpr bool is_sound(index_t count) { return 1 <= count && count <= (index_t{1} << 31); }

bool pieces_fit(const Plan& plan) {
  return is_sound(plan.model.hidden) && is_sound(plan.model.mlp_ratio) &&
         is_sound(plan.num_pieces()) && plan.feed_forward() % plan.num_pieces() == 0;
}

bool tp_fits(const Plan& plan) { return plan.layout.tp <= plan.num_pieces(); }

bool dp_fits(const Plan& plan) { return plan.layout.dp <= plan.num_lanes(); }

bool batch_divides(const Plan& plan) {
  return is_sound(plan.batch.global) && is_sound(plan.batch.micro) && is_sound(plan.num_lanes()) &&
         plan.batch.global % (plan.batch.micro * plan.num_lanes()) == 0;
}

bool batch_fits_split(const Plan& plan) { return plan.batch.global <= most_global(plan); }

bool layout_fits(const Plan& plan) {
  if (is_exact(plan)) return tp_fits(plan) && dp_fits(plan);
  return pieces_fit(plan) && batch_divides(plan);
}

namespace {

using Ranks = std::optional<index_t>;
using Fixes = std::vector<PlanFix>;

std::string text_of(index_t value) { return fmt::format("{}", value); }

// Appends the legal values of one key nearest to its present one. `field` is that key's number
// inside `trial`, which `legal()` looks at.
template <class Legal>
void add_nearest(Fixes& fixes, const char* key, index_t& field, index_t step, index_t most,
                 Legal&& legal) {
  const index_t wanted = field;
  const auto try_value = [&](index_t value) {
    field = value;
    return legal();
  };
  for (const index_t value : nearest_legal(wanted, range_of(key).least, most, step, try_value)) {
    fixes.push_back({{key, text_of(value)}});
  }
  field = wanted;
}

template <class Legal>
void add_nearest(Fixes& fixes, const char* key, index_t& field, Legal&& legal) {
  add_nearest(fixes, key, field, 1, range_of(key).most, legal);
}

// The layouts of `num_ranks` ranks that the plan can run on, the one most like its own first.
Fixes layouts_for(const Plan& plan, index_t num_ranks) {
  struct Candidate {
    double distance;
    index_t tp;
  };
  std::vector<Candidate> candidates;
  Plan trial = plan;
  for (index_t tp = 1; tp <= std::min(num_ranks, range_of("layout.tp").most); ++tp) {
    if (num_ranks % tp != 0 || num_ranks / tp > range_of("layout.dp").most) continue;
    trial.layout.tp = tp;
    trial.layout.dp = num_ranks / tp;
    if (!layout_fits(trial)) continue;
    const auto apart = [](index_t a, index_t b) {
      return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
    };
    candidates.push_back({apart(tp, plan.layout.tp) + apart(trial.layout.dp, plan.layout.dp), tp});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](auto& a, auto& b) { return a.distance < b.distance; });
  if (candidates.size() > 3) candidates.resize(3);
  Fixes fixes;
  for (const Candidate& c : candidates) {
    fixes.push_back({{"layout.tp", text_of(c.tp)}, {"layout.dp", text_of(num_ranks / c.tp)}});
  }
  return fixes;
}

// Fixes of one axis: other layouts for the same ranks where their number is given, else the nearest
// size of this axis alone.
Fixes axis_fixes(const Plan& plan, Ranks num_ranks, const char* key) {
  if (num_ranks) return layouts_for(plan, *num_ranks);
  Fixes fixes;
  Plan trial = plan;
  const bool is_tp = std::string_view(key) == "layout.tp";
  // Only this axis' own rule: the other one has a fault of its own.
  const auto legal = [&] {
    if (is_exact(trial)) return is_tp ? tp_fits(trial) : dp_fits(trial);
    return is_tp ? pieces_fit(trial) : batch_divides(trial);
  };
  add_nearest(fixes, key, is_tp ? trial.layout.tp : trial.layout.dp, legal);
  return fixes;
}

void check_pieces(const Plan& plan, Ranks num_ranks, std::vector<PlanFault>& faults) {
  if (pieces_fit(plan)) return;
  Plan trial = plan;
  Fixes fixes;
  const index_t num_pieces = plan.num_pieces();
  if (is_exact(plan)) {
    add_nearest(fixes, "numerics.shards", trial.numerics.shards,
                [&] { return pieces_fit(trial) && tp_fits(trial); });
  } else {
    fixes = axis_fixes(plan, num_ranks, "layout.tp");
  }
  const index_t step = num_pieces / std::gcd(num_pieces, plan.model.mlp_ratio);
  add_nearest(fixes, "model.hidden", trial.model.hidden, step, range_of("model.hidden").most,
              [] { return true; });
  const std::string expected =
      fmt::format("a feed-forward width that is a multiple of the {} {}", num_pieces,
                  is_exact(plan) ? "numerics.shards" : "tp ranks of fast mode");
  const std::string found = fmt::format("hidden {} x mlp_ratio {} = {}", plan.model.hidden,
                                        plan.model.mlp_ratio, plan.feed_forward());
  faults.push_back(make_fault(is_exact(plan) ? "numerics.shards" : "layout.tp", expected, found,
                              std::move(fixes)));
}

void check_tp(const Plan& plan, Ranks num_ranks, std::vector<PlanFault>& faults) {
  if (tp_fits(plan)) return;
  Fixes fixes = axis_fixes(plan, num_ranks, "layout.tp");
  Plan trial = plan;
  add_nearest(fixes, "numerics.shards", trial.numerics.shards,
              [&] { return tp_fits(trial) && pieces_fit(trial); });
  faults.push_back(make_fault(
      "layout.tp", fmt::format("at most one rank per shard: tp <= {}", plan.numerics.shards),
      text_of(plan.layout.tp), std::move(fixes)));
}

void check_dp(const Plan& plan, Ranks num_ranks, std::vector<PlanFault>& faults) {
  if (dp_fits(plan)) return;
  Fixes fixes = axis_fixes(plan, num_ranks, "layout.dp");
  Plan trial = plan;
  add_nearest(fixes, "numerics.lanes", trial.numerics.lanes,
              [&] { return dp_fits(trial) && batch_divides(trial); });
  faults.push_back(make_fault(
      "layout.dp", fmt::format("at most one replica per lane: dp <= {}", plan.numerics.lanes),
      text_of(plan.layout.dp), std::move(fixes)));
}

// Where no global batch fits the split with this microbatch, both change together.
void add_smaller_batch(const Plan& plan, Fixes& fixes) {
  const index_t micro = std::min(plan.batch.micro, most_global(plan) / plan.num_lanes());
  if (micro < 1) return;
  const index_t step = micro * plan.num_lanes();
  const index_t global = std::clamp(plan.batch.global, step, most_global(plan)) / step * step;
  fixes.push_back({{"batch.global", text_of(global)}, {"batch.micro", text_of(micro)}});
}

Fixes batch_fixes(const Plan& plan, Ranks num_ranks) {
  Fixes fixes;
  Plan trial = plan;
  const auto legal = [&] { return batch_divides(trial) && dp_fits(trial); };
  add_nearest(fixes, "batch.global", trial.batch.global, plan.batch.micro * plan.num_lanes(),
              most_global(plan), [] { return true; });
  if (plan.batch.global % plan.num_lanes() == 0) {
    add_nearest(fixes, "batch.micro", trial.batch.micro, 1,
                std::min(plan.batch.global, range_of("batch.micro").most), legal);
  } else if (is_exact(plan)) {
    add_nearest(fixes, "numerics.lanes", trial.numerics.lanes, legal);
  } else {
    for (PlanFix& fix : axis_fixes(plan, num_ranks, "layout.dp")) fixes.push_back(std::move(fix));
  }
  if (fixes.empty()) add_smaller_batch(plan, fixes);
  return fixes;
}

void check_batch(const Plan& plan, Ranks num_ranks, std::vector<PlanFault>& faults) {
  if (batch_divides(plan)) return;
  const std::string expected =
      fmt::format("micro {} x lanes {} x a whole number of microbatches per lane, a multiple of {}",
                  plan.batch.micro, plan.num_lanes(), plan.batch.micro * plan.num_lanes());
  faults.push_back(make_fault("batch.global", expected, text_of(plan.batch.global),
                              batch_fixes(plan, num_ranks)));
}

void check_split(const Plan& plan, Ranks, std::vector<PlanFault>& faults) {
  if (batch_fits_split(plan)) return;
  Fixes fixes;
  Plan trial = plan;
  add_nearest(fixes, "batch.global", trial.batch.global, plan.batch.micro * plan.num_lanes(),
              most_global(plan), [] { return true; });
  if (fixes.empty()) add_smaller_batch(plan, fixes);
  fixes.push_back({{"batch.last", "\"pad\""}});
  faults.push_back(make_fault(
      "batch.global",
      fmt::format("at most the {} samples of task.split.train, or no step is left after the drop",
                  plan.task.train),
      text_of(plan.batch.global), std::move(fixes)));
}

void check_run(const Plan& plan, Ranks, std::vector<PlanFault>& faults) {
  if (plan.run.steps.has_value() != plan.run.epochs.has_value()) return;
  const bool both = plan.run.steps.has_value();
  PlanFault fault =
      make_fault("run.steps", "either run.steps or run.epochs",
                 both ? "both: remove one" : "neither: set one, such as run.epochs = 10", {});
  if (!both) fault.fixes = {{{"run.epochs", "10"}}, {{"run.steps", "1000"}}};
  faults.push_back(std::move(fault));
}

// "4 or 6": the nearest numbers of ranks that have a layout.
std::string usable_ranks(const Plan& plan, index_t num_ranks) {
  const index_t most = is_exact(plan) ? plan.numerics.shards * plan.numerics.lanes : num_ranks + 64;
  std::string text;
  for (const index_t count : nearest_legal(
           num_ranks, 1, most, 1, [&](index_t n) { return !layouts_for(plan, n).empty(); })) {
    text += fmt::format("{}{}", text.empty() ? "" : " or ", count);
  }
  return text;
}

void check_ranks(const Plan& plan, Ranks num_ranks, std::vector<PlanFault>& faults) {
  if (!num_ranks || *num_ranks == plan.num_ranks()) return;
  PlanFault fault{.key = "layout", .message = {}, .fixes = layouts_for(plan, *num_ranks)};
  fault.message = fmt::format("{} {} started, the layout needs tp {} x dp {} = {}: ", *num_ranks,
                              *num_ranks == 1 ? "rank was" : "ranks were", plan.layout.tp,
                              plan.layout.dp, plan.num_ranks());
  if (layout_fits(plan)) fault.message += fmt::format("start {}, or ", plan.num_ranks());
  if (!fault.fixes.empty()) {
    fault.message += fmt::format("for {}: {}", *num_ranks, fixes_text(fault.fixes));
  } else {
    const std::string limits =
        is_exact(plan) ? fmt::format(" (tp at most {} shards, dp at most {} lanes)",
                                     plan.numerics.shards, plan.numerics.lanes)
                       : std::string(" (tp divides the feed-forward width, micro x dp the batch)");
    fault.message += fmt::format(
        "choose another number, since no layout of this plan has {}{}; "
        "nearest that has one: {}",
        *num_ranks, limits, usable_ranks(plan, *num_ranks));
  }
  faults.push_back(std::move(fault));
}

// The name becomes a folder's.
void check_name(const Plan& plan, Ranks, std::vector<PlanFault>& faults) {
  if (plan.name.find('/') == std::string::npos) return;
  std::string name = plan.name;
  std::replace(name.begin(), name.end(), '/', '-');
  faults.push_back(make_fault("name", "a name without /", toml_string(plan.name),
                              {{{"name", toml_string(name)}}}));
}

struct Rule {
  void (*check)(const Plan&, Ranks, std::vector<PlanFault>&);
  std::vector<std::string> keys;  // what the rule looks at; none of it may be broken by itself
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {check_name, {"name"}},
      {check_batch,
       {"batch.global", "batch.micro", "numerics.lanes", "layout.dp", "task.split.train",
        "batch.last", "numerics.mode"}},
      {check_split,
       {"batch.global", "batch.micro", "numerics.lanes", "layout.dp", "task.split.train",
        "batch.last", "numerics.mode"}},
      {check_pieces,
       {"numerics.shards", "model.hidden", "model.mlp_ratio", "layout.tp", "numerics.mode"}},
      {check_tp, {"layout.tp", "numerics.shards", "numerics.mode"}},
      {check_dp, {"layout.dp", "numerics.lanes", "numerics.mode"}},
      {check_run, {"run.steps", "run.epochs"}},
      {check_ranks,
       {"layout.tp", "layout.dp", "numerics.shards", "numerics.lanes", "numerics.mode",
        "model.hidden", "model.mlp_ratio", "batch.global", "batch.micro"}}};
  return table;
}

}  // namespace

std::vector<PlanFault> check_rules(const Plan& plan, std::optional<index_t> num_ranks,
                                   const std::vector<PlanFault>& known_faults) {
  std::vector<PlanFault> faults;
  for (const Rule& rule : rules()) {
    const auto looked_at = [&](const PlanFault& fault) {
      return std::find(rule.keys.begin(), rule.keys.end(), fault.key) != rule.keys.end();
    };
    if (std::any_of(known_faults.begin(), known_faults.end(), looked_at)) continue;
    const std::size_t first = faults.size();
    rule.check(plan, num_ranks, faults);
    for (std::size_t i = first; i < faults.size(); ++i) faults[i].involved = rule.keys;
  }
  return faults;
}

}  // namespace weft::plan_rules
