// Files that HDF5 lays out and we write, and small files in memory.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "io/checkpoint/hdf5_file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using Integers = std::vector<std::uint64_t>;

namespace {

hdf5::FileLayout lay_out(const std::vector<hdf5::Dataset>& datasets,
                         const std::vector<hdf5::Attribute>& root) {
  return hdf5::Skeleton(datasets, root).layout();
}

hdf5::Dataset dataset(const std::string& path, Integers shape) {
  return {
      .path = path,
      .shape = shape,
      .attributes = {
          {"global_shape", shape}, {"box_begin", Integers(shape.size(), 0)}, {"box_end", shape}}};
}

std::uint64_t bytes_of(const hdf5::Dataset& dataset) {
  std::uint64_t product = 4;
  for (const std::uint64_t extent : dataset.shape) product *= extent;
  return product;
}

// Datasets of all sizes: one element, around the bounds of alignment, large; in one group or many.
std::vector<hdf5::Dataset> some_datasets(unsigned seed, int n) {
  std::mt19937 random(seed);
  const Integers extents{1, 2, 3, 100, 511, 512, 513, 16383, 16384, 16385, 70000};
  std::vector<hdf5::Dataset> out;
  for (int i = 0; i < n; ++i) {
    Integers shape{extents[random() % extents.size()]};
    if (random() % 2) shape.push_back(1 + random() % 9);
    const std::string kind = random() % 2 ? "value" : "exp_avg";
    const std::string path = "/" + kind + "/t" + std::to_string(random() % 20);
    out.push_back(dataset(path + "/" + std::to_string(i), shape));
  }
  return out;
}

// How often each byte of the file is in a dataset or in metadata.
std::vector<int> coverage(const hdf5::FileLayout& layout, const std::vector<hdf5::Dataset>& all) {
  std::vector<int> times(layout.num_bytes, 0);
  const auto add = [&](std::uint64_t offset, std::uint64_t size) {
    REQUIRE(offset + size <= layout.num_bytes);
    for (std::uint64_t i = offset; i < offset + size; ++i) ++times[i];
  };
  for (std::size_t i = 0; i < all.size(); ++i) add(layout.offsets[i], bytes_of(all[i]));
  for (const auto& extent : layout.metadata) add(extent.offset, extent.bytes.size());
  return times;
}

std::string written_file(const hdf5::FileLayout& layout,
                         const std::vector<std::vector<float>>& values) {
  std::string bytes(layout.num_bytes, '\xee');
  for (const auto& extent : layout.metadata)
    bytes.replace(extent.offset, extent.bytes.size(), extent.bytes);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(&bytes[layout.offsets[i]], values[i].data(), values[i].size() * sizeof(float));
  return bytes;
}

}  // namespace

TEST_CASE("a layout covers its file once", "[hdf5]") {
  for (const int n : {0, 1, 2, 40, 300}) {
    INFO(n << " datasets");
    const auto datasets = some_datasets(static_cast<unsigned>(n), n);
    const hdf5::FileLayout layout = lay_out(datasets, {{"format", "test"}});
    REQUIRE(layout.offsets.size() == datasets.size());
    const std::vector<int> times = coverage(layout, datasets);
    CHECK(std::count(times.begin(), times.end(), 1) == static_cast<long>(layout.num_bytes));
    for (std::size_t i = 1; i < layout.metadata.size(); ++i)
      CHECK(layout.metadata[i - 1].offset < layout.metadata[i].offset);
    for (std::size_t i = 0; i < datasets.size(); ++i)
      CHECK((bytes_of(datasets[i]) < 65536 || layout.offsets[i] % 4096 == 0));
  }
}

TEST_CASE("a layout follows from what was asked alone", "[hdf5]") {
  const auto datasets = some_datasets(5, 50);
  const std::vector<hdf5::Attribute> root{{"format", "test"}, {"step", Integers{7}}};
  const hdf5::FileLayout a = lay_out(datasets, root);
  // Times in HDF5 files are in seconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const hdf5::FileLayout b = lay_out(datasets, root);
  const std::vector<std::vector<float>> none;
  CHECK(a.offsets == b.offsets);
  const bool equal = written_file(a, none) == written_file(b, none);  // megabytes, not to print
  CHECK(equal);
}

TEST_CASE("a skeleton with other root attributes is that of a new one", "[hdf5]") {
  const auto datasets = some_datasets(6, 40);
  const auto root = [](const char* id, std::uint64_t step) {
    return std::vector<hdf5::Attribute>{
        {"format", "test"}, {"version", Integers{1, 2}}, {"id", id}, {"step", Integers{step}}};
  };
  hdf5::Skeleton again(datasets, root("0123", 7));
  for (const std::uint64_t step : {std::uint64_t{8}, ~std::uint64_t{0}, std::uint64_t{0}}) {
    const auto other = root("89ab", step);
    again.set_root(other);
    const hdf5::Skeleton anew(datasets, other);
    CHECK(again.layout().offsets == anew.layout().offsets);
    const bool equal = written_file(again.layout(), {}) == written_file(anew.layout(), {});
    CHECK(equal);
    const hdf5::Reader reader(written_file(again.layout(), {}), "shard");
    CHECK(reader.root_text("id") == "89ab");
    CHECK(reader.root_integers("step") == Integers{step});
    CHECK(reader.root_text("format") == "test");
  }
  const auto unknown = error_of([&] { again.set_root({{"other", "89ab"}}); });
  CHECK(says(unknown, "HDF5"));
}

TEST_CASE("HDF5 reads a file that we wrote by its layout", "[hdf5]") {
  const auto datasets = some_datasets(9, 60);
  const hdf5::FileLayout layout =
      lay_out(datasets, {{"format", "test"}, {"version", Integers{1, 0}}, {"none", ""}});
  std::vector<std::vector<float>> values;
  std::mt19937 random(3);
  for (const auto& one : datasets) {
    values.emplace_back(bytes_of(one) / 4);
    for (float& value : values.back()) value = static_cast<float>(random()) / 7.0F;
  }
  values[0][0] = -0.0F;
  const hdf5::Reader reader(written_file(layout, values), "shard");
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    INFO(datasets[i].path);
    const std::vector<double> read = reader.numbers(datasets[i].path);
    CHECK(read == std::vector<double>(values[i].begin(), values[i].end()));
  }
  CHECK(std::signbit(reader.numbers(datasets[0].path)[0]));
  CHECK(reader.root_text("format") == "test");
  CHECK(reader.root_text("none") == "");
  CHECK(reader.root_integers("version") == Integers{1, 0});
}

TEST_CASE("two thousand datasets are laid out in well under a second, in one place", "[hdf5]") {
  std::vector<hdf5::Dataset> datasets;
  for (int i = 0; i < 2000; ++i)
    datasets.push_back(dataset("/value/block." + std::to_string(i) + ".up.weight/0", {96, 192}));
  const auto start = std::chrono::steady_clock::now();
  const hdf5::FileLayout layout = lay_out(datasets, {});
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::size_t metadata = 0;
  for (const auto& extent : layout.metadata) metadata += extent.bytes.size();
  WARN(time.count() << " s, metadata " << metadata << " bytes in " << layout.metadata.size()
                    << " extents, data " << 2000 * 96 * 192 * 4 << " of " << layout.num_bytes);
  CHECK(time.count() < 10);  // busy machines and sanitizers; measured: 0.1
  CHECK(metadata < 2000 * 4096);
}

TEST_CASE("a file far larger than memory is laid out", "[hdf5]") {
  const std::uint64_t terabyte = std::uint64_t{1} << 40;
  const hdf5::FileLayout layout =
      lay_out({dataset("/value/a/0", {terabyte / 4096, 1024}), dataset("/value/b/0", {3})}, {});
  CHECK(layout.num_bytes > terabyte);
  std::size_t metadata = 0;
  for (const auto& extent : layout.metadata) metadata += extent.bytes.size();
  CHECK(metadata < 65536);
}

TEST_CASE("what cannot be laid out is refused with its name", "[hdf5]") {
  const auto twice = error_of([] {
    lay_out({dataset("/value/a/0", {3}), dataset("/value/a/0", {3})}, {});
  });
  CHECK(says(twice, "/value/a/0"));
  CHECK(says(twice, "HDF5"));
  const auto dtype = error_of([] { lay_out({{"/a", "bf16", {3}}}, {}); });
  CHECK(says(dtype, "bf16"));
}

TEST_CASE("tables survive writing and reading", "[hdf5]") {
  const std::vector<double> numbers{0.1, -0.0, 1e-310, INFINITY};
  const Integers integers{0, 1, 18446744073709551615u};
  const std::vector<std::string> texts{"", "a", "größer", std::string(5000, 'x'), " y "};
  const std::string long_text(300000, 'p');
  const std::string bytes = hdf5::make_file({{"/a/numbers", numbers},
                                             {"/a/b/integers", integers},
                                             {"/texts", texts},
                                             {"/long", std::vector<std::string>{long_text}},
                                             {"/none/numbers", std::vector<double>{}},
                                             {"/none/integers", Integers{}},
                                             {"/none/texts", std::vector<std::string>{}}},
                                            {{"format", "test"}, {"none", Integers{}}});
  const hdf5::Reader reader(bytes, "file");
  CHECK(reader.numbers("/a/numbers") == numbers);
  CHECK(std::signbit(reader.numbers("/a/numbers")[1]));
  CHECK(reader.integers("/a/b/integers") == integers);
  CHECK(reader.texts("/texts") == texts);
  CHECK((reader.texts("/long")[0] == long_text));
  CHECK(reader.numbers("/none/numbers").empty());
  CHECK(reader.integers("/none/integers").empty());
  CHECK(reader.texts("/none/texts").empty());
  CHECK(reader.root_integers("none").empty());
}

TEST_CASE("readers of equal names do not mix", "[hdf5]") {
  const auto file = [](std::uint64_t value) {
    return hdf5::make_file({{"/v", Integers{value}}}, {});
  };
  const hdf5::Reader a(file(1), "index.h5");
  const hdf5::Reader b(file(2), "index.h5");
  CHECK(a.integers("/v") == Integers{1});
  CHECK(b.integers("/v") == Integers{2});
}

TEST_CASE("what a reader does not find is named", "[hdf5]") {
  const hdf5::Reader reader(hdf5::make_file({{"/n/numbers", std::vector<double>{1}},
                                             {"/n/integers", Integers{1}},
                                             {"/n/texts", std::vector<std::string>{"a"}}},
                                            {{"text", "a"}, {"integers", Integers{1}}}),
                            "dir/index.h5");
  const auto fault = [&](auto call) {
    const auto error = error_of(call);
    REQUIRE(error);
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, "dir/index.h5"));
    return std::string(error->what());
  };
  CHECK_THAT(fault([&] { reader.integers("/n/other"); }), Catch::Contains("/n/other"));
  CHECK_THAT(fault([&] { reader.integers("/n"); }), Catch::Contains("/n"));
  CHECK_THAT(fault([&] { reader.integers("/n/numbers"); }), Catch::Contains("unsigned integers"));
  CHECK_THAT(fault([&] { reader.numbers("/n/integers"); }), Catch::Contains("floating-point"));
  CHECK_THAT(fault([&] { reader.texts("/n/integers"); }), Catch::Contains("texts"));
  CHECK_THAT(fault([&] { reader.integers("/n/texts"); }), Catch::Contains("unsigned integers"));
  CHECK_THAT(fault([&] { reader.root_text("other"); }), Catch::Contains("other"));
  CHECK_THAT(fault([&] { reader.root_text("integers"); }), Catch::Contains("texts"));
  CHECK_THAT(fault([&] { reader.root_integers("text"); }), Catch::Contains("unsigned integers"));
}

TEST_CASE("bytes that are no HDF5 file are refused", "[hdf5]") {
  const std::string bytes = hdf5::make_file({{"/v", Integers(1000, 1)}}, {});
  for (const std::string& wrong : {std::string(), std::string("no"), std::string(5000, 'x'),
                                   bytes.substr(0, bytes.size() - 1), bytes.substr(0, 40)}) {
    const auto error = error_of([&] { hdf5::Reader(wrong, "dir/index.h5"); });
    CHECK(says(error, "dir/index.h5 is no HDF5 file"));
    CHECK(error->code() == ExitCode::data);
  }
}
