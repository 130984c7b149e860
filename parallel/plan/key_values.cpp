// How the values of plan_keys.hpp's table are put in and printed. Each function is one visit over
// the types a field can have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "parallel/plan/key_field.hpp"

namespace weft {

namespace {

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

bool assign_optional_number(const KeyValue& value, std::optional<double>& target) {
  double number = 0.0;
  if (!assign_number(value, number)) return false;
  target = number;
  return true;
}

bool assign_pair(const KeyValue& value, double& first, double& second) {
  std::vector<double> pair;
  if (const auto* integers = std::get_if<std::vector<index_t>>(&value)) {
    for (const index_t integer : *integers) pair.push_back(static_cast<double>(integer));
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    pair = *numbers;
  }
  if (pair.size() != 2) return false;
  first = pair[0];
  second = pair[1];
  return true;
}

bool assign_time(const KeyValue& value, TimeSpan& target) {
  std::optional<TimeSpan> span;
  if (const auto* text = std::get_if<std::string>(&value)) span = parse_time_span(*text);
  const auto* seconds = std::get_if<index_t>(&value);
  if (seconds != nullptr && *seconds >= 0 && *seconds <= longest_time_span_s) span = {*seconds};
  if (span) target = *span;
  return span.has_value();
}

bool assign_list(const KeyValue& value, const IntegerList& field, Plan& plan) {
  const auto* word = std::get_if<std::string>(&value);
  const auto* list = std::get_if<std::vector<index_t>>(&value);
  const bool sets_flag = field.flag != nullptr && word != nullptr && *word == field.flag_word;
  const bool is_empty = sets_flag || (word != nullptr && *word == field.empty_word);
  if (!is_empty && (list == nullptr || list->empty())) return false;
  field.values(plan) = is_empty ? std::vector<index_t>() : *list;
  if (field.flag != nullptr) field.flag(plan) = sets_flag;
  return true;
}

std::string text_of_list(const IntegerList& field, Plan& plan) {
  if (!field.values(plan).empty()) return list_text(field.values(plan));
  const bool is_set = field.flag != nullptr && field.flag(plan);
  return toml_string(is_set ? field.flag_word : field.empty_word);
}

}  // namespace

bool assign(const PlanKey& key, Plan& plan, const KeyValue& value) {
  return std::visit(
      Overloaded{
          [&](FieldOf<std::string> f) { return assign_as(value, f(plan)); },
          [&](FieldOf<bool> f) { return assign_as(value, f(plan)); },
          [&](FieldOf<index_t> f) { return assign_as(value, f(plan)); },
          [&](FieldOf<std::optional<index_t>> f) { return assign_optional(value, f(plan)); },
          [&](FieldOf<std::uint64_t> f) { return assign_unsigned(value, f(plan)); },
          [&](FieldOf<double> f) { return assign_number(value, f(plan)); },
          [&](FieldOf<std::optional<double>> f) { return assign_optional_number(value, f(plan)); },
          [&](NumberPair f) { return assign_pair(value, f.first(plan), f.second(plan)); },
          [&](const IntegerList& f) { return assign_list(value, f, plan); },
          [&](FieldOf<NumericsMode> f) { return assign_word(key, value, f(plan)); },
          [&](FieldOf<LastBatch> f) { return assign_word(key, value, f(plan)); },
          [&](FieldOf<TimeSpan> f) { return assign_time(value, f(plan)); }},
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

std::string list_text(const std::vector<index_t>& list) {
  if (list.empty()) return toml_string(even_word);
  return fmt::format("[{}]", fmt::join(list, ", "));
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
                 [&](FieldOf<std::optional<double>> f) {
                   return f(plan) ? number_text(*f(plan)) : std::string();
                 },
                 [&](NumberPair f) {
                   return fmt::format("[{}, {}]", number_text(f.first(plan)),
                                      number_text(f.second(plan)));
                 },
                 [&](const IntegerList& f) { return text_of_list(f, plan); },
                 [&](FieldOf<NumericsMode> f) { return word(f(plan)); },
                 [&](FieldOf<LastBatch> f) { return word(f(plan)); },
                 [&](FieldOf<TimeSpan> f) {
                   return f(plan).seconds > 0 ? toml_string(text_of(f(plan))) : std::string();
                 }},
      key.field);
}

}  // namespace weft
