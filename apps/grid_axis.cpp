#include "apps/grid_axis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "parallel/plan/nearest.hpp"

namespace weft {

namespace {

// More take days, and are a slip.
constexpr std::size_t most_combinations = 4096;

[[noreturn]] void fail(const std::string& message) { throw Error(ExitCode::usage, message); }

// Parts of `text` between separators; not inside brackets or quotes. Empty parts are kept.
template <class IsSeparator>
std::vector<std::string> split(std::string_view text, IsSeparator&& is_separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && depth == 0 && is_separator(c)) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      --depth;
    }
  }
  if (depth != 0 || quote != '\0') {
    fail(fmt::format("a {} without its other half in {}", quote != '\0' ? "quote" : "bracket",
                     parts.back()));
  }
  return parts;
}

// The last part of a key's name: "tp" of layout.tp.
std::string short_name(const PlanKey& key) { return key.name.substr(key.name.rfind('.') + 1); }

bool is_grid_key(const PlanKey& key) {
  return key.name.starts_with("layout.") || key.name == "comm.transport" ||
         key.name == "comm.bucket_bytes";
}

const PlanKey& key_named(const std::string& name) {
  std::vector<std::string> names;
  for (const PlanKey& key : plan_keys()) {
    if (!is_grid_key(key)) continue;
    if (name == key.name || name == short_name(key)) return key;
    names.push_back(short_name(key));
  }
  fail(
      fmt::format("{}: not a key of the layout; did you mean {}? A grid may have {}. Other keys "
                  "are the same on all layouts: --set KEY=VALUE",
                  name, names[nearest_name(name, names)], fmt::join(names, ", ")));
}

std::optional<index_t> integer_of(std::string_view word) {
  index_t value = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (word.empty() || error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<std::vector<index_t>> list_of(std::string_view word) {
  if (word.size() < 2 || word.front() != '[' || word.back() != ']') return std::nullopt;
  std::vector<index_t> list;
  const auto is_comma = [](char c) { return c == ','; };
  for (std::string part : split(word.substr(1, word.size() - 2), is_comma)) {
    std::erase(part, ' ');
    const std::optional<index_t> value = integer_of(part);
    if (!value) return std::nullopt;
    list.push_back(*value);
  }
  return list;
}

KeyValue value_of(const PlanKey& key, std::string word) {
  if (const auto value = integer_of(word)) return KeyValue(*value);
  if (const auto list = list_of(word)) return KeyValue(*list);
  if (word == "true" || word == "false") return KeyValue(word == "true");
  const bool is_quoted = word.size() >= 2 && (word.front() == '"' || word.front() == '\'');
  if (is_quoted) word = word.substr(1, word.size() - 2);
  if (key.name == "layout.order") std::replace(word.begin(), word.end(), '-', ',');
  return KeyValue(word);
}

// What no plan may have is a slip; what this plan may not have is for layouts_of to judge.
void check_value(const PlanKey& key, const KeyValue& value, const std::string& word) {
  Plan trial;
  if (!assign(key, trial, value)) {
    fail(fmt::format("{}: expected {}; found {}", short_name(key), expected_text(key),
                     word.empty() ? "nothing" : word));
  }
  for (const PlanFault& fault : check_keys(trial)) {
    if (fault.key == key.name) fail(short_name(key) + ": " + fault.message);
  }
}

GridAxis parse_axis(const std::string& item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail(
        fmt::format("expected KEY=VALUE,VALUE... apart by spaces, such as \"tp=1,2 dp=1,2\"; "
                    "found \"{}\"",
                    item));
  }
  GridAxis axis{.key = &key_named(item.substr(0, equals)), .values = {}};
  const auto is_comma = [](char c) { return c == ','; };
  for (const std::string& word : split(std::string_view(item).substr(equals + 1), is_comma)) {
    axis.values.push_back(value_of(*axis.key, word));
    check_value(*axis.key, axis.values.back(), word);
  }
  return axis;
}

std::vector<GridAxis> parse_axes(std::string_view text) {
  std::vector<GridAxis> axes;
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  for (const std::string& item : split(text, is_space)) {
    if (item.empty()) continue;
    GridAxis axis = parse_axis(item);
    const auto is_same = [&](const GridAxis& other) { return other.key == axis.key; };
    if (std::any_of(axes.begin(), axes.end(), is_same)) {
      fail(fmt::format("{} is given twice; put all values into one list", short_name(*axis.key)));
    }
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) fail("is empty; give lists of values, such as \"tp=1,2 dp=1,2\"");
  std::size_t num_combinations = 1;
  for (const GridAxis& axis : axes) {
    num_combinations *= axis.values.size();
    if (num_combinations > most_combinations) {
      fail(fmt::format("expected at most {} combinations; found more. Give fewer values",
                       most_combinations));
    }
  }
  return axes;
}

}  // namespace

std::vector<GridAxis> parse_grid(std::string_view text, std::string_view from) {
  try {
    return parse_axes(text);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", from, error.what()));
  }
}

}  // namespace weft
