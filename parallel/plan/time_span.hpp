// A length of time as a plan says it: "3h55m", or a whole number of seconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/range.hpp"

namespace weft {

struct TimeSpan {
  index_t seconds = 0;
  friend bool operator==(const TimeSpan&, const TimeSpan&) = default;
};

inline constexpr index_t longest_time_span_s = index_t{366} * 24 * 3600;

// Numbers of d, h, m and s, each at most once and in this order: "1d12h", "90m", "2s". Nothing
// where the text is not of that form, or means more than the longest span.
std::optional<TimeSpan> parse_time_span(std::string_view text);

// The shortest text that reads back: "3h55m", "0s".
std::string text_of(TimeSpan span);

}  // namespace weft
