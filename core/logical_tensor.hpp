// What a parameter is to the outside: tensors with global names and shapes, without pads and
// without the order in which a layer keeps rows. Mostly one tensor of the parameter's own name; q,
// k and v lie in one parameter in turns of rows, and are three tensors:
//
//   block.0.qkv.weight, turns {q, k, v} of d rows      | q head 0 | k head 0 | v head 0 | q head 1
//   | .. block.0.q.weight                                   | q head 0 | q head 1 | ..
//
// Checkpoints speak of these tensors alone; this file translates between them and local storage.
#pragma once

#include <string>
#include <vector>

#include "core/parameter.hpp"

namespace weft {

struct LogicalTensor {
  std::string name;
  Shape global;  // one or two dims
  friend bool operator==(const LogicalTensor&, const LogicalTensor&) = default;
};

// In the order of the parameter's turns.
std::vector<LogicalTensor> logical_tensors(const Parameter& parameter);

// A box of one of a parameter's tensors; a tensor of one dim is one row.
struct TensorBox {
  index_t tensor = 0;  // which of logical_tensors()
  Box box;
  friend bool operator==(const TensorBox&, const TensorBox&) = default;
};

// Elements `elements` of a box, row by row, as up to three boxes: the rest of a row, whole rows,
// the begin of a row. Empty ones are left out.
std::vector<Box> boxes_of(const Box& whole, Range elements);

// What piece `shard` holds of a tensor, pads left out.
Box box_of_piece(const Parameter& parameter, index_t shard, index_t tensor);

// The elements of local storage in `local` (relative to the parameter, inside piece `shard`) as
// boxes: whole rows, one box for each tensor, and before and after them what is begun of a row.
// Each element is in one box; pads are in none; empty boxes are left out.
std::vector<TensorBox> boxes_of(const Parameter& parameter, index_t shard, Range local);

// Consecutive elements of a box, row by row, that lie consecutively in storage.
struct StoredRun {
  index_t local = 0;     // first element in storage, relative to the parameter
  index_t position = 0;  // first element in the box, row-major
  index_t length = 0;
  friend bool operator==(const StoredRun&, const StoredRun&) = default;
};

// The runs of `box`, which lies in piece `shard` whole, in the order of positions; as long as they
// can be.
std::vector<StoredRun> runs_of(const Parameter& parameter, index_t shard, const TensorBox& box);

}  // namespace weft
