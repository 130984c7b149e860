// Searches for the values of a few keys that mend a broken rule without breaking another one.
// Internal to this folder.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/plan/nearest.hpp"
#include "parallel/plan/plan_keys.hpp"
#include "parallel/plan/plan_rules.hpp"

namespace weft::plan_rules {

using Ranks = std::optional<index_t>;  // started, if they are to match the layout
using Fixes = std::vector<PlanFix>;

// What the fault of a broken rule is made from.
struct Question {
  const Plan& plan;
  Ranks num_ranks;
  // Whether the rule holds for a changed plan, and every other rule that held before still does.
  std::function<bool(const Plan&)> is_mended_by;
};

inline std::string text_of(index_t value) { return fmt::format("{}", value); }
IntegerRange range_of(const char* key);

// Appends the legal values of one key nearest to its present one, among multiples of `step` up to
// `most`. `field` is that key's number inside `trial`, which `legal()` looks at.
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
Fixes layouts_for(const Plan& plan, index_t num_ranks);

// Fixes by the size of one axis: other layouts for the same ranks where their number is given, else
// the nearest size of this axis alone. `size`: of that axis, inside a layout.
Fixes axis_fixes(const Question& question, const char* key, index_t LayoutPlan::*size);

}  // namespace weft::plan_rules
