// Repeated rows of a Bank Marketing table, rows that two parts of a split share, and how often each
// label is in each part. For people and for tests; training uses none of it.
#pragma once

#include "io/row_check.hpp"
#include "io/split.hpp"
#include "io/tables/bank.hpp"

namespace weft {

// Compares all columns but y, as text; `in_some`: without `duration`, too, as a model sees them.
// The indices are row numbers. A table has no customer number, so two clients may be alike by
// chance.
RowCheck check(const Bank& data, const Split& split);

}  // namespace weft
