// Reading and writing lengths of time; see the header.
#include "parallel/plan/time_span.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace weft {

namespace {

struct Unit {
  char letter;
  index_t seconds;
};
constexpr std::array<Unit, 4> units = {{{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};

}  // namespace

std::optional<TimeSpan> parse_time_span(std::string_view text) {
  TimeSpan span;
  if (text.empty()) return std::nullopt;
  auto unit = units.begin();
  while (!text.empty()) {
    index_t count = 0;
    // A sign would be read as part of the number.
    if (text.front() < '0' || text.front() > '9') return std::nullopt;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (status != std::errc{} || end == text.data() + text.size()) return std::nullopt;
    while (unit != units.end() && unit->letter != *end) ++unit;
    if (unit == units.end() || count > longest_time_span_s) return std::nullopt;
    span.seconds += count * unit->seconds;
    ++unit;
    text.remove_prefix(static_cast<std::size_t>(end + 1 - text.data()));
  }
  if (span.seconds > longest_time_span_s) return std::nullopt;
  return span;
}

std::string text_of(TimeSpan span) {
  if (span.seconds == 0) return "0s";
  std::string text;
  for (const Unit& unit : units) {
    if (const index_t count = span.seconds / unit.seconds; count > 0)
      text += fmt::format("{}{}", count, unit.letter);
    span.seconds %= unit.seconds;
  }
  return text;
}

}  // namespace weft
