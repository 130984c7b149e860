#include "parallel/comm/tree_fold.hpp"

#include <cassert>
#include <cstring>

#include "parallel/comm/add.hpp"

namespace weft {

TreeFold::TreeFold(Precision precision, index_t num_leaves, index_t count, std::byte* output)
    : precision_(precision),
      root_{0, num_leaves},
      count_(count),
      output_(output),
      stack_(num_leaves) {}

void TreeFold::push(Range node, std::byte* value) {
  stack_.push(node, Part{node, value}, [this](Part left, Part right) { return add(left, right); });
}

TreeFold::Part TreeFold::add(Part left, Part right) const {
  const Range both{left.leaves.begin, right.leaves.end};
  std::byte* const sum = both == root_ ? output_ : left.data;
  add_values(precision_, count_, left.data, right.data, sum);
  return {both, sum};
}

void TreeFold::finish() {
  assert(stack_.nodes().size() == 1 && stack_.nodes().front().range == root_);
  const std::byte* const root = stack_.nodes().front().value.data;
  if (root != output_ && count_ > 0) {
    std::memcpy(output_, root, static_cast<std::size_t>(count_ * bytes_of(precision_)));
  }
}

}  // namespace weft
