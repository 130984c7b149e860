// From a list of computations to one that a rank can run: each gets the messages that it needs.
#pragma once

#include "parallel/pipeline/schedule.hpp"

namespace weft::pipeline {

// Around each computation of stage s of p:
//
//   F k:  RA k (s > 0)      F k   SA k (s < p-1; the last stage's forward yields the loss)
//   B k:  RG k (s < p-1)    B k   SG k (s > 0)
//
// Throws Error(failed) where the list has messages already.
Schedule lower(const Schedule& schedule);

}  // namespace weft::pipeline
