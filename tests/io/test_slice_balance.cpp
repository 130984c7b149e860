// Classes counted in slices of each part of a split, by hand.
#include <catch2/catch.hpp>

#include "io/slice_balance.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Counts = std::vector<index_t>;

// Sample i has label i mod 3 and the colour of i mod 2; its order is one of time.
class Things final : public SampleSet {
 public:
  const std::string& folder() const override { return folder_; }
  index_t num_samples() const override { return 16; }
  SampleForm form() const override { return {.features = 1}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string fingerprint() const override { return std::string(32, '1'); }
  void read(index_t index, const std::optional<Augmentation>&,
            const SampleRow& row) const override {
    REQUIRE(index != 5);  // its label is damaged
    if (row.labels) *row.labels = static_cast<std::int32_t>(index % 3);
  }
  std::string_view order_name() const override { return "time"; }
  std::vector<std::string> column_names() const override { return {"colour"}; }
  SampleGroups groups_of(std::string_view, std::span<const index_t> training) const override {
    CHECK(std::vector<index_t>(training.begin(), training.end()) ==
          std::vector<index_t>{0, 1, 2, 3, 4, 6});
    return {{"red", "blue", "green"}, [](index_t sample) { return sample % 2; }};
  }

 private:
  std::string folder_ = "memory";
  std::vector<std::string> names_{"a", "b", "c"};
};

struct Row {
  DataPart part;
  std::string name;
  Counts counts;
};

void check_rows(const SliceBalance& found, const std::vector<Row>& expected) {
  REQUIRE(found.slices.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(found.by << ", row " << i);
    CHECK(found.slices[i].part == expected[i].part);
    CHECK(found.slices[i].name == expected[i].name);
    CHECK(found.slices[i].class_counts == expected[i].counts);
  }
}

}  // namespace

TEST_CASE("classes of slices, part by part", "[slice_balance]") {
  Split split;
  split.train = {6, 5, 4, 3, 2, 1, 0};  // as a random split gives them
  split.validation = {11, 10, 9, 8};
  split.test = {12, 13};
  const std::vector<SliceBalance> found =
      balance_of_slices(Things(), split, {"time=2", "column:colour"}, {5});
  REQUIRE(found.size() == 2);
  CHECK(found[0].by == "time=2");
  check_rows(found[0], {{DataPart::train, "1 of 2: samples 0 to 2", {1, 1, 1}},
                        {DataPart::train, "2 of 2: samples 3 to 6", {2, 1, 0}},
                        {DataPart::validation, "1 of 2: samples 8 to 9", {1, 0, 1}},
                        {DataPart::validation, "2 of 2: samples 10 to 11", {0, 1, 1}},
                        {DataPart::test, "1 of 2: samples 12 to 12", {1, 0, 0}},
                        {DataPart::test, "2 of 2: samples 13 to 13", {0, 1, 0}},
                        {DataPart::unused, "1 of 2: samples 7 to 7", {0, 1, 0}},
                        {DataPart::unused, "2 of 2: samples 14 to 15", {1, 0, 1}}});
  CHECK(found[1].by == "column:colour");
  // Nothing is green, and no row says so.
  check_rows(found[1], {{DataPart::train, "red", {2, 1, 1}},
                        {DataPart::train, "blue", {1, 1, 0}},
                        {DataPart::validation, "red", {0, 1, 1}},
                        {DataPart::validation, "blue", {1, 0, 1}},
                        {DataPart::test, "red", {1, 0, 0}},
                        {DataPart::test, "blue", {0, 1, 0}},
                        {DataPart::unused, "red", {0, 0, 1}},
                        {DataPart::unused, "blue", {1, 1, 0}}});
  CHECK(found[1].slices[0].num_samples() == 4);
  CHECK(balance_of_slices(Things(), split, {}, {5}).empty());
  const auto error = error_of([&] { balance_of_slices(Things(), split, {"time=3"}, {5}); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, "expected a number of parts from 2 to 2"));
}
