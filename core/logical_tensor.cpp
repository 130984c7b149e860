#include "core/logical_tensor.hpp"

#include <algorithm>
#include <cassert>

namespace weft {

namespace {

// A piece without its pads: rows of columns in the whole parameter, `stride` apart in storage. A
// vector is a column here, so that turns are turns of rows for both.
struct PieceRows {
  Box box;
  index_t stride;
};

bool is_vector(const Parameter& parameter) { return parameter.spec.global().num_dims() == 1; }

// Between a vector as one row, which is how the outside has it, and as a column.
Box turned(const Parameter& parameter, const Box& box) {
  return is_vector(parameter) ? Box{box.cols, box.rows} : box;
}

PieceRows piece_rows(const Parameter& parameter, index_t shard) {
  const ShardSpec& spec = parameter.spec;
  return {turned(parameter, spec.valid(shard)),
          is_vector(parameter) ? 1 : spec.block(shard).cols.size()};
}

// Elements of the piece that lie before `at` (relative to the piece), pads left out.
index_t elements_before(const PieceRows& piece, index_t at) {
  if (piece.box.num_elements() == 0) return 0;
  const index_t width = piece.box.cols.size();
  return std::min(at / piece.stride * width + std::min(at % piece.stride, width),
                  piece.box.num_elements());
}

index_t num_tensors(const Parameter& parameter) {
  return std::max(index_t{1}, static_cast<index_t>(parameter.turns.names.size()));
}

// Rows of a tensor among the first `row` rows of the parameter.
index_t rows_before(const Parameter& parameter, index_t tensor, index_t row) {
  const index_t n = num_tensors(parameter);
  if (n == 1) return row;
  const index_t turn = parameter.turns.rows, round = n * turn;
  return row / round * turn + std::clamp(row % round - tensor * turn, index_t{0}, turn);
}

// Where row `row` of a tensor is in the parameter: the inverse.
index_t row_in_parameter(const Parameter& parameter, index_t tensor, index_t row) {
  const index_t n = num_tensors(parameter);
  if (n == 1) return row;
  const index_t turn = parameter.turns.rows;
  return row / turn * n * turn + tensor * turn + row % turn;
}

// Where the rows of a tensor that follow `row` in the parameter without another's among them end.
index_t end_of_turn(const Parameter& parameter, index_t row, index_t end) {
  if (num_tensors(parameter) == 1) return end;
  return std::min(end, (row / parameter.turns.rows + 1) * parameter.turns.rows);
}

// Those elements of a box of the parameter that are a tensor's, as a box of the tensor.
Box part_of_tensor(const Parameter& parameter, index_t tensor, const Box& box) {
  return turned(parameter, {{rows_before(parameter, tensor, box.rows.begin),
                             rows_before(parameter, tensor, box.rows.end)},
                            box.cols});
}

}  // namespace

std::vector<LogicalTensor> logical_tensors(const Parameter& parameter) {
  Shape global = parameter.spec.global();
  if (parameter.turns.names.empty()) return {{parameter.name, global}};
  const index_t n = num_tensors(parameter);
  assert(global[0] % (n * parameter.turns.rows) == 0);
  global[0] /= n;
  std::vector<LogicalTensor> tensors;
  for (const std::string& name : parameter.turns.names) tensors.push_back({name, global});
  return tensors;
}

std::vector<Box> boxes_of(const Box& whole, Range elements) {
  std::vector<Box> boxes;
  const index_t width = whole.cols.size();
  const auto add = [&](index_t begin, index_t end) {  // in one row, or whole rows
    if (begin >= end) return;
    const index_t row = whole.rows.begin + begin / width, col = whole.cols.begin + begin % width;
    boxes.push_back({{row, row + (end - begin + width - 1) / width},
                     {col, col + std::min(end - begin, width)}});
  };
  if (elements.empty()) return boxes;
  const index_t first_row = std::min(round_up(elements.begin, width), elements.end);
  const index_t last_row = std::max(elements.end / width * width, first_row);
  add(elements.begin, first_row);
  add(first_row, last_row);
  add(last_row, elements.end);
  return boxes;
}

Box box_of_piece(const Parameter& parameter, index_t shard, index_t tensor) {
  return part_of_tensor(parameter, tensor, piece_rows(parameter, shard).box);
}

std::vector<TensorBox> boxes_of(const Parameter& parameter, index_t shard, Range local) {
  const PieceRows piece = piece_rows(parameter, shard);
  const index_t offset = parameter.spec.offset(shard);
  assert(offset <= local.begin && local.end <= offset + parameter.spec.block(shard).num_elements());
  const Range elements{elements_before(piece, local.begin - offset),
                       elements_before(piece, local.end - offset)};
  std::vector<TensorBox> boxes;
  for (const Box& box : boxes_of(piece.box, elements)) {
    for (index_t tensor = 0; tensor < num_tensors(parameter); ++tensor) {
      const Box part = part_of_tensor(parameter, tensor, box);
      if (part.num_elements() > 0) boxes.push_back({tensor, part});
    }
  }
  return boxes;
}

std::vector<StoredRun> runs_of(const Parameter& parameter, index_t shard, const TensorBox& of) {
  std::vector<StoredRun> runs;
  if (of.box.num_elements() == 0) return runs;
  const PieceRows piece = piece_rows(parameter, shard);
  const Box box = turned(parameter, of.box);
  const index_t width = box.cols.size();
  const index_t first = parameter.spec.offset(shard) + box.cols.begin - piece.box.cols.begin;
  for (index_t row = box.rows.begin; row < box.rows.end;) {
    const index_t end = width == piece.stride ? end_of_turn(parameter, row, box.rows.end) : row + 1;
    const index_t stored_row = row_in_parameter(parameter, of.tensor, row) - piece.box.rows.begin;
    runs.push_back(
        {first + stored_row * piece.stride, (row - box.rows.begin) * width, (end - row) * width});
    row = end;
  }
  return runs;
}

}  // namespace weft
