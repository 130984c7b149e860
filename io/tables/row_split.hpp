// Which rows of a table are for training, validation and test, where the data set itself does not
// say: by time, at random, or by groups that stay together. Functions of their arguments alone, so
// every rank has the same parts.
#pragma once

#include <cstdint>
#include <span>

#include "core/range.hpp"
#include "io/split.hpp"

namespace weft {

struct RowCounts {
  index_t train = 0;
  index_t validation = 0;
  index_t test = 0;
};

// The indices of the splits are row numbers. All three throw Error(usage) where train < 1, a count
// is negative, or the sum is above num_rows.

// Of a table in the order of time: the first rows are for training, those behind them for
// validation, and those behind these for the test. Nothing is shuffled, so nothing that is learnt
// comes from after what it is judged by.
Split split_by_time(index_t num_rows, const RowCounts& counts);

// By make_split's order of (seed, row): the first `validation` rows, the next
// `train` rows, and the last `test` rows of it. So with test = 0 it is make_split's, and neither
// the validation nor the test part changes where the others' counts do.
Split split_at_random(index_t num_rows, const RowCounts& counts, std::uint64_t seed);

// `groups`: of each row the number of its group (0 or more). Groups are taken whole, in the order
// of 64 random bits of (seed, number): the validation part takes groups until it has at least its
// count, then the test part, then the training part; the others are unused. A part has more rows
// than asked for by less than the group it took last; Error(usage) where the training part ends
// with fewer than its count.
Split split_by_group(std::span<const index_t> groups, const RowCounts& counts, std::uint64_t seed);

}  // namespace weft
