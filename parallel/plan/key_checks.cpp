// What plan_keys.hpp's table says of values: what a key expects, whether a value is legal, and the
// fault where it is not.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel/plan/key_field.hpp"
#include "parallel/plan/nearest.hpp"

namespace weft {

namespace {

std::string choices_text(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += toml_string(words[i]);
  }
  return text;
}

std::string range_text(const NumberRange& range) {
  if (std::isinf(range.high)) {
    return fmt::format("a finite number {} {}", range.open_low ? "greater than" : "of at least",
                       range.low);
  }
  return fmt::format("a number in {}{}, {}{}", range.open_low ? "(" : "[", range.low, range.high,
                     range.open_high ? ")" : "]");
}

bool in_range(double value, const NumberRange& range) {
  if (!std::isfinite(value)) return false;
  const bool low = range.open_low ? value > range.low : value >= range.low;
  const bool high = range.open_high ? value < range.high : value <= range.high;
  return low && high;
}

bool in_range(auto value, const IntegerRange& range) {
  return std::cmp_greater_equal(value, range.least) && std::cmp_less_equal(value, range.most);
}

}  // namespace

std::string expected_text(const PlanKey& key) {
  const bool pair = std::holds_alternative<NumberPair>(key.field);
  if (const auto* choices = std::get_if<Choices>(&key.legal)) return choices_text(choices->now);
  if (const auto* range = std::get_if<IntegerRange>(&key.legal)) {
    if (const auto* list = std::get_if<IntegerList>(&key.field)) {
      const std::string words = list->flag == nullptr ? toml_string(list->empty_word)
                                                      : toml_string(list->empty_word) + ", " +
                                                            toml_string(list->flag_word);
      return fmt::format("{} or a list of integers from {} to {}", words, range->least,
                         range->most);
    }
    return fmt::format("an integer from {} to {}", range->least, range->most);
  }
  if (const auto* range = std::get_if<NumberRange>(&key.legal)) {
    return pair ? fmt::format("[a, b], each {}", range_text(*range)) : range_text(*range);
  }
  if (std::holds_alternative<FieldOf<TimeSpan>>(key.field))
    return "a time of d, h, m and s, or seconds (at most 366d; 0: none)";
  return std::holds_alternative<FieldOf<bool>>(key.field) ? "true or false" : "a string";
}

std::string fixes_text(const std::vector<PlanFix>& fixes) {
  std::string text;
  const std::string* last_key = nullptr;  // of the fix before, if it was a single change
  for (const PlanFix& fix : fixes) {
    const bool same_key = last_key != nullptr && fix.size() == 1 && fix[0].key == *last_key;
    if (!text.empty()) text += same_key ? " or " : ", or ";
    for (std::size_t i = 0; i < fix.size(); ++i) {
      if (i > 0) text += i == 1 ? " with " : " and ";
      text += same_key ? fix[i].value : fmt::format("{} = {}", fix[i].key, fix[i].value);
    }
    last_key = fix.size() == 1 ? &fix[0].key : nullptr;
  }
  return text;
}

PlanFault make_fault(std::string key, const std::string& expected, const std::string& found,
                     std::vector<PlanFix> fixes) {
  std::string message = fmt::format("expected {}; found {}", expected, found);
  if (!fixes.empty()) message += "; nearest legal: " + fixes_text(fixes);
  return {.key = std::move(key), .message = std::move(message), .fixes = std::move(fixes)};
}

namespace {

struct NearestValue {
  std::string text;
  bool is_example;  // an open end has no nearest value; an example says more than "greater than 0"
};

// The nearest legal value of one key: the most similar word, or an end of its range.
NearestValue nearest_value(const PlanKey& key, const std::string& found) {
  if (const auto* choices = std::get_if<Choices>(&key.legal)) {
    const std::string word = found.size() > 2 ? found.substr(1, found.size() - 2) : found;
    return {toml_string(choices->now[nearest_name(word, choices->now)]), false};
  }
  if (const auto* list = std::get_if<IntegerList>(&key.field))
    return {toml_string(list->empty_word), false};
  if (const auto* range = std::get_if<IntegerRange>(&key.legal)) {
    const bool below = found.starts_with('-') || found == "0";
    return {fmt::format("{}", below ? range->least : range->most), false};
  }
  const auto* range = std::get_if<NumberRange>(&key.legal);
  if (range == nullptr || std::holds_alternative<NumberPair>(key.field)) return {key.example, true};
  const bool below = found.starts_with('-') || found == "0.0";
  if (below && !range->open_low) return {number_text(range->low), false};
  if (!below && !range->open_high && found != "nan") return {number_text(range->high), false};
  return {key.example, true};
}

}  // namespace

namespace {

// Whether `found` is a value of a feature that is not built yet.
bool is_later(const PlanKey& key, const std::string& found) {
  if (const auto* choices = std::get_if<Choices>(&key.legal)) {
    const auto is_found = [&](const std::string& word) { return toml_string(word) == found; };
    return std::any_of(choices->later.begin(), choices->later.end(), is_found);
  }
  const auto* range = std::get_if<IntegerRange>(&key.legal);
  if (range == nullptr) return false;
  for (index_t value = range->most + 1; value <= range->later_most; ++value) {
    if (fmt::format("{}", value) == found) return true;
  }
  return false;
}

}  // namespace

PlanFault value_fault(const PlanKey& key, const std::string& found) {
  const std::string shown = found + (is_later(key, found) ? ", which is not in this version" : "");
  const NearestValue nearest = nearest_value(key, found);
  if (!nearest.is_example) {
    return make_fault(key.name, expected_text(key), shown, {{{key.name, nearest.text}}});
  }
  PlanFault fault =
      make_fault(key.name, expected_text(key) + ", such as " + nearest.text, shown, {});
  fault.fixes = {{{key.name, nearest.text}}};
  return fault;
}

bool is_used(const PlanKey& key, const Plan& plan) {
  if (key.user_key.empty()) return true;
  const std::string found = value_text(*find_key(key.user_key), plan);
  return std::any_of(key.user_values.begin(), key.user_values.end(),
                     [&](const std::string& user) { return toml_string(user) == found; });
}

PlanFault unused_fault(const PlanKey& key, const Plan& plan) {
  const std::string user = value_text(*find_key(key.user_key), plan);
  // Kinds of models that the data set is not for are no advice.
  std::vector<std::string> values = key.user_values;
  if (key.user_key == "model.kind") {
    const std::vector<std::string>& fitting = models_for(plan.task);
    std::erase_if(values, [&](const std::string& value) {
      return std::find(fitting.begin(), fitting.end(), value) == fitting.end();
    });
  }
  std::vector<PlanFix> fixes;
  for (const std::string& value : values) fixes.push_back({{key.user_key, toml_string(value)}});
  return {.key = key.name,
          .message = fmt::format(
              "{} = {} does not use it; remove it{}", key.user_key, user,
              values.empty() ? ""
                             : fmt::format(", or set {} = {}", key.user_key, choices_text(values))),
          .fixes = std::move(fixes),
          .involved = {key.user_key}};
}

namespace {

bool is_legal(const PlanKey& key, Plan& plan) {
  const auto* integers = std::get_if<IntegerRange>(&key.legal);
  const auto* numbers = std::get_if<NumberRange>(&key.legal);
  return std::visit(
      Overloaded{[&](FieldOf<std::string> f) {
                   const auto* choices = std::get_if<Choices>(&key.legal);
                   if (choices == nullptr) return true;
                   return std::find(choices->now.begin(), choices->now.end(), f(plan)) !=
                          choices->now.end();
                 },
                 [&](FieldOf<index_t> f) { return in_range(f(plan), *integers); },
                 [&](FieldOf<std::optional<index_t>> f) {
                   return !f(plan) || in_range(*f(plan), *integers);
                 },
                 [&](FieldOf<std::uint64_t> f) { return in_range(f(plan), *integers); },
                 [&](const IntegerList& f) {
                   const std::vector<index_t>& list = f.values(plan);
                   return std::all_of(list.begin(), list.end(),
                                      [&](index_t value) { return in_range(value, *integers); });
                 },
                 [&](FieldOf<double> f) { return in_range(f(plan), *numbers); },
                 [&](FieldOf<std::optional<double>> f) {
                   return !f(plan) || in_range(*f(plan), *numbers);
                 },
                 [&](NumberPair f) {
                   return in_range(f.first(plan), *numbers) && in_range(f.second(plan), *numbers);
                 },
                 [](auto) { return true; }},
      key.field);
}

}  // namespace

std::vector<PlanFault> check_keys(const Plan& const_plan) {
  Plan plan = const_plan;
  const Plan defaults;
  std::vector<PlanFault> faults;
  for (const PlanKey& key : plan_keys()) {
    const std::string found = value_text(key, plan);
    const bool is_default = found == value_text(key, defaults);
    const auto is_user = [&](const PlanFault& fault) { return fault.key == key.user_key; };
    const bool user_is_known = std::none_of(faults.begin(), faults.end(), is_user);
    if (!is_used(key, plan) && (user_is_known || is_default)) {
      if (!is_default) faults.push_back(unused_fault(key, plan));
    } else if (!is_legal(key, plan)) {
      faults.push_back(value_fault(key, found));
    }
  }
  return faults;
}

}  // namespace weft
