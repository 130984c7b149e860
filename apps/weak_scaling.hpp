// Weak scaling of a grid of layouts: each replica keeps its batch, so the global one grows with
// their number. Pure.
#pragma once

#include "apps/layout_grid.hpp"

namespace weft {

// Of each layout to run: batch.global becomes that of the plan times dp, and the name says so where
// it is another. What is not legal so is skipped, with the reason.
void scale_weakly(GridLayouts& grid);

}  // namespace weft
