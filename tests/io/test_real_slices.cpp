// Slices of the real Bank Marketing, split by time, and of AG News: how many samples each has, and
// of which classes. The counts and bounds were found by another program (Python's csv and
// numpy.quantile(method="inverted_cdf")).
#include <catch2/catch.hpp>

#include <numeric>

#include "io/sample_slices.hpp"
#include "io/slice_balance.hpp"
#include "io/tables/bank_samples.hpp"
#include "io/tables/row_split.hpp"
#include "io/text/news_samples.hpp"
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

namespace {

// Part by part, the class counts of each slice.
using ClassCounts = std::vector<std::vector<index_t>>;

ClassCounts class_counts_of(const SliceBalance& balance) {
  ClassCounts counts;
  for (const SliceBalance::Slice& slice : balance.slices) counts.push_back(slice.class_counts);
  return counts;
}

}  // namespace

TEST_CASE("classes of slices of bank-additional-full.csv are those of another program",
          "[real_data]") {
  const auto folder = real_folder("WEFT_TEST_BANK");
  if (!folder) return;
  Bank bank(*folder + "/bank-additional-full.csv");
  const Split split =
      split_by_time(bank.num_rows(), {.train = 30000, .validation = 4000, .test = 7188});
  const BankSamples samples(std::move(bank), split.train, false);
  const auto found = balance_of_slices(samples, split, {"time", "column:month"});
  REQUIRE(found.size() == 2);
  // no, yes in quarters of training, validation and test.
  CHECK(class_counts_of(found[0]) == ClassCounts{{7273, 227},
                                                 {7124, 376},
                                                 {7043, 457},
                                                 {6844, 656},
                                                 {728, 272},
                                                 {937, 63},
                                                 {950, 50},
                                                 {925, 75},
                                                 {1632, 165},
                                                 {1220, 577},
                                                 {999, 798},
                                                 {873, 924}});
  CHECK(found[0].slices[4].name == "1 of 4: samples 30000 to 30999");
  CHECK(found[0].slices[8].name == "1 of 4: samples 34000 to 35796");
  // March to August and October to December; April and May; March to December.
  CHECK(class_counts_of(found[1]) ==
        ClassCounts{{156, 126}, {1777, 251}, {7523, 240}, {4186, 188}, {6278, 407}, {4904, 271},
                    {25, 42},   {3426, 190}, {9, 1},      {239, 191},  {3301, 269}, {114, 150},
                    {77, 97},   {2059, 377}, {573, 371},  {247, 242},  {619, 384},  {314, 256},
                    {378, 273}, {259, 226},  {84, 88}});
}

TEST_CASE("classes of AG News by length are those of another program", "[real_data]") {
  const auto folder = real_folder("WEFT_TEST_AG_NEWS");
  if (!folder) return;
  Split split;
  split.train = all_of({0, 46964});
  split.test = all_of({46964, 46964 + 7600});
  const NewsSamples samples(AgNews(*folder), split.train, 20000, 64);
  const auto found = balance_of_slices(samples, split, {"column:tokens"});
  REQUIRE(found.size() == 1);
  CHECK(found[0].slices[0].name == "tokens <= 33");
  CHECK(found[0].slices[3].name == "tokens > 45");
  CHECK(class_counts_of(found[0]) == ClassCounts{{2919, 3222, 2777, 3962},
                                                 {2748, 3310, 3213, 2653},
                                                 {3060, 2736, 3094, 2491},
                                                 {2960, 2444, 2712, 2663},
                                                 {498, 539, 447, 639},
                                                 {446, 560, 541, 456},
                                                 {501, 424, 486, 401},
                                                 {455, 377, 426, 404}});
}
