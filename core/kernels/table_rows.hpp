// Rows of a table by number, and the gradient of such a table: rows that share a number are added
// up one after the other, by one thread, never with atomics (EXACT 3.9, 3.10).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/context.hpp"
#include "core/tensor.hpp"

namespace weft::kernels {

// out[i, :] = table[ids[i] - held.begin, :] + 0 where ids[i] is in `held`; other rows of out are
// left alone. table: [held.size(), n]; ids: [num_rows] in device memory. The added 0 makes +0 of
// -0, as does any sum with what ranks without the row contribute.
void take_table_rows(Context& context, const float* table, Range held, const std::int32_t* ids,
                     index_t num_rows, index_t n, float* out);

// Numbers of rows sorted by id: those of id `i` of `range` are rows[begins[i - range.begin]] up to
// begins[i - range.begin + 1], in increasing order. Device memory, i32.
struct RowsById {
  Range range;
  Tensor begins;  // [range.size() + 1]
  Tensor rows;    // [how many have an id in `range`], or more
};

// `ids`: on the host, one a row. Rows whose id is not in `range` are left out. Local, on the host:
// a counting sort, which is stable.
RowsById rows_by_id(Context& context, std::span<const std::int32_t> ids, Range range);

// sums[id - held.begin, :] (+)= x[row, :] over the rows of that id, in sequence, for each id of
// `held`, a part of by_id.range. With `accumulate` the chain goes on from sums, else it begins with
// the first row; no rows: 0. x: [any, n]; sums: [held.size(), n].
void sum_rows_by_id(Context& context, const float* x, const RowsById& by_id, Range held, index_t n,
                    float* sums, bool accumulate);

}  // namespace weft::kernels
