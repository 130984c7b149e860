// `weft bench gemm PLAN`: the matrix products of a plan, whole and in pieces, against each other:
// what the machine gives and what the width of a shard costs.
#pragma once

#include <iosfwd>

#include "parallel/plan/plan.hpp"

namespace weft {

// One process. Text for people to `text`; with `json` one object on one line to `out`.
int bench_gemm(const Plan& plan, bool json, std::ostream& text, std::ostream& out);

}  // namespace weft
