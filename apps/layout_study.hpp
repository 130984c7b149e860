// Which layouts `weft layouts` compares: those of its command line, else the candidates of the
// plan's [study], with the baseline that they are compared with. Pure: it runs nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/layout_grid.hpp"

namespace weft {

struct LayoutStudy {
  std::string candidates;  // a grid
  std::string baseline;    // one layout, as a grid with one value a key; empty: none is stated
  std::string from;        // "--grid" or "study.candidates": who named the candidates
};

// Where `grid` is given, the plan's candidates and baseline count for nothing. Throws Error(usage)
// where neither names a layout.
LayoutStudy choose_study(const Plan& plan, const std::optional<std::string>& grid);

// Throws Error(usage) with all reasons where none of the layouts that `from` names is to run.
void require_some(const GridLayouts& layouts, const std::string& from);

// As layouts_of of a grid, with the baseline first, also where it is none of the candidates. Throws
// Error(usage) for a slip in either text, where no candidate can run, and where the baseline
// cannot.
GridLayouts layouts_of(const Plan& plan, const LayoutStudy& study, int num_ranks,
                       const std::vector<std::string>& transports);

// What is wrong with the plan's [study] wherever it runs; `plan` is legal otherwise.
std::vector<PlanFault> study_faults(const Plan& plan);

}  // namespace weft
