// A build without HDF5 says so, with the way out, wherever a checkpoint would need it.
#include <catch2/catch.hpp>

#include "io/checkpoint/checkpoint_index.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("without HDF5 every call is refused", "[hdf5]") {
  CHECK_FALSE(hdf5::is_built_in());
  const auto refused = [](const std::optional<Error>& error) {
    return says(error, "WEFT_HDF5=ON") && error->code() == ExitCode::usage;
  };
  CHECK(refused(error_of([] { hdf5::library_version(); })));
  CHECK(refused(error_of([] { hdf5::Skeleton({{"/a", "f32", {1}}}, {}); })));
  CHECK(refused(error_of([] { encode(CheckpointIndex{}); })));
  CHECK(refused(error_of([] { decode_index("", "index.h5"); })));
}
