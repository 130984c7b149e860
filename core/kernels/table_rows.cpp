#include "core/kernels/table_rows.hpp"

#include "core/kernels/reduce.hpp"

namespace weft::kernels {

void take_table_rows(Context& context, const float* table, Range held, const std::int32_t* ids,
                     index_t num_rows, index_t n, float* out) {
  context.device.parallel_for(
      "weft/take_table_rows", num_rows, KOKKOS_LAMBDA(index_t i) {
        if (!held.contains(ids[i])) return;
        const float* row = table + (ids[i] - held.begin) * n;
        for (index_t j = 0; j < n; ++j) out[i * n + j] = row[j] + 0.0f;
      });
}

RowsById rows_by_id(Context& context, std::span<const std::int32_t> ids, Range range) {
  std::vector<std::int32_t> begins(static_cast<std::size_t>(range.size()) + 1, 0);
  const auto place_of = [&](std::int32_t id) { return static_cast<std::size_t>(id - range.begin); };
  for (const std::int32_t id : ids) {
    if (range.contains(id)) ++begins[place_of(id) + 1];
  }
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::vector<std::int32_t> rows(static_cast<std::size_t>(begins.back()));
  std::vector<std::int32_t> next(begins.begin(), begins.end() - 1);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (!range.contains(ids[row])) continue;
    rows[static_cast<std::size_t>(next[place_of(ids[row])]++)] = static_cast<std::int32_t>(row);
  }
  const auto to_device = [&](const std::vector<std::int32_t>& from) {
    Tensor to(context.arena, MemoryKind::workspace, {static_cast<index_t>(from.size())},
              DType::i32);
    copy_to_device(to.raw(), from.data(), to.num_bytes());
    return to;
  };
  return {range, to_device(begins), to_device(rows)};
}

void sum_rows_by_id(Context& context, const float* x, const RowsById& by_id, Range held, index_t n,
                    float* sums, bool accumulate) {
  const std::int32_t* begins = by_id.begins.data<std::int32_t>() + (held.begin - by_id.range.begin);
  const std::int32_t* rows = by_id.rows.data<std::int32_t>();
  const index_t groups = (n + column_group - 1) / column_group;
  context.device.parallel_for(
      "weft/sum_rows_by_id", held.size() * groups, KOKKOS_LAMBDA(index_t i) {
        const index_t id = i / groups;
        const index_t first = i % groups * column_group;
        const index_t width = n - first < column_group ? n - first : column_group;
        float* sum = sums + id * n + first;
        index_t k = begins[id];
        const index_t end = begins[id + 1];
        if (!accumulate) {
          for (index_t j = 0; j < width; ++j) sum[j] = k < end ? x[rows[k] * n + first + j] : 0.0f;
          if (k < end) ++k;
        }
        for (; k < end; ++k) {
          const float* row = x + rows[k] * n + first;
          for (index_t j = 0; j < width; ++j) sum[j] += row[j];
        }
      });
}

}  // namespace weft::kernels
