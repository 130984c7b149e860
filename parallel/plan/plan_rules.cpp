#include "parallel/plan/plan_rules.hpp"

#include <algorithm>
#include <numeric>

#include "parallel/plan/rule_faults.hpp"

namespace weft::plan_rules {

namespace {

// Rules may be asked while another key is broken, to try values for advice; broken numbers fit
// nothing.
constexpr bool is_sound(index_t count) { return 1 <= count && count <= (index_t{1} << 31); }

bool divides(index_t part, index_t whole) {
  return is_sound(part) && is_sound(whole) && whole % part == 0;
}

}  // namespace

bool model_fits(const Plan& plan) {
  const std::vector<std::string>& models = models_for(plan.task);
  return std::find(models.begin(), models.end(), plan.model.kind) != models.end();
}

bool pieces_fit(const Plan& plan) {
  if (plan.is_transformer()) return true;
  return is_sound(plan.model.hidden) && is_sound(plan.model.mlp_ratio) &&
         is_sound(plan.num_pieces()) && plan.feed_forward() % plan.num_pieces() == 0;
}

bool heads_fit(const Plan& plan) {
  if (!plan.is_transformer()) return true;
  return divides(plan.model.heads, plan.model.hidden) &&
         divides(plan.num_pieces(), plan.model.heads);
}

bool buckets_fit(const Plan& plan) {
  const std::vector<index_t>& buckets = plan.task.length_buckets;
  if (buckets.empty()) return true;
  const auto falls = [](index_t a, index_t b) { return b <= a; };
  return std::adjacent_find(buckets.begin(), buckets.end(), falls) == buckets.end() &&
         buckets.back() == plan.task.tokens;
}

bool patch_fits(const Plan& plan) {
  return !plan.is_vit() || !model_fits(plan) ||
         divides(plan.model.patch, sample_shape(plan.task).side);
}

bool input_fits(const Plan& plan) {
  if (!model_fits(plan) || sample_shape(plan.task).tokens > 0) return true;
  const bool has_tokens = !plan.is_vit() || (is_sound(plan.model.patch) &&
                                             plan.model.patch <= sample_shape(plan.task).side);
  return has_tokens && plan.num_pieces() <= plan.features_per_token();
}

bool shards_fit(const Plan& plan) {
  return pieces_fit(plan) && heads_fit(plan) && input_fits(plan);
}

bool tp_fits(const Plan& plan) { return plan.layout.tp <= plan.num_pieces(); }

bool dp_fits(const Plan& plan) { return plan.layout.dp <= plan.num_lanes(); }

bool pp_fits(const Plan& plan) { return plan.layout.pp <= plan.model.layers; }

bool stages_fit(const Plan& plan) {
  const std::vector<index_t>& stages = plan.layout.stages;
  if (stages.empty() || !pp_fits(plan)) return true;
  const index_t sum = std::accumulate(stages.begin(), stages.end(), index_t{0});
  return std::ssize(stages) == plan.layout.pp && sum == plan.model.layers;
}

// Stages are split again by way of a checkpoint.
bool split_is_saved(const Plan& plan) {
  return !plan.layout.measures_stages || plan.layout.pp == 1 || plan.saves_on_the_way() ||
         plan.checkpoint.at_end;
}

bool batch_divides(const Plan& plan) {
  return is_sound(plan.batch.global) && is_sound(plan.batch.micro) && is_sound(plan.num_lanes()) &&
         plan.batch.global % (plan.batch.micro * plan.num_lanes()) == 0;
}

index_t most_global(const Plan& plan) {
  const index_t limit = range_of("batch.global").most;
  return plan.batch.last == LastBatch::drop ? std::min(limit, plan.task.train) : limit;
}

bool batch_fits_split(const Plan& plan) { return plan.batch.global <= most_global(plan); }

bool layout_fits(const Plan& plan) {
  if (!pp_fits(plan)) return false;
  if (plan.is_exact()) return tp_fits(plan) && dp_fits(plan);
  const bool heads = !plan.is_transformer() || divides(plan.layout.tp, plan.model.heads);
  return heads && pieces_fit(plan) && input_fits(plan) && batch_divides(plan);
}

namespace {

bool name_fits(const Plan& plan) { return plan.name.find('/') == std::string::npos; }

bool run_fits(const Plan& plan) {
  return plan.run.steps.has_value() != plan.run.epochs.has_value();
}

bool target_fits(const Plan& plan) {
  const TargetPlan& target = plan.task.target;
  const bool wants_most = target.is_set() && target.smaller_is_better();
  const bool wants_least = target.is_set() && !target.smaller_is_better();
  return target.at_least.has_value() == wants_least && target.at_most.has_value() == wants_most;
}

bool accept_fits(const Plan& plan) {
  const TargetPlan& accept = plan.task.accept;
  return accept.is_set() == (accept.at_least.has_value() || accept.at_most.has_value());
}

// Areas under curves are of two classes.
bool metrics_fit(const Plan& plan) {
  const auto fits = [&](const std::string& metric) {
    return !metric.ends_with("_auc") || sample_shape(plan.task).classes == 2;
  };
  return fits(plan.task.target.metric) && fits(plan.task.accept.metric);
}

struct Rule {
  bool (*holds)(const Plan&);  // nullptr: the layout's ranks are those that were started
  PlanFault (*fault)(const Question&);
  std::vector<std::string> keys;  // what the rule and its advice look at, the most telling first

  bool holds_for(const Plan& plan, Ranks num_ranks) const {
    if (holds != nullptr) return holds(plan);
    return !num_ranks || *num_ranks == plan.num_ranks();
  }
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {name_fits, name_fault, {"name"}},
      {model_fits, model_fault, {"model.kind", "task.dataset"}},
      {batch_divides,
       batch_fault,
       {"batch.global", "batch.micro", "numerics.lanes", "layout.dp", "task.split.train",
        "batch.last", "numerics.mode"}},
      {batch_fits_split,
       split_fault,
       {"batch.global", "batch.micro", "numerics.lanes", "layout.dp", "task.split.train",
        "batch.last", "numerics.mode"}},
      {pieces_fit,
       pieces_fault,
       {"numerics.shards", "model.hidden", "model.mlp_ratio", "layout.tp", "numerics.mode",
        "model.kind"}},
      {heads_fit,
       heads_fault,
       {"model.heads", "numerics.shards", "model.hidden", "layout.tp", "numerics.mode",
        "model.kind"}},
      {buckets_fit, buckets_fault, {"task.length_buckets", "task.tokens", "task.dataset"}},
      {patch_fits, patch_fault, {"model.patch", "model.kind"}},
      {input_fits,
       input_fault,
       {"numerics.shards", "model.patch", "layout.tp", "numerics.mode", "model.kind",
        "task.tokens"}},
      {tp_fits, tp_fault, {"layout.tp", "numerics.shards", "numerics.mode"}},
      {dp_fits, dp_fault, {"layout.dp", "numerics.lanes", "numerics.mode"}},
      {pp_fits, pp_fault, {"layout.pp", "model.layers", "layout.stages"}},
      {stages_fit, stages_fault, {"layout.stages", "layout.pp", "model.layers"}},
      {split_is_saved,
       split_saved_fault,
       {"layout.stages", "checkpoint.at_end", "checkpoint.every_steps", "checkpoint.every",
        "checkpoint.overhead", "layout.pp"}},
      {run_fits, run_fault, {"run.steps", "run.epochs"}},
      {target_fits,
       target_fault,
       {"task.target.at_least", "task.target.at_most", "task.target.metric"}},
      {accept_fits,
       accept_fault,
       {"task.accept.at_least", "task.accept.at_most", "task.accept.metric"}},
      {metrics_fit, metrics_fault, {"task.accept.metric", "task.target.metric", "task.dataset"}},
      {nullptr,
       ranks_fault,
       {"layout.tp", "layout.dp", "layout.pp", "numerics.shards", "numerics.lanes", "numerics.mode",
        "model.hidden", "model.mlp_ratio", "model.heads", "model.patch", "model.layers",
        "model.kind", "layout.stages", "batch.global", "batch.micro"}}};
  return table;
}

}  // namespace

std::vector<PlanFault> check_rules(const Plan& plan, std::optional<index_t> num_ranks,
                                   const std::vector<PlanFault>& known_faults) {
  std::vector<const Rule*> held, broken;
  for (const Rule& rule : rules()) {
    const auto looked_at = [&](const PlanFault& fault) {
      return std::find(rule.keys.begin(), rule.keys.end(), fault.key) != rule.keys.end();
    };
    if (std::any_of(known_faults.begin(), known_faults.end(), looked_at)) continue;
    (rule.holds_for(plan, num_ranks) ? held : broken).push_back(&rule);
  }
  std::vector<PlanFault> faults;
  for (const Rule* rule : broken) {
    const auto is_mended_by = [&](const Plan& trial) {
      const auto holds = [&](const Rule* r) { return r->holds_for(trial, num_ranks); };
      return holds(rule) && std::all_of(held.begin(), held.end(), holds);
    };
    faults.push_back(rule->fault({plan, num_ranks, is_mended_by}));
    faults.back().involved = rule->keys;
  }
  return faults;
}

}  // namespace weft::plan_rules
