// The range rule: what is cut by it is cut without gaps, and its inverse finds the part again.
#include <catch2/catch.hpp>

#include "core/range.hpp"

using namespace weft;

TEST_CASE("parts tile their length, in order, and differ by at most one item", "[range]") {
  for (index_t length = 0; length <= 130; ++length) {
    for (index_t parts = 1; parts <= 40; ++parts) {
      index_t end = 0;
      for (index_t part = 0; part < parts; ++part) {
        const Range r = part_of(part, parts, length);
        if (r.begin != end || r.size() < length / parts || r.size() > length / parts + 1) {
          FAIL("part " << part << " of " << parts << " of " << length << " is [" << r.begin << ", "
                       << r.end << ")");
        }
        end = r.end;
      }
      REQUIRE(end == length);
    }
  }
}

TEST_CASE("part_holding is the inverse of part_of", "[range]") {
  for (index_t length = 1; length <= 130; ++length) {
    for (index_t parts = 1; parts <= 40; ++parts) {
      for (index_t part = 0; part < parts; ++part) {
        const Range r = part_of(part, parts, length);
        for (index_t item = r.begin; item < r.end; ++item) {
          if (part_holding(item, parts, length) != part) {
            FAIL("item " << item << " of " << length << " in " << parts << " parts");
          }
        }
      }
    }
  }
  // Large lengths: the product part * length needs 64 bits.
  const index_t images = 3'000'000'019;
  CHECK(part_holding(images - 1, 7, images) == 6);
  CHECK(part_of(6, 7, images).end == images);
}

TEST_CASE("hand values of the range rule", "[range]") {
  // S = 12 on tp = 5: 2, 2, 3, 2, 3 (EXACT section 1).
  const index_t begins[] = {0, 2, 4, 7, 9, 12};
  for (index_t part = 0; part < 5; ++part) {
    CHECK(part_of(part, 5, 12) == Range{begins[part], begins[part + 1]});
  }
  // More parts than items: some are empty.
  CHECK(part_of(0, 4, 3).empty());
  CHECK(part_of(1, 4, 3) == Range{0, 1});
  CHECK(part_of(3, 4, 3) == Range{2, 3});
}

TEST_CASE("intersections and rounding", "[range]") {
  CHECK(intersection({0, 5}, {3, 9}) == Range{3, 5});
  CHECK(intersection({0, 3}, {3, 9}).empty());
  CHECK(intersection({7, 9}, {0, 3}).size() == 0);
  CHECK(round_up(0, 64) == 0);
  CHECK(round_up(1, 64) == 64);
  CHECK(round_up(64, 64) == 64);
  CHECK(round_up(10, 12) == 12);
}
