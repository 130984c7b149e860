// One run of a layout on its ranks: steps, account of their time, hashes. Prints nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/layout_table.hpp"
#include "apps/run_start.hpp"
#include "parallel/comm/transport.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// What one rank has measured; its text is for the way to the others.
struct RankRun {
  StepStatistics steps{0};
  nlohmann::ordered_json metrics;
  std::string transport;
  std::string figures;
};

// Collective over the transport. All steps of the plan, then with `evaluates` its metrics on the
// validation part, which no figure counts; `on_step` is called after each step. Throws what Trainer
// throws.
RankRun run_layout(const Plan& plan, const TrainingData& data, Transport& transport,
                   index_t num_warm_up, bool evaluates,
                   const std::function<void(index_t step)>& on_step);

// Local. `figures`: of all ranks of the layout, in rank order. `mine`: this rank's, if it was one.
LayoutRun combine(const std::vector<std::string_view>& figures, RankRun mine);

}  // namespace weft
