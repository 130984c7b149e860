// h5dump, a program of other people, reads a shard as weft writes it. Skipped where it is not
// there.
#include <catch2/catch.hpp>

#include <array>
#include <cstdio>
#include <iostream>

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

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  std::array<char, 4096> part{};
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.append(part.data(), n);
  INFO(out);
  REQUIRE(::pclose(pipe) == 0);
  return out;
}

}  // namespace

TEST_CASE("h5dump reads a shard", "[h5dump]") {
  const std::string h5dump = WEFT_H5DUMP;
  if (h5dump.empty()) {
    std::cout << "SKIPPED: no h5dump; install hdf5-tools and configure again\n";
    return;
  }
  const hdf5::FileLayout layout = lay_out({{"/value/block.0.q.weight/0",
                                            "f32",
                                            {2, 2},
                                            {{"global_shape", Integers{4, 2}},
                                             {"box_begin", Integers{1, 0}},
                                             {"box_end", Integers{3, 2}}}}},
                                          {{"format", "weft-shard"}});
  std::string bytes(layout.num_bytes, '\0');
  for (const auto& extent : layout.metadata)
    bytes.replace(extent.offset, extent.bytes.size(), extent.bytes);
  const std::array<float, 4> values{1.5F, -2.25F, 1024.0F, 0.125F};
  bytes.replace(layout.offsets[0], sizeof(values), reinterpret_cast<const char*>(values.data()),
                sizeof(values));
  const TemporaryFolder folder;
  write_all(folder / "shard.h5", bytes);

  const std::string out = output_of(h5dump + " " + (folder / "shard.h5"));
  CHECK_THAT(out, Catch::Contains("H5T_IEEE_F32LE"));
  CHECK_THAT(out, Catch::Contains("SIMPLE { ( 2, 2 ) / ( 2, 2 ) }"));
  CHECK_THAT(out, Catch::Contains("(0,0): 1.5, -2.25,") && Catch::Contains("(1,0): 1024, 0.125"));
  CHECK_THAT(out, Catch::Contains("\"block.0.q.weight\"") && Catch::Contains("\"weft-shard\""));
  CHECK_THAT(out, Catch::Contains("H5T_STR_NULLPAD") && Catch::Contains("H5T_CSET_UTF8"));
  CHECK_THAT(out, Catch::Contains("\"box_begin\"") && Catch::Contains("(0): 1, 0"));
}
