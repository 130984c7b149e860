// Procedural images: reproducible, in the official format, never over something.
#include <catch2/catch.hpp>

#include <array>

#include "io/cifar10.hpp"
#include "io/cifar10_summary.hpp"
#include "io/synthetic_cifar10.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("a synthetic set is read by the reader of the official one", "[synthetic]") {
  const TemporaryFolder folder;
  index_t last = 0;
  make_synthetic_cifar10(folder / "new/set", {700, 1}, [&](index_t done, index_t all) {
    CHECK(done > last);
    CHECK(all == 4200);
    last = done;
  });
  CHECK(last == 4200);
  const Cifar10 data(folder / "new/set");
  CHECK(data.rows_per_file() == 700);
  CHECK(data.class_names()[6] == "frog");
  const Cifar10Summary summary = summarise(data);
  CHECK_FALSE(summary.official);
  for (const auto& counts : summary.class_counts) {
    for (index_t count : counts) {
      CHECK(count > 30);  // 70 +- 8
      CHECK(count < 110);
    }
  }
  // No file left under a temporary name.
  index_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "new/set"))
    ++files;
  CHECK(files == 7);
}

TEST_CASE("the same seed gives the same bytes, whatever the number of rows", "[synthetic]") {
  const TemporaryFolder folder;
  make_synthetic_cifar10(folder / "a", {20, 5});
  make_synthetic_cifar10(folder / "b", {20, 5});
  make_synthetic_cifar10(folder / "longer", {30, 5});
  make_synthetic_cifar10(folder / "other", {20, 6});
  for (const char* name : Cifar10::file_names) {
    const std::string file = std::string("/") + name;
    const std::string bytes = read_all((folder / "a") + file);
    CHECK(bytes.size() == 20 * 3073);
    CHECK(bytes == read_all((folder / "b") + file));
    CHECK(bytes == read_all((folder / "longer") + file).substr(0, 20 * 3073));
    CHECK(bytes != read_all((folder / "other") + file));
  }
  CHECK(read_all(folder / "a/data_batch_1.bin") != read_all(folder / "a/data_batch_2.bin"));
}

TEST_CASE("making a set refuses any existing file and writes nothing", "[synthetic]") {
  const std::string name = GENERATE("data_batch_1.bin", "test_batch.bin", "batches.meta.txt");
  const TemporaryFolder folder;
  write_all(folder / name, "mine");
  const auto error = error_of([&] { make_synthetic_cifar10(folder.path(), {5, 1}); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, folder / name));
  CHECK(read_all(folder / name) == "mine");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("illegal options of a synthetic set", "[synthetic]") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { make_synthetic_cifar10(folder / "x", {0, 1}); })->code() == ExitCode::usage);
  CHECK(error_of([&] {
          make_synthetic_cifar10(folder / "x", {1, ~std::uint64_t{0}});
        })->code() == ExitCode::usage);
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}

TEST_CASE("a stopped making leaves nothing that looks like a set", "[synthetic]") {
  const TemporaryFolder folder;
  struct Stop {};
  CHECK_THROWS_AS(make_synthetic_cifar10(folder.path(), {600, 1},
                                         [](index_t done, index_t) {
                                           if (done > 2000) throw Stop();
                                         }),
                  Stop);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("classes of a synthetic set differ in the mean", "[synthetic]") {
  // Colours: the mean image of class 2k has a channel balance of its own.
  std::array<std::array<double, 3>, 10> sum{};
  std::array<int, 10> count{};
  std::array<std::uint8_t, 3073> row{};
  for (index_t i = 0; i < 2000; ++i) {
    synthetic_cifar10_row(1, 0, i, row);
    ++count[row[0]];
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < 1024; ++p) sum[row[0]][c] += row[1 + c * 1024 + p] / 1024.0;
    }
  }
  const auto excess = [&](int label, int c) {
    const double all = sum[label][0] + sum[label][1] + sum[label][2];
    return (sum[label][c] - all / 3) / count[label];
  };
  for (int label : {0, 1}) CHECK(excess(label, 0) > 3);
  for (int label : {2, 3}) CHECK(excess(label, 1) > 3);
  for (int label : {4, 5}) CHECK(excess(label, 2) > 3);
}
