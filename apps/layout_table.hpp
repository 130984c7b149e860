// What `weft layouts` has measured, and what follows from it: speed-up, efficiency, and whether all
// layouts have the same bits. Pure. Written by layout_text and layout_json.
#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "apps/layout_study.hpp"
#include "apps/skipped_rows.hpp"
#include "apps/step_statistics.hpp"
#include "core/hash.hpp"
#include "core/trace.hpp"

namespace weft {

// One run of a layout.
struct LayoutRun {
  StepStatistics steps{0};  // the measured ones, by rank 0's clock; empty on other ranks
  std::string transport;    // the one that "auto" chose, say
  Hash128 state_hash, loss_hash;
  std::uint64_t peak_bytes = 0;                     // of the largest rank
  double bytes_per_step = 0.0;                      // sent by all ranks
  std::array<double, num_activities> activities{};  // part of the measured time, mean over ranks
  // The part of the time in which gradient buckets were under way that nobody waited for them, over
  // all ranks; empty where there are none.
  std::optional<double> hidden_share;
  nlohmann::ordered_json metrics;  // on the validation part, after the last step; null: not asked

  friend bool same_bits(const LayoutRun& a, const LayoutRun& b) {
    return a.state_hash == b.state_hash && a.loss_hash == b.loss_hash;
  }
};

struct LayoutRow {
  GridLayout layout;
  std::vector<LayoutRun> runs = {};  // one a repeat

  index_t num_ranks() const { return layout.plan.num_ranks(); }
};

// A row over all its repeats.
struct RowFigures {
  double median_ms, p95_ms;  // of the measured steps of all repeats
  double samples_per_s;
  double speed_up;    // of samples by the median, against the reference: with its batch, of time
  double efficiency;  // speed-up by how many times more ranks it has
  double device_s_per_1000_samples;
  std::uint64_t peak_bytes;
  double bytes_per_step;
  std::array<double, num_activities> activities;  // means
  double other;                                   // what is missing to 1
  double ideal_bubble;
  std::optional<double> hidden_share;
  bool same_bits;  // all its runs, as LayoutTable::first_alike

  double activity(Activity which) const { return activities[static_cast<std::size_t>(which)]; }
};

struct LayoutTable {
  Plan plan;
  int num_ranks = 1;  // started
  index_t num_repeats = 1;
  index_t num_warm_up = 0;  // steps at the beginning of each run that are not measured
  LayoutStudy study;  // what was asked for
  GridLayouts grid;   // and what that means here
  std::vector<SkippedRows> skipped_rows;  // of the data
  std::vector<LayoutRow> rows;  // of grid.to_run; each with one run at least for what follows

  // The stated baseline, else the first of those with the fewest ranks.
  const LayoutRow& reference() const;
  RowFigures figures(const LayoutRow& row) const;
  // The first run of the first row with the same global batch: the bits that are expected.
  const LayoutRun& first_alike(const LayoutRow& row) const;
  // Names of the layouts with a run that has other hashes than that.
  std::vector<std::string> differing() const;
  bool same_bits() const { return differing().empty(); }
  // Other bits where exact mode promises the same.
  bool is_broken() const { return plan.is_exact() && !same_bits(); }
};

// What is about to run, and what is not.
void print_grid(const LayoutTable& table, std::ostream& text);
void print_table(const LayoutTable& table, std::ostream& text);
// Whether all have the same bits, in one sentence.
std::string verdict_text(const LayoutTable& table);
nlohmann::ordered_json table_json(const LayoutTable& table);

}  // namespace weft
