// Slices of the real Bank Marketing, split by time: how many samples each has. The counts and
// bounds were found by another program (Python's csv and numpy.quantile(method="inverted_cdf")).
#include <catch2/catch.hpp>

#include <numeric>

#include "io/sample_slices.hpp"
#include "io/tables/bank_samples.hpp"
#include "io/tables/row_split.hpp"
#include "tests/io/real_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

struct Case {
  std::string word;
  std::vector<std::string> names;
  std::vector<index_t> validation, test;
};

std::vector<index_t> counts_of(const SampleSlices& slices) {
  std::vector<index_t> counts(slices.names.size(), 0);
  for (const index_t slice : slices.slice_of) ++counts.at(static_cast<std::size_t>(slice));
  return counts;
}

}  // namespace

TEST_CASE("slices of bank-additional-full.csv have the counts of another program", "[real_data]") {
  const auto folder = real_folder("WEFT_TEST_BANK");
  if (!folder) return;
  Bank bank(*folder + "/bank-additional-full.csv");
  const Split split =
      split_by_time(bank.num_rows(), {.train = 30000, .validation = 4000, .test = 7188});
  const BankSamples samples(std::move(bank), split.train, false);
  const std::string other = "(not documented)";
  const std::vector<Case> cases = {
      {"class", {"no", "yes"}, {3540, 460}, {4724, 2464}},
      {"time=3",
       {"1 of 3: samples 34000 to 36395", "2 of 3: samples 36396 to 38791",
        "3 of 3: samples 38792 to 41187"},
       {},
       {2396, 2396, 2396}},
      {"column:job",
       {"admin.", "blue-collar", "entrepreneur", "housemaid", "management", "retired",
        "self-employed", "services", "student", "technician", "unemployed", "unknown", other},
       {908, 1322, 136, 43, 246, 85, 102, 489, 96, 500, 55, 18, 0},
       {2160, 907, 169, 164, 480, 721, 236, 504, 504, 1029, 252, 62, 0}},
      {"column:month",
       {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", other},
       {0, 0, 0, 430, 3570, 0, 0, 0, 0, 0, 0, 0, 0},
       {0, 0, 264, 174, 2436, 944, 489, 1003, 570, 651, 485, 172, 0}},
      {"column:default", {"no", "yes", "unknown", other}, {3310, 0, 690, 0}, {6801, 0, 387, 0}},
      {"column:age",
       {"age <= 33", "33 < age <= 39", "39 < age <= 47", "age > 47"},
       {1408, 1207, 738, 647},
       {2949, 1309, 936, 1994}},
      {"column:campaign",
       {"campaign <= 1", "1 < campaign <= 2", "2 < campaign <= 3", "campaign > 3"},
       {1975, 1032, 411, 582},
       {3510, 1874, 806, 998}},
      {"column:previous", {"previous <= 0", "previous > 0"}, {2683, 1317}, {4204, 2984}},
      {"column:nr.employed",
       {"nr.employed <= 5191", "5191 < nr.employed <= 5228.1", "nr.employed > 5228.1"},
       {4000, 0, 0},
       {7188, 0, 0}},
      {"column:pdays",
       {"pdays <= 3", "3 < pdays <= 5", "5 < pdays <= 6", "pdays > 6", "not contacted"},
       {59, 6, 17, 48, 3870},
       {466, 137, 381, 337, 5867}}};
  for (const Case& one : cases) {
    INFO(one.word);
    const SampleSlices test = make_slices(samples, split.test, split.train, {one.word}).at(0);
    CHECK(test.names == one.names);
    CHECK(counts_of(test) == one.test);
    CHECK(std::accumulate(one.test.begin(), one.test.end(), index_t{0}) == 7188);
    if (one.validation.empty()) continue;
    const auto validation = make_slices(samples, split.validation, split.train, {one.word}).at(0);
    CHECK(counts_of(validation) == one.validation);
    CHECK(std::accumulate(one.validation.begin(), one.validation.end(), index_t{0}) == 4000);
  }
}

TEST_CASE("the older table's pdays and balance in slices", "[real_data]") {
  const auto folder = real_folder("WEFT_TEST_BANK");
  if (!folder) return;
  Bank bank(*folder + "/bank-full.csv");
  const Split split =
      split_by_time(bank.num_rows(), {.train = 30000, .validation = 5000, .test = 10211});
  const BankSamples samples(std::move(bank), split.train, false);
  const auto of = [&](const char* word) {
    return make_slices(samples, split.validation, split.train, {word}).at(0);
  };
  CHECK(counts_of(of("column:pdays")) == std::vector<index_t>{232, 285, 89, 1053, 3341});
  CHECK(of("column:pdays").names.at(1) == "133 < pdays <= 182");
  CHECK(counts_of(of("column:balance")) == std::vector<index_t>{805, 1236, 1575, 1384});
  CHECK(of("column:balance").names.at(3) == "balance > 1325");
}
