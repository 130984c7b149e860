// Reading CIFAR-10's files, and every way in which a folder can be wrong.
#include <catch2/catch.hpp>

#include "io/cifar10.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr std::size_t row_bytes = 3073;

// Expects Error(data) whose message has every part.
void expect_refusal(const std::string& folder, const std::vector<std::string>& parts) {
  const auto error = error_of([&] { Cifar10{folder}; });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::data);
  INFO(error->what());
  for (const std::string& part : parts) CHECK(says(error, part));
}

}  // namespace

TEST_CASE("cifar10 reads rows by part and index", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 7);
  const Cifar10 data(folder.path());
  CHECK(data.rows_per_file() == 7);
  CHECK(data.num_samples(Cifar10::Part::training) == 35);
  CHECK(data.num_samples(Cifar10::Part::test) == 7);
  CHECK(data.class_names().front() == "a");
  CHECK(data.class_names().size() == 10);
  data.verify();
  for (index_t i = 0; i < 42; ++i) {
    const bool training = i < 35;
    const Cifar10Image image =
        training ? data.image(Cifar10::Part::training, i) : data.image(Cifar10::Part::test, i - 35);
    REQUIRE(image.label == i % 10);
    for (index_t p = 0; p < 3072; ++p) REQUIRE(image.pixels[p] == small_pixel(i, p));
  }
}

TEST_CASE("cifar10 finds the subfolder", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder / "cifar10", 2);
  CHECK(Cifar10(folder.path()).folder() == folder / "cifar10");
}

TEST_CASE("cifar10 refuses a missing folder and says how to get one", "[cifar10]") {
  const TemporaryFolder folder;
  expect_refusal(folder / "nowhere",
                 {"nowhere", "does not exist", "weft data make cifar10", "--data", "WEFT_DATA"});
  expect_refusal("", {"no folder given", "WEFT_DATA"});
  expect_refusal(folder.path(),
                 {folder.path(), "no CIFAR-10", "data_batch_1.bin", "weft data make"});
  write_all(folder / "file", "x");
  expect_refusal(folder / "file", {"is not a folder"});
}

TEST_CASE("cifar10 names a missing file", "[cifar10]") {
  for (const char* name :
       {"data_batch_1.bin", "data_batch_4.bin", "test_batch.bin", "batches.meta.txt"}) {
    const TemporaryFolder folder;
    write_small_cifar10(folder.path(), 2);
    std::filesystem::remove(folder / name);
    expect_refusal(folder.path(), {folder / name, "is missing", "weft data make cifar10"});
  }
}

TEST_CASE("cifar10 names the row at which a file is truncated", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 5);
  std::filesystem::resize_file(folder / "data_batch_3.bin", 3 * row_bytes + 100);
  expect_refusal(folder.path(),
                 {"data_batch_3.bin", "truncated", "row 3 has only 100 bytes", "9319"});
}

TEST_CASE("cifar10 refuses files of different lengths", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 5);
  std::filesystem::resize_file(folder / "test_batch.bin", 4 * row_bytes);
  expect_refusal(folder.path(),
                 {"test_batch.bin has 4 rows", "data_batch_1.bin has 5", "same number"});
}

TEST_CASE("cifar10 refuses an empty file", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 5);
  std::filesystem::resize_file(folder / "data_batch_1.bin", 0);
  expect_refusal(folder.path(), {"data_batch_1.bin", "is empty"});
}

TEST_CASE("cifar10 refuses a file that is none", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 5);
  std::filesystem::remove(folder / "data_batch_2.bin");
  std::filesystem::create_directory(folder / "data_batch_2.bin");
  expect_refusal(folder.path(), {"data_batch_2.bin", "not a regular file"});
}

TEST_CASE("cifar10 refuses wrong class names", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 5);
  write_all(folder / "batches.meta.txt", "cat\ndog\n");
  expect_refusal(folder.path(), {"batches.meta.txt", "expected 10 class names", "found 2"});
}

TEST_CASE("cifar10 names file and row of a wrong label", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 5);
  std::string bytes = read_all(folder / "data_batch_4.bin");
  bytes[2 * row_bytes] = 17;
  write_all(folder / "data_batch_4.bin", bytes);
  const Cifar10 data(folder.path());  // opening reads no label
  const auto by_index = error_of([&] { data.image(Cifar10::Part::training, 17); });
  const auto by_verify = error_of([&] { data.verify(); });
  for (const auto& error : {by_index, by_verify}) {
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, "data_batch_4.bin: row 2 has label 17, expected 0..9"));
  }
  CHECK_NOTHROW(data.image(Cifar10::Part::training, 16));
}

TEST_CASE("cifar10's fingerprint knows every byte and no folder", "[cifar10]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder / "a", 3);
  write_small_cifar10(folder / "b/cifar10", 3);
  const auto of = [&](const char* name) { return Cifar10(folder / name).fingerprint(); };
  const std::string right = of("a");
  CHECK(right.size() == 32);
  CHECK(of("b") == right);

  // One flipped bit anywhere: first, last and middle byte of each file, labels and pixels.
  for (const char* name : Cifar10::file_names) {
    const std::string path = folder / ("a/" + std::string(name)), bytes = read_all(path);
    for (const std::size_t place :
         {std::size_t{0}, std::size_t{1}, 3 * row_bytes / 2, row_bytes, 3 * row_bytes - 1}) {
      std::string other = bytes;
      other[place] = static_cast<char>(other[place] ^ 1);
      write_all(path, other);
      CHECK(of("a") != right);
    }
    write_all(path, bytes);
  }
  CHECK(of("a") == right);

  // The same rows in other files, and fewer of them.
  const std::string first = folder / "a/data_batch_1.bin", last = folder / "a/test_batch.bin";
  const std::string first_bytes = read_all(first);
  write_all(first, read_all(last));
  write_all(last, first_bytes);
  CHECK(of("a") != right);
  write_small_cifar10(folder / "c", 2);
  CHECK(of("c") != right);
}
