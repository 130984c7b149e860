#include "apps/layout_table.hpp"

#include <algorithm>
#include <numeric>

#include "parallel/plan/balance.hpp"

namespace weft {

const LayoutRow& LayoutTable::reference() const {
  const auto stated = std::find_if(rows.begin(), rows.end(), [](const LayoutRow& row) {
    return row.layout.is_baseline;
  });
  if (stated != rows.end()) return *stated;
  return *std::min_element(rows.begin(), rows.end(), [](const LayoutRow& a, const LayoutRow& b) {
    return a.num_ranks() < b.num_ranks();
  });
}

namespace {

StepStatistics steps_of(const LayoutRow& row) {
  StepStatistics all(0);
  for (const LayoutRun& run : row.runs) all.add(run.steps);
  return all;
}

bool has_bits_of(const LayoutRow& row, const LayoutRun& first) {
  return std::all_of(row.runs.begin(), row.runs.end(),
                     [&](const LayoutRun& run) { return same_bits(run, first); });
}

}  // namespace

RowFigures LayoutTable::figures(const LayoutRow& row) const {
  const StepStatistics steps = steps_of(row);
  RowFigures all{};
  all.median_ms = steps.median_ms();
  all.p95_ms = steps.p95_ms();
  all.samples_per_s = steps.samples_per_second();
  const auto ranks = static_cast<double>(row.num_ranks());
  if (all.median_ms > 0.0) {
    const double batches = static_cast<double>(row.layout.plan.batch.global) /
                           static_cast<double>(reference().layout.plan.batch.global);
    all.speed_up = batches * steps_of(reference()).median_ms() / all.median_ms;
  }
  all.efficiency = all.speed_up * static_cast<double>(reference().num_ranks()) / ranks;
  if (all.samples_per_s > 0.0) all.device_s_per_1000_samples = 1000.0 * ranks / all.samples_per_s;
  const double part = 1.0 / static_cast<double>(row.runs.size());
  double hidden = 0.0;
  bool has_buckets = false;
  for (const LayoutRun& run : row.runs) {
    all.peak_bytes = std::max(all.peak_bytes, run.peak_bytes);
    all.bytes_per_step += part * run.bytes_per_step;
    for (std::size_t i = 0; i < run.activities.size(); ++i) {
      all.activities[i] += part * run.activities[i];
    }
    has_buckets = has_buckets || run.hidden_share;
    hidden += part * run.hidden_share.value_or(0.0);
  }
  if (has_buckets) all.hidden_share = hidden;
  all.other = 1.0 - std::accumulate(all.activities.begin(), all.activities.end(), 0.0);
  const Plan& own = row.layout.plan;
  all.ideal_bubble = ideal_bubble(own.layout.pp, pipeline_microbatches(own));
  all.same_bits = has_bits_of(row, first_alike(row));
  return all;
}

const LayoutRun& LayoutTable::first_alike(const LayoutRow& row) const {
  const auto first = std::find_if(rows.begin(), rows.end(), [&](const LayoutRow& other) {
    return other.layout.plan.batch.global == row.layout.plan.batch.global;
  });
  return first->runs.front();
}

std::vector<std::string> LayoutTable::differing() const {
  std::vector<std::string> names;
  for (const LayoutRow& row : rows) {
    if (!has_bits_of(row, first_alike(row))) names.push_back(row.layout.name);
  }
  return names;
}

}  // namespace weft
