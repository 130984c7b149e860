// The official CIFAR-10, where WEFT_TEST_CIFAR10 names its folder: the numbers below are those of
// the published set, found by other programs.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <optional>

#include "io/augment.hpp"
#include "io/cifar10.hpp"
#include "io/cifar10_check.hpp"
#include "io/cifar10_samples.hpp"
#include "io/cifar10_summary.hpp"
#include "io/slice_balance.hpp"
#include "io/split.hpp"

using namespace weft;

namespace {

std::optional<Cifar10> official() {
  const char* const folder = std::getenv("WEFT_TEST_CIFAR10");
  if (folder == nullptr || *folder == '\0') {
    REQUIRE(std::getenv("WEFT_REQUIRE_REAL_DATA") ==
            nullptr);  // where it was there, skipping is a fault
    std::cout << "SKIPPED: WEFT_TEST_CIFAR10 does not name a folder with the official CIFAR-10\n";
    return std::nullopt;
  }
  return Cifar10(folder);
}

}  // namespace

TEST_CASE("the official set has its published counts, labels and pixels", "[real_data]") {
  const auto data = official();
  if (!data) return;
  const Cifar10Summary summary = summarise(*data);
  CHECK(data->rows_per_file() == 10000);
  CHECK(summary.official);
  using Counts = Cifar10Summary::Counts;
  CHECK(summary.class_counts[0] == Counts{1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981});
  CHECK(summary.class_counts[1] == Counts{984, 1007, 1010, 995, 1010, 988, 1008, 1026, 987, 985});
  CHECK(summary.class_counts[2] == Counts{994, 1042, 965, 997, 990, 1029, 978, 1015, 961, 1029});
  CHECK(summary.class_counts[3] == Counts{1003, 963, 1041, 976, 1004, 1021, 1004, 981, 1024, 983});
  CHECK(summary.class_counts[4] == Counts{1014, 1014, 952, 1016, 997, 1025, 980, 977, 1003, 1022});
  for (index_t count : summary.class_counts[5]) CHECK(count == 1000);
  CHECK(summary.first_labels[0] == std::vector<int>{6, 9, 9, 4, 1, 1, 2, 7, 8, 3});
  CHECK(summary.first_labels[5] == std::vector<int>{3, 8, 8, 0, 6, 6, 1, 6, 3, 1});
  const double mean[3] = {0.491400, 0.482158, 0.446531};
  const double std_dev[3] = {0.247032, 0.243485, 0.261588};
  const double test_mean[3] = {0.494214, 0.485131, 0.450409};
  const double test_std[3] = {0.246653, 0.242892, 0.261592};
  for (index_t c = 0; c < 3; ++c) {
    CHECK(summary.training.mean[c] == Approx(mean[c]).margin(6e-7));
    CHECK(summary.training.std_dev[c] == Approx(std_dev[c]).margin(6e-7));
    CHECK(summary.test.mean[c] == Approx(test_mean[c]).margin(6e-7));
    CHECK(summary.test.std_dev[c] == Approx(test_std[c]).margin(6e-7));
  }
  CHECK(data->class_names() == std::vector<std::string>{"airplane", "automobile", "bird", "cat",
                                                        "deer", "dog", "frog", "horse", "ship",
                                                        "truck"});
}

TEST_CASE("normalised training pixels have mean 0 and deviation 1", "[real_data]") {
  const auto data = official();
  if (!data) return;
  const Normalization normalization;
  std::vector<float> x(3072);
  double sum = 0, squares = 0;
  for (index_t i = 0; i < 50000; ++i) {
    normalise_into(data->image(Cifar10::Part::training, i).pixels, normalization, ImageValues(x));
    for (float value : x) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
  }
  const double n = 50000.0 * 3072.0;
  CHECK(sum / n == Approx(0.0).margin(1e-5));
  CHECK(squares / n == Approx(1.0).margin(1e-5));
}

TEST_CASE("all classes are in both parts of the split", "[real_data]") {
  const auto data = official();
  if (!data) return;
  const Split split = make_split(data->num_samples(Cifar10::Part::training), 45000, 5000, 7);
  std::array<int, 10> count{};
  for (index_t i : split.validation) ++count[data->image(Cifar10::Part::training, i).label];
  // 500 +- 21; a bound of five of these.
  for (int n : count) CHECK(std::abs(n - 500) < 105);
}

TEST_CASE("the official set has no damaged row and no two equal images", "[real_data]") {
  const auto data = official();
  if (!data) return;
  const Cifar10Check found = check(*data, make_split(50000, 45000, 5000, 7));
  CHECK(found.damaged.empty());
  CHECK(found.equal.empty());
  // 6000 of each class: 5000 to train and validate, 1000 to test.
  for (std::size_t c = 0; c < 10; ++c) {
    CHECK(found.class_counts[0][c] + found.class_counts[1][c] == 5000);
    CHECK(found.class_counts[2][c] == 1000);
    CHECK(found.class_counts[3][c] == 0);
  }
}

TEST_CASE("classes of the official set by file are the published ones", "[real_data]") {
  const auto data = official();
  if (!data) return;
  const Cifar10Samples samples(std::getenv("WEFT_TEST_CIFAR10"));
  Split split;
  split.train = all_of({0, 50000});
  split.test = all_of({50000, 60000});
  const auto found = balance_of_slices(samples, split, {"column:file"});
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].slices.size() == 6);
  using Counts = std::vector<index_t>;
  CHECK(found[0].slices[0].name == "data_batch_1.bin");
  CHECK(found[0].slices[0].class_counts ==
        Counts{1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981});
  CHECK(found[0].slices[4].class_counts ==
        Counts{1014, 1014, 952, 1016, 997, 1025, 980, 977, 1003, 1022});
  CHECK(found[0].slices[5].part == DataPart::test);
  CHECK(found[0].slices[5].class_counts == Counts(10, 1000));
}
