#include "apps/rank_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace weft {

std::string grid_label(long tp, long dp, long pp) {
  return fmt::format("tp {} dp {} pp {}", tp, dp, pp);
}

std::string rank_label(std::size_t number, long tp, long dp, long pp) {
  return fmt::format("{}: {}", number, grid_label(tp, dp, pp));
}

RankParts rank_parts(std::vector<std::string> labels, const std::vector<NamedNumbers>& of_ranks,
                     double unit) {
  RankParts parts{.ranks = std::move(labels), .names = {}, .values = {}};
  parts.values.resize(of_ranks.size());
  for (const auto& [name, ignored] : of_ranks.front()) {
    std::vector<double> column;
    for (const NamedNumbers& numbers : of_ranks) {
      const auto found = std::find_if(numbers.begin(), numbers.end(),
                                      [&](const auto& one) { return one.first == name; });
      column.push_back(found == numbers.end() ? 0.0 : found->second / unit);
    }
    if (std::all_of(column.begin(), column.end(), [](double value) { return value <= 0.0; }))
      continue;
    parts.names.push_back(name);
    for (std::size_t rank = 0; rank < column.size(); ++rank)
      parts.values[rank].push_back(column[rank]);
  }
  return parts;
}

StackPlot stack_of(const std::string& title, const std::string& unit, const RankParts& parts) {
  StackPlot plot{.title = title, .value_name = unit, .parts = {}, .bars = {}};
  for (std::size_t i = 0; i < parts.names.size(); ++i)
    plot.parts.push_back({parts.names[i], plot_color(i)});
  for (std::size_t rank = 0; rank < parts.values.size(); ++rank)
    plot.bars.push_back({parts.ranks[rank], parts.values[rank]});
  return plot;
}

ReportTable table_of(const RankParts& parts, const std::string& sum_name) {
  ReportTable table{{"rank"}, {}};
  table.header.insert(table.header.end(), parts.names.begin(), parts.names.end());
  table.header.push_back(sum_name);
  for (std::size_t rank = 0; rank < parts.values.size(); ++rank) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(parts.ranks[rank]);
    for (const double value : parts.values[rank]) row.push_back(fmt::format("{:.3f}", value));
    row.push_back(fmt::format(
        "{:.3f}", std::accumulate(parts.values[rank].begin(), parts.values[rank].end(), 0.0)));
  }
  return table;
}

}  // namespace weft
