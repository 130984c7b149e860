// Faults of the model's sizes against its pieces.
#include <algorithm>
#include <numeric>

#include "parallel/plan/rule_faults.hpp"

namespace weft::plan_rules {

namespace {

// Where pieces are counted: shards, or in fast mode the tp ranks.
const char* pieces_key(const Plan& plan) {
  return plan.is_exact() ? "numerics.shards" : "layout.tp";
}
const char* pieces_name(const Plan& plan) {
  return plan.is_exact() ? "numerics.shards" : "tp ranks of fast mode";
}

// Other numbers of pieces.
Fixes pieces_fixes(const Question& question) {
  if (!question.plan.is_exact()) return axis_fixes(question, "layout.tp", &LayoutPlan::tp);
  Fixes fixes;
  Plan trial = question.plan;
  add_nearest(fixes, "numerics.shards", trial.numerics.shards,
              [&] { return question.is_mended_by(trial); });
  return fixes;
}

// "1, 2, 3 or 6": the divisors of a number, as far as they are few.
std::string divisors_text(index_t number) {
  std::vector<index_t> divisors;
  for (index_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  constexpr std::size_t most_shown = 12;
  if (divisors.size() > most_shown) return "";
  std::string text;
  for (const index_t d : divisors) {
    const char* separator = d == 1 ? ", so " : d == number ? " or " : ", ";
    text += separator + text_of(d);
  }
  return text;
}

}  // namespace

PlanFault model_fault(const Question& question) {
  const Plan& plan = question.plan;
  std::string expected;
  Fixes fixes;
  for (const std::string& model : models_for(plan.task)) {
    expected += (expected.empty() ? "" : " or ") + toml_string(model);
    // Another kind may not use a key that is given.
    Plan trial = plan;
    trial.model.kind = model;
    if (check_keys(trial).empty() && question.is_mended_by(trial))
      fixes.push_back({{"model.kind", toml_string(model)}});
  }
  return make_fault(
      "model.kind",
      fmt::format("{} for task.dataset = {}", expected, toml_string(plan.task.dataset)),
      toml_string(plan.model.kind), std::move(fixes));
}

PlanFault pieces_fault(const Question& question) {
  const Plan& plan = question.plan;
  const index_t num_pieces = plan.num_pieces();
  Fixes fixes = pieces_fixes(question);
  Plan trial = plan;
  const index_t step = num_pieces / std::gcd(num_pieces, plan.model.mlp_ratio);
  add_nearest(fixes, "model.hidden", trial.model.hidden, step, range_of("model.hidden").most,
              [&] { return question.is_mended_by(trial); });
  const std::string expected = fmt::format("a feed-forward width that is a multiple of the {} {}",
                                           num_pieces, pieces_name(plan));
  const std::string found = fmt::format("hidden {} x mlp_ratio {} = {}", plan.model.hidden,
                                        plan.model.mlp_ratio, plan.feed_forward());
  return make_fault(pieces_key(plan), expected, found, std::move(fixes));
}

namespace {

// Numbers of heads near the plan's that fit.
void add_heads(const Question& question, Fixes& fixes) {
  Plan trial = question.plan;
  add_nearest(fixes, "model.heads", trial.model.heads, trial.num_pieces(),
              range_of("model.heads").most, [&] { return question.is_mended_by(trial); });
}

// Where no single change is enough: heads of whole pieces, and the width nearest to the plan's that
// they divide.
void add_heads_with_hidden(const Plan& plan, Fixes& fixes) {
  const index_t pieces = plan.num_pieces(), most = range_of("model.hidden").most;
  const index_t heads = std::clamp(plan.model.heads / pieces * pieces, pieces, most);
  const index_t hidden = std::clamp(plan.model.hidden / heads * heads, heads, most);
  fixes.push_back({{"model.heads", text_of(heads)}, {"model.hidden", text_of(hidden)}});
}

}  // namespace

PlanFault heads_fault(const Question& question) {
  const Plan& plan = question.plan;
  const index_t heads = plan.model.heads, num_pieces = plan.num_pieces();
  const bool in_whole_pieces = heads % num_pieces == 0;
  Fixes fixes;
  if (plan.model.hidden % heads == 0) {
    fixes = pieces_fixes(question);
    add_heads(question, fixes);
    if (fixes.empty()) add_heads_with_hidden(plan, fixes);
    return make_fault(pieces_key(plan),
                      fmt::format("a divisor of model.heads {}{}", heads, divisors_text(heads)),
                      text_of(num_pieces), std::move(fixes));
  }
  add_heads(question, fixes);
  Plan trial = plan;
  if (in_whole_pieces) {
    add_nearest(fixes, "model.hidden", trial.model.hidden, heads, range_of("model.hidden").most,
                [&] { return question.is_mended_by(trial); });
  }
  if (fixes.empty()) add_heads_with_hidden(plan, fixes);
  return make_fault("model.heads",
                    fmt::format("a divisor of model.hidden {} that is a multiple of the {} {}",
                                plan.model.hidden, num_pieces, pieces_name(plan)),
                    text_of(heads), std::move(fixes));
}

namespace {

void add_patch(const Question& question, Fixes& fixes) {
  Plan trial = question.plan;
  add_nearest(fixes, "model.patch", trial.model.patch,
              [&] { return question.is_mended_by(trial); });
}

}  // namespace

PlanFault patch_fault(const Question& question) {
  Fixes fixes;
  add_patch(question, fixes);
  return make_fault("model.patch",
                    fmt::format("a divisor of the {} pixels of an image's side",
                                sample_shape(question.plan.task).side),
                    text_of(question.plan.model.patch), std::move(fixes));
}

PlanFault buckets_fault(const Question& question) {
  const Plan& plan = question.plan;
  const std::vector<index_t>& buckets = plan.task.length_buckets;
  std::vector<index_t> nearest;
  for (const index_t bucket : buckets) {
    if (bucket < plan.task.tokens) nearest.push_back(bucket);
  }
  std::sort(nearest.begin(), nearest.end());
  nearest.erase(std::unique(nearest.begin(), nearest.end()), nearest.end());
  nearest.push_back(plan.task.tokens);
  Fixes fixes = {{{"task.length_buckets", list_text(nearest)}}};
  // The list may be right and the tokens wrong.
  Plan trial = plan;
  trial.task.tokens = buckets.back();
  if (question.is_mended_by(trial))
    fixes.push_back({{"task.tokens", text_of(buckets.back())}});
  return make_fault("task.length_buckets",
                    fmt::format("lengths that rise and end with task.tokens {}", plan.task.tokens),
                    list_text(buckets), std::move(fixes));
}

PlanFault input_fault(const Question& question) {
  const Plan& plan = question.plan;
  Fixes fixes = pieces_fixes(question);
  if (plan.is_vit()) add_patch(question, fixes);
  return make_fault(
      pieces_key(plan),
      plan.is_vit()
          ? fmt::format("at most one piece per input feature of a patch: {} x {} x {} "
                        "= {}",
                        sample_shape(plan.task).channels, plan.model.patch, plan.model.patch,
                        plan.features_per_token())
          : fmt::format("at most one piece per input feature: {}", plan.features_per_token()),
      text_of(plan.num_pieces()), std::move(fixes));
}

}  // namespace weft::plan_rules
