#include "io/checkpoint/pins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "core/error.hpp"
#include "io/extent_reader.hpp"
#include "io/file.hpp"

namespace weft {

namespace {

constexpr std::uint64_t most_pins_bytes = std::uint64_t{1} << 20;

std::string pins_path(const std::string& folder) { return folder + "/PINS"; }

}  // namespace

std::set<index_t> pinned_steps(const std::string& folder) {
  const std::string path = pins_path(folder);
  if (!std::filesystem::exists(path)) return {};
  std::set<index_t> steps;
  std::istringstream lines(read_whole_file(path, most_pins_bytes));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    const std::size_t last = line.find_last_not_of(" \t\r") + 1;
    index_t step = -1;
    const auto [end, status] = std::from_chars(line.data() + first, line.data() + last, step);
    require(status == std::errc() && end == line.data() + last && step >= 0, ExitCode::data,
            fmt::format("{}:{}: expected the number of a step, found \"{}\"; nothing is removed "
                        "from {} until the line is mended",
                        path, number, line.substr(first, last - first), folder));
    steps.insert(step);
  }
  return steps;
}

void pin_steps(const std::string& folder, const std::vector<index_t>& steps) {
  const std::set<index_t> known = pinned_steps(folder);
  const std::string path = pins_path(folder);
  std::string text =
      std::filesystem::exists(path) ? read_whole_file(path, most_pins_bytes) : std::string();
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (const index_t step : steps) {
    if (!known.contains(step)) text += fmt::format("{}\n", step);
  }
  write_file(path, text);
}

}  // namespace weft
