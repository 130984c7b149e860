// The layouts that a grid means: those to run, each once, and those that cannot run here, with the
// reason. Pure: it runs nothing.
#pragma once

#include <string>
#include <vector>

#include "apps/grid_axis.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

struct GridLayout {
  Plan plan;  // what does not matter for its layout is as by default, so equal runs are equal plans
  std::string name;  // "tp=2 dp=2 pp=1 zero=1 ucx": what matters, and is not as by default
  bool is_baseline = false;  // stated as what the others are compared with
};

struct SkippedLayout {
  Plan plan;
  std::string name;
  std::string reason;
};

struct GridLayouts {
  std::vector<GridLayout> to_run;  // in the grid's order, its last key the fastest
  std::vector<SkippedLayout> skipped;
  index_t num_duplicates = 0;  // combinations that are the same run as one before
};

// Why two combinations may be one run, for people.
std::vector<std::string> duplicate_rules();

// Of all combinations of `axes`, put into `plan`, which is legal: what runs on at most `num_ranks`
// ranks with `transports` built in.
GridLayouts layouts_of(const Plan& plan, const std::vector<GridAxis>& axes, int num_ranks,
                       const std::vector<std::string>& transports);

}  // namespace weft
