// The section of a report that shows a traced step as a pipeline's grid (report_sections.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/rank_parts.hpp"
#include "apps/report_sections.hpp"
#include "apps/svg_timeline.hpp"

namespace weft {

namespace {

constexpr std::size_t most_rows = 24;
constexpr std::size_t most_colors = 7;  // without the grey

double busy_ms(const TracedRank& rank, bool is_backward) {
  double sum = 0.0;
  for (const PipelineCell& cell : rank.cells)
    if (cell.is_backward == is_backward) sum += cell.end_ms - cell.begin_ms;
  return sum;
}

// From the first forward pass on any rank to the end of the last backward pass on any.
struct Span {
  double begin_ms = 0.0, end_ms = 0.0;
};
Span span_of(const TracedStep& step) {
  Span span;
  bool is_first = true;
  for (const TracedRank& rank : step.ranks) {
    for (const PipelineCell& cell : rank.cells) {
      span.begin_ms = is_first ? cell.begin_ms : std::min(span.begin_ms, cell.begin_ms);
      span.end_ms = is_first ? cell.end_ms : std::max(span.end_ms, cell.end_ms);
      is_first = false;
    }
  }
  return span;
}

// Many ranks: those that show all stages once.
std::vector<const TracedRank*> shown(const TracedStep& step) {
  std::vector<const TracedRank*> ranks;
  const bool shows_all = step.ranks.size() <= most_rows;
  for (const TracedRank& rank : step.ranks) {
    if (shows_all || (rank.tp == 0 && rank.dp == 0)) ranks.push_back(&rank);
  }
  if (ranks.size() > most_rows) ranks.resize(most_rows);
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const TracedRank* a, const TracedRank* b) { return a->pp < b->pp; });
  return ranks;
}

Timeline grid_of(const TracedStep& step, const std::vector<const TracedRank*>& ranks) {
  Timeline grid{.title = fmt::format("Step {}", step.step),
                .value_name = "ms from the first rank's begin of the step",
                .parts = {},
                .rows = {},
                .marks = {},
                .is_wide = true};
  index_t num_microbatches = 0;
  for (const TracedRank* rank : ranks) {
    TimelineRow& row = grid.rows.emplace_back(
        TimelineRow{fmt::format("stage {}, rank {}", rank->pp, rank->rank), {}});
    for (const PipelineCell& cell : rank->cells) {
      num_microbatches = std::max(num_microbatches, cell.microbatch + 1);
      row.cells.push_back(
          {.begin = cell.begin_ms,
           .end = cell.end_ms,
           .color = plot_color(static_cast<std::size_t>(cell.microbatch) % most_colors),
           .text = fmt::format("{}{}", cell.is_backward ? 'B' : 'F', cell.microbatch),
           .title = fmt::format("{} of microbatch {}: {:.3f} ms, from {:.3f} ms on",
                                cell.is_backward ? "backward" : "forward", cell.microbatch,
                                cell.end_ms - cell.begin_ms, cell.begin_ms),
           .is_pale = cell.is_backward});
    }
  }
  for (index_t k = 0; k < std::min<index_t>(num_microbatches, most_colors); ++k)
    grid.parts.push_back(
        {fmt::format("microbatch {}", k), plot_color(static_cast<std::size_t>(k))});
  return grid;
}

ReportTable table_of(const TracedStep& step, const Span& span) {
  ReportTable table{
      {"rank", "forward ms", "backward ms", "idle in the pipeline ms", "idle %", "step ms"}, {}};
  for (const TracedRank& rank : step.ranks) {
    const double forward = busy_ms(rank, false), backward = busy_ms(rank, true);
    const double all = span.end_ms - span.begin_ms, idle = all - forward - backward;
    table.rows.push_back(
        {rank_label(static_cast<std::size_t>(rank.rank), rank.tp, rank.dp, rank.pp),
         fmt::format("{:.3f}", forward), fmt::format("{:.3f}", backward),
         fmt::format("{:.3f}", idle), fmt::format("{:.1f}", all > 0 ? 100 * idle / all : 0.0),
         fmt::format("{:.3f}", rank.end_ms - rank.begin_ms)});
  }
  return table;
}

std::string bubble_text(const TracedStep& step, const Span& span) {
  double busy = 0.0;
  std::set<index_t> stages, microbatches;
  for (const TracedRank& rank : step.ranks) {
    busy += busy_ms(rank, false) + busy_ms(rank, true);
    stages.insert(rank.pp);
    for (const PipelineCell& cell : rank.cells) microbatches.insert(cell.microbatch);
  }
  const double all = (span.end_ms - span.begin_ms) * static_cast<double>(step.ranks.size());
  const auto p = static_cast<double>(stages.size()), m = static_cast<double>(microbatches.size());
  if (all <= 0.0) return "No forward or backward pass is in it.";
  return fmt::format(
      "From the first forward to the last backward pass the ranks are idle for {:.1f} % of the "
      "time; (p - 1) / (m + p - 1) of {:.0f} stages and {:.0f} microbatches with even work is "
      "{:.1f} %.",
      100 * (1 - busy / all), p, m, 100 * (p - 1) / (m + p - 1));
}

}  // namespace

ReportSection pipeline_section(const TracedStep& step, const std::string& title) {
  const Span span = span_of(step);
  const std::vector<const TracedRank*> ranks = shown(step);
  ReportSection section{
      title,
      {fmt::format("{}, step {} of {} to {}. Forward passes in full colour, backward passes pale, "
                   "a colour a microbatch; the gaps are the bubble.",
                   step.path, step.step, step.first_step, step.last_step),
       bubble_text(step, span), draw(grid_of(step, ranks)), table_of(step, span)}};
  if (ranks.size() < step.ranks.size())
    section.blocks.emplace_back(fmt::format("The picture has {} of {} ranks, the table all.",
                                            ranks.size(), step.ranks.size()));
  const bool has_dropped =
      std::any_of(step.ranks.begin(), step.ranks.end(),
                  [](const TracedRank& rank) { return rank.dropped_events > 0; });
  if (has_dropped)
    section.blocks.emplace_back(
        "WARNING: spans of a rank did not fit into the trace; late steps are not whole.");
  return section;
}

}  // namespace weft
