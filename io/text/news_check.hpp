// Repeated texts of AG News, texts that two parts of a split share, and how many texts of each
// class each part has. For people and for tests; training uses none of it.
#pragma once

#include "io/row_check.hpp"
#include "io/split.hpp"
#include "io/text/ag_news.hpp"

namespace weft {

// Compares title and description; `in_some`: the description alone. The split and the indices count
// training rows first, behind them the test rows.
RowCheck check(const AgNews& data, const Split& split);

}  // namespace weft
