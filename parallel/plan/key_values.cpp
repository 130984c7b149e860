// How the values of plan_keys.hpp's table are put in, printed and checked. Each function is one
// visit over the types a field can have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel/plan/nearest.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <class T>
using FieldOf = T& (*)(Plan&);

// Enumerations are written as the words of the key's Choices, in the order of their values.
const std::vector<std::string>& words_of(const PlanKey& key) {
  return std::get<Choices>(key.legal).now;
}

bool assign_word(const PlanKey& key, const KeyValue& value, auto& target) {
  const std::string* word = std::get_if<std::string>(&value);
  if (word == nullptr) return false;
  const std::vector<std::string>& words = words_of(key);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != *word) continue;
    target = static_cast<std::remove_reference_t<decltype(target)>>(i);
    return true;
  }
  return false;
}

template <class T>
bool assign_as(const KeyValue& value, T& target) {
  const T* given = std::get_if<T>(&value);
  if (given != nullptr) target = *given;
  return given != nullptr;
}

bool assign_number(const KeyValue& value, double& target) {
  const index_t* integer = std::get_if<index_t>(&value);
  if (integer == nullptr) return assign_as(value, target);
  target = static_cast<double>(*integer);
  return true;
}

bool assign_unsigned(const KeyValue& value, std::uint64_t& target) {
  const index_t* integer = std::get_if<index_t>(&value);
  if (integer == nullptr || *integer < 0) return false;
  target = static_cast<std::uint64_t>(*integer);
  return true;
}

bool assign_optional(const KeyValue& value, std::optional<index_t>& target) {
  const index_t* integer = std::get_if<index_t>(&value);
  if (integer != nullptr) target = *integer;
  return integer != nullptr;
}

bool assign_pair(const KeyValue& value, double& first, double& second) {
  const auto* pair = std::get_if<std::pair<double, double>>(&value);
  if (pair == nullptr) return false;
  first = pair->first;
  second = pair->second;
  return true;
}

}  // namespace

bool assign(const PlanKey& key, Plan& plan, const KeyValue& value) {
  return std::visit(
      Overloaded{[&](FieldOf<std::string> f) { return assign_as(value, f(plan)); },
                 [&](FieldOf<bool> f) { return assign_as(value, f(plan)); },
                 [&](FieldOf<index_t> f) { return assign_as(value, f(plan)); },
                 [&](FieldOf<std::optional<index_t>> f) { return assign_optional(value, f(plan)); },
                 [&](FieldOf<std::uint64_t> f) { return assign_unsigned(value, f(plan)); },
                 [&](FieldOf<double> f) { return assign_number(value, f(plan)); },
                 [&](NumberPair f) { return assign_pair(value, f.first(plan), f.second(plan)); },
                 [&](FieldOf<NumericsMode> f) { return assign_word(key, value, f(plan)); },
                 [&](FieldOf<LastBatch> f) { return assign_word(key, value, f(plan)); }},
      key.field);
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  // TOML tells a float from an integer by its point or exponent; -0 would lose its sign.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string value_text(const PlanKey& key, const Plan& const_plan) {
  Plan plan = const_plan;  // the table's accessors serve writers; a copy serves readers
  const auto word = [&](auto value) {
    return toml_string(words_of(key)[static_cast<std::size_t>(value)]);
  };
  return std::visit(
      Overloaded{[&](FieldOf<std::string> f) { return toml_string(f(plan)); },
                 [&](FieldOf<bool> f) { return std::string(f(plan) ? "true" : "false"); },
                 [&](FieldOf<index_t> f) { return fmt::format("{}", f(plan)); },
                 [&](FieldOf<std::optional<index_t>> f) {
                   return f(plan) ? fmt::format("{}", *f(plan)) : std::string();
                 },
                 [&](FieldOf<std::uint64_t> f) { return fmt::format("{}", f(plan)); },
                 [&](FieldOf<double> f) { return number_text(f(plan)); },
                 [&](NumberPair f) {
                   return fmt::format("[{}, {}]", number_text(f.first(plan)),
                                      number_text(f.second(plan)));
                 },
                 [&](FieldOf<NumericsMode> f) { return word(f(plan)); },
                 [&](FieldOf<LastBatch> f) { return word(f(plan)); }},
      key.field);
}

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
    return fmt::format("an integer from {} to {}", range->least, range->most);
  }
  if (const auto* range = std::get_if<NumberRange>(&key.legal)) {
    return pair ? fmt::format("[a, b], each {}", range_text(*range)) : range_text(*range);
  }
  return std::holds_alternative<FieldOf<bool>>(key.field) ? "true or false" : "a string";
}

std::string fixes_text(const std::vector<PlanFix>& fixes) {
  std::string text;
  const std::string* last_key = nullptr;  // of the fix before, if it was a single change
  for (const PlanFix& fix : fixes) {
    const bool same_key = last_key != nullptr && fix.size() == 1 && fix[0].key == *last_key;
    if (!text.empty()) text += same_key ? " or " : ", or ";
    for (std::size_t i = 0; i < fix.size(); ++i) {
      if (i > 0) text += " with ";
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

PlanFault value_fault(const PlanKey& key, const std::string& found) {
  const auto* choices = std::get_if<Choices>(&key.legal);
  std::string shown = found;
  for (const std::string& word : choices != nullptr ? choices->later : std::vector<std::string>()) {
    if (toml_string(word) == found) shown += ", which is not in this version";
  }
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
  return value_text(*find_key(key.user_key), plan) == toml_string(key.user_value);
}

PlanFault unused_fault(const PlanKey& key, const Plan& plan) {
  const std::string user = value_text(*find_key(key.user_key), plan);
  return {.key = key.name,
          .message = fmt::format("{} = {} does not use it; remove it, or set {} = {}", key.user_key,
                                 user, key.user_key, toml_string(key.user_value)),
          .fixes = {{{key.user_key, toml_string(key.user_value)}}},
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
                 [&](FieldOf<double> f) { return in_range(f(plan), *numbers); },
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
    if (!is_legal(key, plan)) faults.push_back(value_fault(key, found));
    const auto is_user = [&](const PlanFault& fault) { return fault.key == key.user_key; };
    const bool user_is_known = std::none_of(faults.begin(), faults.end(), is_user);
    if (user_is_known && !is_used(key, plan) && found != value_text(key, defaults)) {
      faults.push_back(unused_fault(key, plan));
    }
  }
  return faults;
}

}  // namespace weft
