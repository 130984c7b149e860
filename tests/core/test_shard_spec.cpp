// ShardSpec: every element of a global tensor is held once, where the header says it is.
#include <catch2/catch.hpp>

#include <set>

#include "tests/core/shard_values.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// Checks the specs of all ranks of one cut tensor; "" or what is wrong.
std::string fault_of(const Shape& global, int dim, index_t padded, index_t shards, index_t tp) {
  std::vector<int> times_held(static_cast<std::size_t>(global.num_elements()), 0);
  index_t held = 0;
  for (index_t rank = 0; rank < tp; ++rank) {
    const Range owned = part_of(rank, tp, shards);
    const ShardSpec spec = ShardSpec::cut(global, dim, padded, shards, owned);
    index_t end = 0;
    for (index_t s = owned.begin; s < owned.end; ++s) {
      if (spec.offset(s) % 64 != 0) return "offset is no multiple of 64";
      if (spec.offset(s) < end) return "blocks overlap";
      if (spec.offset(s) >= end + 64) return "gap of a whole alignment";
      end = spec.offset(s) + spec.block(s).num_elements();
    }
    if (spec.local_elements() < end || spec.local_elements() % 64 != 0) return "local_elements";
    std::set<index_t> local;
    for_each_held(spec, [&](index_t in_global, index_t in_local) {
      ++times_held[static_cast<std::size_t>(in_global)];
      local.insert(in_local);
    });
    if (static_cast<index_t>(local.size()) != spec.held_elements()) return "held_elements";
    if (!local.empty() && *local.rbegin() >= spec.local_elements()) return "outside of storage";
    held += spec.held_elements();
  }
  if (held != global.num_elements()) return "elements held in all";
  for (const int times : times_held) {
    if (times != 1) return "an element is held " + std::to_string(times) + " times";
  }
  return "";
}

}  // namespace

TEST_CASE("pieces of all ranks tile the global tensor", "[shard_spec]") {
  for (const index_t shards : {1, 2, 3, 4, 6, 12}) {
    for (index_t tp = 1; tp <= shards; ++tp) {
      for (const index_t extent : {1, 5, 10, 12, 37, 64, 131}) {
        const index_t padded = round_up(extent, shards);
        INFO("extent " << extent << ", S = " << shards << ", tp = " << tp);
        CHECK(fault_of({extent}, 0, padded, shards, tp) == "");
        CHECK(fault_of({extent, 9}, 0, padded, shards, tp) == "");
        CHECK(fault_of({9, extent}, 1, padded, shards, tp) == "");
        CHECK(fault_of({9, extent}, 1, extent, shards, tp) == "");  // uneven pieces, some empty
      }
    }
  }
}

TEST_CASE("a piece's block does not depend on who owns it", "[shard_spec]") {
  const ShardSpec all = ShardSpec::cut({30, 7}, 0, 36, 12, {0, 12});
  const ShardSpec some = ShardSpec::cut({30, 7}, 0, 36, 12, {4, 7});
  for (index_t s = 4; s < 7; ++s) {
    CHECK(all.block(s) == some.block(s));
    CHECK(all.valid(s) == some.valid(s));
    CHECK(all.piece(s) == some.piece(s));
  }
  CHECK(some.offset(4) == 0);
}

TEST_CASE("the picture of the header", "[shard_spec]") {
  const ShardSpec spec = ShardSpec::cut({6, 8}, 1, 8, 4, {1, 3});
  CHECK(spec.block(1) == Box{{0, 6}, {2, 4}});
  CHECK(spec.block(2) == Box{{0, 6}, {4, 6}});
  CHECK(spec.offset(1) == 0);
  CHECK(spec.offset(2) == 64);
  CHECK(spec.local_elements() == 128);
  CHECK(spec.held_elements() == 24);
  CHECK(spec.text() == "[6, 8] dim 1 in 4, pieces 1-2");

  std::vector<int> global(48);
  for (int i = 0; i < 48; ++i) global[static_cast<std::size_t>(i)] = i;
  std::vector<int> local(128, -1);
  scatter(spec, global, local.data());
  CHECK(local[0] == 2);    // row 0, column 2
  CHECK(local[1] == 3);    // row 0, column 3
  CHECK(local[2] == 10);   // row 1, column 2
  CHECK(local[11] == 43);  // row 5, column 3
  CHECK(local[12] == -1);  // gap
  CHECK(local[64] == 4);   // the next piece: row 0, column 4
  CHECK(local[75] == 45);
}

TEST_CASE("replicated tensors", "[shard_spec]") {
  const ShardSpec spec = ShardSpec::replicated({5, 20});
  CHECK(spec.is_replicated());
  CHECK(spec.num_shards() == 1);
  CHECK(spec.block(0) == Box{{0, 5}, {0, 20}});
  CHECK(spec.valid(0) == spec.block(0));
  CHECK(spec.local_elements() == 128);
  CHECK(spec.held_elements() == 100);
  CHECK(spec.text() == "[5, 20] replicated");
}

TEST_CASE("ten classes padded to twelve", "[shard_spec]") {
  const ShardSpec four = ShardSpec::cut({10, 48}, 0, 12, 4, {0, 4});
  for (index_t s = 0; s < 4; ++s) CHECK(four.block(s) == Box{{3 * s, 3 * s + 3}, {0, 48}});
  CHECK(four.valid(2) == Box{{6, 9}, {0, 48}});
  CHECK(four.valid(3) == Box{{9, 10}, {0, 48}});
  CHECK(four.held_elements() == 480);
  CHECK(four.local_elements() == 4 * 192);  // 3 * 48 = 144, on a multiple of 64

  const ShardSpec twelve = ShardSpec::cut({10}, 0, 12, 12, {9, 12});
  CHECK(twelve.valid(9).num_elements() == 1);
  CHECK(twelve.valid(10).num_elements() == 0);  // all padding
  CHECK(twelve.valid(11).num_elements() == 0);
  CHECK(twelve.block(11).num_elements() == 1);
  CHECK(twelve.held_elements() == 1);
  CHECK(twelve.global() == Shape{10});
}
