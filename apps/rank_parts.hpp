// What each rank's time or memory is made of, as stacked bars and as a table: one bar and one row a
// rank.
#pragma once

#include <string>
#include <vector>

#include "apps/named_numbers.hpp"
#include "apps/report_document.hpp"

namespace weft {

struct RankParts {
  std::vector<std::string> ranks;           // labels
  std::vector<std::string> names;           // of parts
  std::vector<std::vector<double>> values;  // of each rank, one a name
};

std::string grid_label(long tp, long dp, long pp);  // a place or a size: "tp 1 dp 1 pp 0"
std::string rank_label(std::size_t number, long tp, long dp, long pp);  // "3: tp 1 dp 1 pp 0"
// `of_ranks`: all with the names of the first, a missing one is 0; each divided by `unit`. Names of
// which all are 0 are left out.
RankParts rank_parts(std::vector<std::string> labels, const std::vector<NamedNumbers>& of_ranks,
                     double unit = 1.0);

StackPlot stack_of(const std::string& title, const std::string& unit, const RankParts& parts);
// With a last column for the sum.
ReportTable table_of(const RankParts& parts, const std::string& sum_name);

}  // namespace weft
