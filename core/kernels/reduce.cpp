#include "core/kernels/reduce.hpp"

#include "core/kernels/elementwise.hpp"

namespace weft::kernels {

void sum_rows(Context& context, const float* x, index_t num_rows, index_t n, float* sums,
              bool accumulate) {
  const index_t groups = (n + column_group - 1) / column_group;
  context.device.parallel_for(
      "weft/sum_rows", groups, KOKKOS_LAMBDA(index_t i) {
        const index_t first = i * column_group;
        const index_t width = n - first < column_group ? n - first : column_group;
        sum_column_group(x + first, n, {0, num_rows}, width, sums + first, accumulate);
      });
}

void sum_token_blocks(Context& context, const float* x, Range rows, index_t num_rows, index_t n,
                      float* sums, index_t stride, bool accumulate) {
  const index_t groups = (n + column_group - 1) / column_group;
  const index_t num_blocks = context.numerics.num_token_blocks;
  const Range blocks = context.numerics.token_blocks;
  context.device.parallel_for(
      "weft/sum_token_blocks", blocks.size() * groups, KOKKOS_LAMBDA(index_t i) {
        const index_t slot = i / groups;
        const index_t first = i % groups * column_group;
        const index_t width = n - first < column_group ? n - first : column_group;
        const Range block = part_of(blocks.begin + slot, num_blocks, num_rows);
        sum_column_group(x + first, n, {block.begin - rows.begin, block.end - rows.begin}, width,
                         sums + slot * stride + first, accumulate);
      });
}

void tree_fold_rows(Context& context, float* x, index_t num_rows, index_t n, float* out) {
  // Level by level: node [k 2s, ...) = node [k 2s, +s) + node [k 2s + s, ...), where there is a
  // right child.
  for (index_t span = 1; span < num_rows; span *= 2) {
    const index_t pairs = (num_rows - span + 2 * span - 1) / (2 * span);
    context.device.parallel_for(
        "weft/tree_fold_rows", pairs * n, KOKKOS_LAMBDA(index_t i) {
          const index_t left = i / n * 2 * span;
          const index_t j = i % n;
          x[left * n + j] += x[(left + span) * n + j];
        });
  }
  copy(context, x, out, n);
}

}  // namespace weft::kernels
