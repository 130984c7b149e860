// Folds nodes of the tree that come in index order down to the root: what a slice's owner does with
// the nodes of all ranks. Adds in the given buffers; sends nothing.
#pragma once

#include <cstddef>

#include "core/reduce_tree.hpp"
#include "parallel/comm/collective.hpp"

namespace weft {

class TreeFold {
 public:
  // `output`: `count` elements, where the root shall lie. May be one of the values that are pushed.
  TreeFold(Precision precision, index_t num_leaves, index_t count, std::byte* output);

  // `value`: the node's elements; they may be overwritten, and must stay until finish().
  void push(Range node, std::byte* value);
  // After the last node: the root is in `output`.
  void finish();

 private:
  struct Part {
    Range leaves;
    std::byte* data;
  };

  Part add(Part left, Part right) const;

  Precision precision_;
  Range root_;
  index_t count_;
  std::byte* output_;
  reduce_tree::Stack<Part> stack_;
};

}  // namespace weft
