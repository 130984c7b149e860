// The text of `weft layouts --grid` and of a plan's study.candidates: keys of a plan's layout, each
// with the values to try.
#pragma once

#include <string_view>
#include <vector>

#include "parallel/plan/plan_keys.hpp"

namespace weft {

// One KEY=VALUE,VALUE of a grid.
struct GridAxis {
  const PlanKey* key;
  std::vector<KeyValue> values;
};

// Items KEY=VALUE,VALUE... apart by spaces. Keys are those of a plan's layout by their last names,
// and transport and bucket_bytes; commas inside brackets or quotes belong to a value, and an order
// may be written tp-dp-pp. Throws Error(usage), which begins with `from`, for a key that there is
// not, or given twice, for a value that no plan may have, and for more combinations than anybody
// waits for.
std::vector<GridAxis> parse_grid(std::string_view text, std::string_view from = "--grid");

}  // namespace weft
