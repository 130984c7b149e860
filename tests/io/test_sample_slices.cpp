// Samples in slices, on small sets whose slices are counted by hand: by label, by parts of their
// order, by a column with bounds of the training samples alone; and what is refused.
#include <catch2/catch.hpp>

#include <utility>

#include "io/cifar10_samples.hpp"
#include "io/quartile_groups.hpp"
#include "io/sample_slices.hpp"
#include "io/split.hpp"
#include "io/tables/bank_samples.hpp"
#include "io/text/byte_samples.hpp"
#include "io/text/news_samples.hpp"
#include "tests/io/small_cifar10.hpp"
#include "tests/io/tables/small_bank.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Rows = std::vector<index_t>;
using Names = std::vector<std::string>;

Rows rows(index_t begin, index_t end) { return all_of({begin, end}); }

// Eight rows to train on, then five that are judged: younger and older ones, an unknown job.
class SmallBank {
 public:
  SmallBank() : samples_(make()) {}
  const BankSamples& samples() const { return samples_; }
  SampleSlices by(const std::string& word) const {
    return make_slices(samples_, rows(8, 13), rows(0, 8), {word}).at(0);
  }

 private:
  BankSamples make() const {
    std::vector<FullRow> table;
    for (int i = 0; i < 8; ++i) table.push_back({.age = std::to_string(30 + i), .job = "student"});
    table[2].pdays = "5";
    table[3].pdays = "90";
    table.push_back({.age = "18", .job = "pilot", .pdays = "5", .y = "yes"});
    table.push_back({.age = "31", .job = "services", .pdays = "6"});
    table.push_back({.age = "33", .job = "student", .pdays = "-1", .y = "yes"});
    table.push_back({.age = "34", .job = "student", .pdays = "91"});
    table.push_back({.age = "99", .job = "unknown", .pdays = "90"});
    write_all(folder_ / "bank-full.csv", bank_text(table));
    return {Bank(folder_ / "bank-full.csv"), rows(0, 8), false};
  }
  TemporaryFolder folder_;
  BankSamples samples_;
};

std::optional<Error> refused(const SampleSet& data, const Rows& judged, const std::string& word) {
  const auto error = error_of([&] { make_slices(data, judged, rows(0, 1), {word}); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::usage);
  INFO(error->what());
  CHECK(says(error, "--slices " + word + ": "));
  return error;
}

}  // namespace

TEST_CASE("quartiles are numbers that occur, equal ones once", "[slices]") {
  const auto bounds = [](std::vector<double> training) {
    return QuartileGroups(std::move(training)).bounds();
  };
  using Bounds = std::vector<double>;
  // numpy.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
  CHECK(bounds({8, 1, 7, 2, 6, 3, 5, 4}) == Bounds{2, 4, 6});
  CHECK(bounds({50, 10, 30, 20, 40}) == Bounds{20, 30, 40});
  CHECK(bounds({3, 1, 2}) == Bounds{1, 2, 3});
  CHECK(bounds({9, 1, 1, 1}) == Bounds{1});
  CHECK(bounds({0.5, 0.5}) == Bounds{0.5});
  CHECK(bounds({}).empty());

  const QuartileGroups quartiles({1, 2, 3, 4.5, 5, 6, 7, 8});
  CHECK(quartiles.names("x") == Names{"x <= 2", "2 < x <= 4.5", "4.5 < x <= 6", "x > 6"});
  const std::vector<std::pair<double, index_t>> places = {{-9, 0},  {2, 0}, {2.25, 1}, {4.5, 1},
                                                          {4.6, 2}, {6, 2}, {6.01, 3}, {1e9, 3}};
  for (const auto& [value, group] : places) {
    INFO(value);
    CHECK(quartiles.group_of(value) == group);
  }
  const QuartileGroups none({});
  CHECK(none.names("contacted") == Names{"contacted"});
  CHECK(none.group_of(5) == 0);
}

TEST_CASE("a table in slices: label, time, a category, numbers", "[slices]") {
  const SmallBank bank;
  const SampleSlices label = bank.by("class");
  CHECK(label.by == "class");
  CHECK(label.names == Names{"no", "yes"});
  CHECK(label.slice_of == Rows{1, 0, 1, 0, 0});

  // 5 samples in 2 parts: floor(5 / 2) = 2, then 3.
  const SampleSlices time = bank.by("time=2");
  CHECK(time.by == "time=2");
  CHECK(time.names == Names{"1 of 2: samples 8 to 9", "2 of 2: samples 10 to 12"});
  CHECK(time.slice_of == Rows{0, 0, 1, 1, 1});
  CHECK(bank.by("time").by == "time=4");
  CHECK(bank.by("time").slice_of == Rows{0, 1, 2, 3, 3});

  const SampleSlices job = bank.by("column:job");
  REQUIRE(job.names.size() == 13);
  std::vector<std::string> jobs;
  for (const index_t slice : job.slice_of) jobs.push_back(job.names.at(slice));
  CHECK(jobs == Names{"(not documented)", "services", "student", "student", "unknown"});

  // Of 30 .. 37: 31, 33, 35, whatever the judged rows are.
  const SampleSlices age = bank.by("column:age");
  CHECK(age.names == Names{"age <= 31", "31 < age <= 33", "33 < age <= 35", "age > 35"});
  CHECK(age.slice_of == Rows{0, 0, 1, 2, 3});

  // Of the two that were contacted, 5 and 90: the 1st, 1st and 2nd.
  const SampleSlices pdays = bank.by("column:pdays");
  CHECK(pdays.names == Names{"pdays <= 5", "5 < pdays <= 90", "pdays > 90", "not contacted"});
  CHECK(pdays.slice_of == Rows{0, 1, 3, 2, 1});
}

TEST_CASE("pdays where no training row was contacted", "[slices]") {
  const SmallBank bank;
  const SampleSlices pdays =
      make_slices(bank.samples(), rows(8, 13), rows(0, 2), {"column:pdays"}).at(0);
  CHECK(pdays.names == Names{"pdays", "not contacted"});
  CHECK(pdays.slice_of == Rows{0, 0, 1, 0, 0});
}

TEST_CASE("slices come in the order in which they are asked for, each once", "[slices]") {
  const SmallBank bank;
  std::vector<std::string> found;
  for (const SampleSlices& one : make_slices(bank.samples(), rows(8, 13), rows(0, 8),
                                             {"time=4", "column:job", "time", "class", "class"}))
    found.push_back(one.by);
  CHECK(found == Names{"time=4", "column:job", "class"});
  CHECK(make_slices(bank.samples(), rows(8, 13), rows(0, 8), {}).empty());
}

TEST_CASE("what a table cannot be sliced by is refused with the nearest that it can", "[slices]") {
  const SmallBank bank;
  const Rows judged = rows(8, 13);
  CHECK(says(refused(bank.samples(), judged, "column:agee"),
             "has no such column; did you mean age? its columns: age, job, marital, education, "
             "default, balance, housing, loan, contact, day, month, duration, campaign, pdays, "
             "previous, poutcome"));
  CHECK(says(refused(bank.samples(), judged, "column:poutcom"), "did you mean poutcome?"));
  CHECK(says(refused(bank.samples(), judged, "column:"), "has no such column"));
  CHECK(says(refused(bank.samples(), judged, "clas"),
             "expected class, time, time=N, column:NAME for"));
  CHECK(says(refused(bank.samples(), judged, "clas"), "did you mean class?"));
  CHECK(says(refused(bank.samples(), judged, "tiem"), "did you mean time?"));
  CHECK(says(refused(bank.samples(), judged, "job"), "did you mean column:job?"));
  refused(bank.samples(), judged, "class=2");
  refused(bank.samples(), judged, "");
  for (const char* word : {"time=0", "time=1", "time=6", "time=-2", "time=", "time=2x", "time=two",
                           "time=99999999999999999999"}) {
    CHECK(says(refused(bank.samples(), judged, word), "expected a number of parts from 2 to 5"));
  }
  CHECK(says(refused(bank.samples(), rows(8, 11), "time"), "from 2 to 3, as many samples"));
}

TEST_CASE("images are sliced by class and by file, and have no order", "[slices]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 2);
  const Cifar10Samples images(folder.path());
  CHECK(make_slices(images, rows(0, 3), rows(3, 6), {"class"}).at(0).names.size() == 10);
  // Two rows a file.
  const SampleSlices files = make_slices(images, rows(1, 12), rows(0, 1), {"column:file"}).at(0);
  CHECK(files.names == Names{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"});
  CHECK(files.slice_of == Rows{0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(says(refused(images, rows(0, 3), "column:job"), "has no such column; did you mean file?"));
  CHECK(says(refused(images, rows(0, 3), "time"), "expected class, column:NAME for"));
}

TEST_CASE("windows of a text are sliced by position alone", "[slices]") {
  const TemporaryFolder folder;
  write_all(folder / "some.txt", std::string(200, 'x'));
  const ByteSamples text(ByteText(folder / "some.txt", 4, {90, 5, 5}));
  const SampleSlices slices = make_slices(text, rows(2, 8), rows(0, 2), {"position=3"}).at(0);
  CHECK(slices.by == "position=3");
  CHECK(slices.slice_of == Rows{0, 0, 1, 1, 2, 2});
  CHECK(says(refused(text, rows(2, 8), "class"), "a label for each of its tokens"));
  CHECK(says(refused(text, rows(2, 8), "time"), "expected position, position=N for"));
  CHECK(says(refused(text, rows(2, 8), "column:x"), "has no columns"));
}

TEST_CASE("news are sliced by class and by their number of tokens", "[slices]") {
  const TemporaryFolder folder;
  std::string train, test;
  // 1, 2, 3 and 4 words and, cut off at 6, 6; those of the test: 1, 3, 6.
  for (const char* words : {"a", "a b", "a b c", "a b c d", "a b c d e f g h"})
    train += std::string("\"1\",\"") + words + "\",\"\"\n";
  for (const char* words : {"!", "a b c", "x x x x x x x"})
    test += std::string("\"3\",\"") + words + "\",\"\"\n";
  write_all(folder / "train.csv", train);
  write_all(folder / "test.csv", test);
  const NewsSamples news(AgNews(folder.path()), rows(0, 5), 10, 6);
  // Of 5 lengths 1, 2, 3, 4, 6: the 2nd, 3rd and 4th.
  const SampleSlices tokens = make_slices(news, rows(5, 8), rows(0, 5), {"column:tokens"}).at(0);
  CHECK(tokens.names == Names{"tokens <= 2", "2 < tokens <= 3", "3 < tokens <= 4", "tokens > 4"});
  CHECK(tokens.slice_of == Rows{0, 1, 3});
  CHECK(make_slices(news, rows(5, 8), rows(0, 5), {"class"}).at(0).slice_of == Rows{2, 2, 2});
  CHECK(says(refused(news, rows(5, 8), "time"), "expected class, column:NAME for"));
  CHECK(says(refused(news, rows(5, 8), "column:words"), "did you mean tokens?"));
}
