// The figures of `weft check`, computed once and then written twice: for people and as JSON.
// Internal to check_command.
#pragma once

#include <nlohmann/json.hpp>

#include <iosfwd>
#include <string>
#include <vector>

#include "parallel/plan/memory_model.hpp"
#include "parallel/plan/traffic_model.hpp"

namespace weft {

// Smallest and largest of a figure over ranks.
template <class T>
struct Extremes {
  T min{};
  T max{};
};

// One axis of the grid: who works together, on what, and how evenly.
struct AxisReport {
  const char* name;                          // "tp"
  const char* items;                         // "pieces"
  std::vector<std::vector<index_t>> groups;  // world ranks; empty where the grid is large
  std::vector<index_t> shares;               // items of each rank
};

struct StageReport {
  Range blocks;
  index_t parameters = 0;
};

// For a plan without faults.
struct CheckReport {
  explicit CheckReport(const Plan& plan);

  // Above this many ranks lists of them help nobody.
  static constexpr index_t small_grid = 32;
  // Wider schedules do not fit on a line.
  static constexpr index_t most_slots = 36;

  const Plan& plan;
  std::vector<AxisReport> axes;  // tp, dp, pp
  TreeFactor tp_tree;
  TreeFactor dp_tree;
  std::vector<StageReport> stages;
  index_t num_microbatches;      // through the pipeline, on the replica with most
  double bubble;                 // ideal
  std::string grid;              // the schedule drawn over time; empty where it is large
  Extremes<index_t> parameters;  // of a rank, without pads
  Extremes<index_t> copies;      // of the local gradient, over dp ranks
  RankMemory memory;             // of the rank that needs most
  Extremes<double> tp_sent, dp_sent, pp_sent, sent;  // bytes a step and rank
  std::vector<PlanFault> advice;

 private:
  void add_axes();
  void draw_schedule();
  // The ranks of all replicas at a place; `dp_alike`: dp ranks by what they hold and send.
  void add_place(index_t tp_rank, index_t pp_rank,
                 const std::vector<std::vector<index_t>>& dp_alike);
  void add_ranks();
};

void print_report(const CheckReport& report, std::ostream& text);
nlohmann::ordered_json report_json(const CheckReport& report);
nlohmann::ordered_json faults_json(const std::vector<PlanFault>& faults);

}  // namespace weft
