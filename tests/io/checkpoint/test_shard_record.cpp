// A rank's record of its shard: what is packed is unpacked, all else is refused.
#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>

#include "io/checkpoint/shard_record.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

ShardRecord example() {
  return {.name = "shard-00003.h5",
          .num_bytes = 18446744073709551615u,
          .pieces = {{"a.weight", "value", {2, 8}, {{0, 2}, {3, 8}}, std::uint64_t{1} << 63, 1},
                     {"", "exp_avg", {3}, {{0, 1}, {0, 3}}, 8, 2}},
          .blocks = {{0, 4096, 1}, {4096, 40, 2}}};
}

bool is_refused(const std::string& bytes) {
  const auto error = error_of([&] { unpack_shard_record(bytes); });
  return error && error->code() == ExitCode::failed && says(error, "record of its shard") &&
         says(error, "start all ranks from one build");
}

}  // namespace

TEST_CASE("a shard's record survives packing", "[shard_record]") {
  const ShardRecord record = example();
  const ShardRecord found = unpack_shard_record(pack(record));
  CHECK(found.name == record.name);
  CHECK(found.num_bytes == record.num_bytes);
  CHECK(found.blocks == record.blocks);
  REQUIRE(found.pieces.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found.pieces[i].tensor == record.pieces[i].tensor);
    CHECK(found.pieces[i].kind == record.pieces[i].kind);
    CHECK(found.pieces[i].global == record.pieces[i].global);
    CHECK(found.pieces[i].box == record.pieces[i].box);
    CHECK(found.pieces[i].fingerprint == record.pieces[i].fingerprint);
    CHECK(found.pieces[i].first_block == record.pieces[i].first_block);
  }
}

TEST_CASE("a shard's record that is cut off or too long is refused", "[shard_record]") {
  const std::string bytes = pack(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO(size << " of " << bytes.size() << " bytes");
    CHECK(is_refused(bytes.substr(0, size)));
  }
  CHECK(is_refused(bytes + '\0'));
}

// Lengths lie at the front of what they measure: the name's, then behind it and the number of bytes
// that of the pieces.
TEST_CASE("a shard's record takes no memory that it has no bytes for", "[shard_record]") {
  const std::string bytes = pack(example());
  for (const std::size_t at : {std::size_t{0}, 8 + example().name.size() + 8}) {
    for (const std::uint64_t claimed : {std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
      std::string altered = bytes;
      std::memcpy(altered.data() + at, &claimed, sizeof claimed);
      INFO(claimed << " at " << at);
      CHECK(is_refused(altered));
    }
  }
}

TEST_CASE("a shard's record with a piece in no block of it is refused", "[shard_record]") {
  for (const index_t block : {index_t{-1}, index_t{3}, index_t{INT64_MAX}, index_t{INT64_MIN}}) {
    ShardRecord record = example();
    record.pieces[1].first_block = block;
    CHECK(is_refused(pack(record)));
  }
}
