#include "io/step_lines.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace weft {

namespace {

struct StepLine {
  index_t step;
  std::string_view text;  // without its line feed
};

// The step of a line; none where it is not an object with one, or not a number of a step.
std::optional<index_t> step_of(std::string_view line) {
  const nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
  if (!record.is_object()) return std::nullopt;
  const auto entry = record.find("step");
  if (entry == record.end() || !entry->is_number_integer()) return std::nullopt;
  const auto step = entry->get<index_t>();
  if (step < 1) return std::nullopt;
  return step;
}

}  // namespace

std::string lines_until(std::string_view text, index_t last_step, LinesPerStep lines_per_step) {
  std::vector<StepLine> kept;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    const std::optional<index_t> step = step_of(line);
    if (!step || *step > last_step) continue;
    const index_t least_replaced = lines_per_step == LinesPerStep::one ? *step : *step + 1;
    while (!kept.empty() && kept.back().step >= least_replaced) kept.pop_back();
    kept.push_back({*step, line});
  }
  std::string result;
  for (const StepLine& line : kept) {
    result += line.text;
    result += '\n';
  }
  return result;
}

}  // namespace weft
