// The sections of a report that tell of a profile, and of a traced step (report_sections.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "apps/rank_parts.hpp"
#include "apps/report_sections.hpp"
#include "apps/svg_timeline.hpp"

namespace weft {

namespace {

constexpr double mib = 1024.0 * 1024.0;
constexpr std::size_t most_waits = 16;

// Work in blue and green, transfers in warm colours, idle time in grey; each row its own.
std::string row_color(const std::string& name) {
  static const std::map<std::string, std::string> colors = {
      {"data wait", "#CC79A7"}, {"forward", "#56B4E9"},    {"backward", "#0072B2"},
      {"comm tp", "#F5C56B"},   {"comm dp", "#D55E00"},    {"comm pp", "#E69F00"},
      {"comm run", "#8C510A"},  {"bubble", "#CCCCCC"},     {"straggler wait", "#000000"},
      {"update", "#009E73"},    {"unexplained", "#888888"}};
  const auto found = colors.find(name);
  return found == colors.end() ? "#888888" : found->second;
}

// "communication_tp" as the program's own table has it: "comm tp".
std::string row_name(std::string name) {
  const std::string long_form = "communication";
  if (name.starts_with(long_form)) name.replace(0, long_form.size(), "comm");
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string label_of(std::size_t number, const ProfileRank& rank) {
  return rank_label(number, rank.tp, rank.dp, rank.pp);
}

RankParts parts_of(const ProfileRecord& profile, NamedNumbers ProfileRank::*numbers,
                   double unit = 1.0) {
  std::vector<std::string> labels;
  std::vector<NamedNumbers> all;
  for (const ProfileRank& rank : profile.ranks) {
    labels.push_back(label_of(labels.size(), rank));
    all.push_back(rank.*numbers);
  }
  return rank_parts(std::move(labels), all, unit);
}

ReportSection head_section(const ProfileRecord& profile) {
  double median_ms = 0.0, p95_ms = 0.0, dropped = 0.0;
  for (const ProfileRank& rank : profile.ranks) {
    median_ms = std::max(median_ms, rank.median_ms);
    p95_ms = std::max(p95_ms, rank.p95_ms);
    dropped = std::max(dropped, rank.dropped_events);
  }
  ReportSection section{
      "Profile " + std::filesystem::path(profile.path).stem().string(),
      {fmt::format("{}: plan {}, {} ranks ({}) over {}, {} steps after {} of warm-up; a step takes "
                   "{:.2f} ms median, {:.2f} ms P95, on the slowest rank.",
                   profile.path, profile.plan, profile.ranks.size(), profile.layout,
                   profile.transport, profile.measured_steps, profile.warm_up_steps, median_ms,
                   p95_ms)}};
  if (!profile.leak.empty()) section.blocks.emplace_back(profile.leak + ".");
  if (!profile.injected.empty())
    section.blocks.emplace_back("DELAYS INJECTED: " + profile.injected + ".");
  if (dropped > 0)
    section.blocks.emplace_back(fmt::format(
        "WARNING: {:.0f} spans of a rank did not fit into its trace: the last steps count as "
        "unexplained.",
        dropped));
  for (const std::string& finding : profile.findings) section.blocks.emplace_back(finding);
  return section;
}

// Nobody waits in a group of one rank: its microseconds are in the file.
bool is_alone(const ProfileRecord& profile, const std::string& row) {
  const auto has_one = [&](index_t ProfileRank::*place) {
    return std::all_of(profile.ranks.begin(), profile.ranks.end(),
                       [&](const ProfileRank& rank) { return rank.*place == 0; });
  };
  return (row == "communication_tp" && has_one(&ProfileRank::tp)) ||
         (row == "communication_dp" && has_one(&ProfileRank::dp)) ||
         (row == "communication_pp" && has_one(&ProfileRank::pp));
}

ReportSection account_section(ProfileRecord profile) {
  // A group of one has nothing to wait for; what is left of such rows, some microseconds, is added to
  // `unexplained`, so that the rows still add up.
  for (ProfileRank& rank : profile.ranks) {
    double left_out_ms = 0.0;
    for (const auto& [name, ms] : rank.rows_ms)
      if (is_alone(profile, name)) left_out_ms += ms;
    std::erase_if(rank.rows_ms, [&](const auto& row) { return is_alone(profile, row.first); });
    for (auto& [name, ms] : rank.rows_ms)
      if (name == "unexplained") ms += left_out_ms;
  }
  RankParts parts = parts_of(profile, &ProfileRank::rows_ms);
  for (std::string& name : parts.names) name = row_name(name);
  StackPlot plot = stack_of("The account of a mean step", "ms", parts);
  for (StackPart& part : plot.parts) part.color = row_color(part.name);
  ReportSection section{
      "Where each rank's time went",
      {std::string("ms of a mean step by what the rank's main thread did. The rows add up to the "
                   "wall time. comm: in a collective after the last of its group had come; "
                   "straggler wait: before that; bubble: a stage waits for its neighbour."),
       draw(plot), table_of(parts, "wall ms")},
      3};
  const RankParts hidden = parts_of(profile, &ProfileRank::hidden_ms);
  if (hidden.names.empty()) return section;
  section.blocks.emplace_back(
      "Communication under way while the rank did something else, ms of a mean step, by group: "
      "hidden, and in no row above.");
  section.blocks.emplace_back(table_of(hidden, "hidden ms"));
  return section;
}

struct Wait {
  std::size_t rank;
  const ProfileWait* what;
};

// The longest first; those that nobody would notice are left out.
std::vector<Wait> waits_of(const ProfileRecord& profile, double least_ms) {
  std::vector<Wait> waits;
  for (std::size_t rank = 0; rank < profile.ranks.size(); ++rank) {
    for (const ProfileWait& wait : profile.ranks[rank].waits)
      if (wait.ms_a_step >= least_ms) waits.push_back({rank, &wait});
  }
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.what->ms_a_step > b.what->ms_a_step;
  });
  return waits;
}

// Bars of the waiting ranks, parts by whom they waited for.
SvgPicture picture_of_waits(const ProfileRecord& profile, const std::vector<Wait>& waits) {
  std::map<std::pair<index_t, std::string>, std::size_t> index;
  StackPlot plot{
      .title = "Waited for, of a mean step", .value_name = "ms", .parts = {}, .bars = {}};
  constexpr std::size_t most_parts = 7;
  for (const Wait& wait : waits) {
    const std::pair key{wait.what->for_rank, wait.what->cause};
    if (index.contains(key) || index.size() == most_parts) continue;
    plot.parts.push_back(
        {fmt::format("rank {}: {}", key.first, key.second), plot_color(index.size())});
    index.emplace(key, index.size());
  }
  plot.parts.push_back({"others", plot_color(most_parts)});
  for (std::size_t rank = 0; rank < profile.ranks.size(); ++rank)
    plot.bars.push_back(
        {label_of(rank, profile.ranks[rank]), std::vector<double>(plot.parts.size(), 0.0)});
  for (const Wait& wait : waits) {
    const auto found = index.find({wait.what->for_rank, wait.what->cause});
    const std::size_t part = found == index.end() ? plot.parts.size() - 1 : found->second;
    plot.bars[wait.rank].values[part] += wait.what->ms_a_step;
  }
  const bool has_others = std::any_of(plot.bars.begin(), plot.bars.end(),
                                      [](const StackBar& bar) { return bar.values.back() > 0; });
  if (!has_others) plot.parts.pop_back();
  return draw(plot);
}

ReportSection wait_section(const ProfileRecord& profile) {
  const NamedNumbers& rows = profile.ranks.front().rows_ms;
  const double step_ms = std::accumulate(
      rows.begin(), rows.end(), 0.0, [](double sum, const auto& row) { return sum + row.second; });
  const double least_ms = 5e-3 * step_ms;
  const std::vector<Wait> waits = waits_of(profile, least_ms);
  if (waits.empty())
    return {
        "Who waited for whom",
        {fmt::format("Nobody waited {:.3f} ms of a mean step or longer for one rank.", least_ms)},
        3};
  ReportTable table{{"rank", "waited ms", "for rank", "over", "whose"}, {}};
  for (std::size_t i = 0; i < std::min(waits.size(), most_waits); ++i) {
    const ProfileWait& wait = *waits[i].what;
    table.rows.push_back({fmt::format("{}", waits[i].rank), fmt::format("{:.3f}", wait.ms_a_step),
                          fmt::format("{}", wait.for_rank), wait.over, wait.cause});
  }
  return {"Who waited for whom",
          {fmt::format("ms of a mean step that a rank waited in a collective for the last to come, "
                       "and what that one was at longer than the others; from {:.3f} ms on{}.",
                       least_ms,
                       waits.size() > most_waits
                           ? fmt::format(", the table has {} of {}", most_waits, waits.size())
                           : ""),
           picture_of_waits(profile, waits), table},
          3};
}

std::optional<ReportSection> bucket_section(const ProfileRecord& profile) {
  const auto longest = std::max_element(
      profile.ranks.begin(), profile.ranks.end(),
      [](const ProfileRank& a, const ProfileRank& b) { return a.tail_ms < b.tail_ms; });
  const auto number = static_cast<std::size_t>(longest - profile.ranks.begin());
  if (longest->buckets.empty()) return std::nullopt;
  Timeline plot{.title = fmt::format("Buckets of rank {}, mean step", number),
                .value_name = "ms from the step's begin",
                .parts = {{"ready, waits its turn", "#E69F00"}, {"under way", plot_color(0)}},
                .rows = {},
                .marks = {{"backward ends", longest->backward_end_ms}},
                .begin = longest->backward_end_ms};
  ReportTable table{{"bucket", "ready ms", "launched ms", "completed ms"}, {}};
  for (const ProfileBucket& bucket : longest->buckets) {
    const std::string label = fmt::format("{}", plot.rows.size());
    plot.begin = std::min(plot.begin, bucket.ready_ms);
    plot.rows.push_back({label,
                         {{.begin = bucket.ready_ms,
                           .end = bucket.launched_ms,
                           .color = "#E69F00",
                           .title = bucket.name},
                          {.begin = bucket.launched_ms,
                           .end = bucket.completed_ms,
                           .color = plot_color(0),
                           .title = bucket.name}}});
    table.rows.push_back({label + " " + bucket.name, fmt::format("{:.3f}", bucket.ready_ms),
                          fmt::format("{:.3f}", bucket.launched_ms),
                          fmt::format("{:.3f}", bucket.completed_ms)});
  }
  return ReportSection{
      "Buckets of gradients",
      {fmt::format("Of the rank with the longest tail: backward ends at {:.3f} ms, the last bucket "
                   "{:.3f} ms later. What comes after that line no computing hides.",
                   longest->backward_end_ms, longest->tail_ms),
       draw(plot), table},
      3};
}

ReportSection memory_section(const ProfileRecord& profile) {
  const RankParts parts = parts_of(profile, &ProfileRank::peak_by_kind, mib);
  StackPlot plot = stack_of("Measured, and below it foreseen", "MiB", parts);
  ReportTable table{{"rank"}, {}};
  for (const std::string& name : parts.names) {
    table.header.push_back(name);
    for (const auto& [kind, ignored] : profile.ranks.front().foreseen)
      if (kind == name) table.header.emplace_back("foreseen");
  }
  table.header.insert(table.header.end(), {"peak MiB", "in phase"});
  std::vector<StackBar> bars;
  for (std::size_t r = 0; r < profile.ranks.size(); ++r) {
    const ProfileRank& rank = profile.ranks[r];
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(parts.ranks[r]);
    StackBar foreseen{"", std::vector<double>(parts.names.size(), 0.0)};
    for (std::size_t i = 0; i < parts.names.size(); ++i) {
      row.push_back(fmt::format("{:.2f}", parts.values[r][i]));
      for (const auto& [kind, bytes] : rank.foreseen) {
        if (kind != parts.names[i]) continue;
        foreseen.values[i] = bytes / mib;
        row.push_back(fmt::format("{:.2f}", bytes / mib));
      }
    }
    row.push_back(fmt::format("{:.2f}", rank.peak_bytes / mib));
    row.push_back(rank.peak_phase);
    bars.push_back(plot.bars[r]);
    bars.push_back(std::move(foreseen));
  }
  plot.bars = std::move(bars);
  return {"Memory at the peak, beside the forecast",
          {std::string("MiB in use at the moment of each rank's peak, by kind; foreseen: what weft "
                       "check says of parameters, gradients and optimizer. Activations and "
                       "buffers it does not foresee."),
           draw(plot), table},
          3};
}

}  // namespace

std::vector<ReportSection> profile_sections(const ProfileRecord& profile) {
  std::vector<ReportSection> sections{head_section(profile), account_section(profile),
                                      wait_section(profile)};
  if (auto buckets = bucket_section(profile)) sections.push_back(std::move(*buckets));
  sections.push_back(memory_section(profile));
  return sections;
}

}  // namespace weft
