// Which rows of a microbatch a tp rank holds of a tensor whose features are whole.
#pragma once

#include "core/range.hpp"

namespace weft {

// All of them, or, with sequence parallel, those of its own token blocks (EXACT 3.5). `is_cut` says
// which, alike on all tp ranks: a range alone does not, since a rank's own may happen to be all.
struct Rows {
  index_t total = 0;  // samples x tokens
  Range mine;
  bool is_cut = false;

  static Rows all(index_t num_rows) { return {num_rows, {0, num_rows}, false}; }
  friend bool operator==(const Rows&, const Rows&) = default;
};

}  // namespace weft
