// Where the flat gradient is cut: buckets and slices cover it once, between norm blocks, evenly.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "parallel/data/buckets.hpp"
#include "tests/parallel/data/data_grid.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// Starts of norm blocks, written down a second time, from the placed parameters.
std::set<index_t> block_starts(const ParameterSet& parameters) {
  std::set<index_t> starts{0, parameters.flat_elements()};
  for (const auto& p : parameters.all()) {
    for (index_t s = p->spec.owned().begin; s < p->spec.owned().end; ++s) {
      for (index_t i = 0; i < p->spec.valid(s).num_elements(); i += 1024)
        starts.insert(p->offset + p->spec.offset(s) + i);
    }
  }
  return starts;
}

}  // namespace

TEST_CASE("flat layouts by hand", "[buckets]") {
  // 2500 = 1024 + 1024 + 452, stored as 2560; pieces of 2 x 300, stored as 640, the last of them
  // one row; a vector by token blocks comes last, wherever it was added.
  const FlatLayout layout = flat_layout({{ShardSpec::replicated({70}), GradientRows::token_blocks},
                                         {ShardSpec::replicated({2500})},
                                         {ShardSpec::cut({5, 300}, 0, 6, 3, {0, 3})}});
  CHECK(layout.cuts == std::vector<index_t>{0, 1024, 2048, 2560, 3200, 3840, 4480, 4608});
  CHECK(layout.token_blocks_begin == 4480);
  CHECK(layout.places == std::vector<Range>{{4480, 4608}, {0, 2560}, {2560, 4480}});

  // Pieces that are all pads belong to the block before them, at the very beginning to the one
  // after.
  const FlatLayout pads = flat_layout({{ShardSpec::cut({1, 100}, 0, 4, 4, {2, 4})},
                                       {ShardSpec::replicated({10})},
                                       {ShardSpec::cut({1, 100}, 0, 4, 4, {1, 3})}});
  CHECK(pads.cuts == std::vector<index_t>{0, 256, 576});
  CHECK(flat_layout(std::vector<FlatEntry>{}).cuts == std::vector<index_t>{0});
}

TEST_CASE("buckets by hand", "[buckets]") {
  const FlatLayout layout = flat_layout({{ShardSpec::replicated({70}), GradientRows::token_blocks},
                                         {ShardSpec::replicated({2500})},
                                         {ShardSpec::cut({5, 300}, 0, 6, 3, {0, 3})}});
  const auto ranges = [&](index_t bytes) {
    std::vector<Range> all;
    for (const Bucket& bucket : make_buckets(layout, bytes, 1)) all.push_back(bucket.flat);
    return all;
  };
  // From the end; what is summed by token blocks leaves last and shares no bucket.
  CHECK(ranges(1 << 20) == std::vector<Range>{{0, 4480}, {4480, 4608}});
  CHECK(ranges(4 * 1300) ==
        std::vector<Range>{{3200, 4480}, {2048, 3200}, {1024, 2048}, {0, 1024}, {4480, 4608}});
  CHECK(ranges(0) == ranges(1));
  CHECK(ranges(1).size() == 7);  // one for each norm block

  // Two ranks, one norm block a bucket: each takes what brings it nearest to half.
  const auto tiny = make_buckets(layout, 1, 2);
  CHECK(slices_of(tiny, 0).num_elements() + slices_of(tiny, 1).num_elements() == 4608);
  CHECK(std::abs(slices_of(tiny, 0).num_elements() - 2304) <= 1024);
  // One bucket, four ranks: cuts nearest to quarters, 1120, 2240, 3360.
  CHECK(make_buckets(layout, 4 * 4480, 4)[0].cuts ==
        std::vector<index_t>{0, 1024, 2048, 3200, 4480});
}

TEST_CASE("slices cover everything once and lie between norm blocks", "[buckets]") {
  for (const index_t shards : {1, 2, 4, 12}) {
    for (const int pp : {1, 2, 6}) {
      run_grid({.shards = shards, .pp = pp}, [](GridRank& rank) {
        const std::set<index_t> starts = block_starts(rank.parameters);
        const FlatLayout layout = flat_layout(rank.parameters);
        const auto fail_unless = [&](bool condition, const char* what) {
          if (!condition) throw std::runtime_error(rank.run.text() + what);
        };
        fail_unless(layout.cuts == std::vector<index_t>(starts.begin(), starts.end()), "cuts");
        for (std::size_t i = 0; i < layout.places.size(); ++i) {
          const Parameter& p = *rank.parameters.all()[i];
          fail_unless(layout.places[i] == Range{p.offset, p.offset + p.spec.local_elements()},
                      "a place");
        }
        index_t largest = 0;
        for (auto at = starts.begin(); std::next(at) != starts.end(); ++at)
          largest = std::max(largest, *std::next(at) - *at);
        for (const index_t bytes : {0, 1024, 5000, 20000, 1 << 30}) {
          for (const int dp : {1, 2, 3, 5, 12, 40}) {
            const auto buckets = make_buckets(layout, bytes, dp);
            for (const Bucket& bucket : buckets) {
              for (const index_t cut : bucket.cuts) fail_unless(starts.contains(cut), "a cut");
              const auto inside = std::count_if(starts.begin(), starts.end(), [&](index_t at) {
                return at > bucket.flat.begin && at < bucket.flat.end;
              });
              fail_unless(bucket.flat.size() * 4 <= bytes || inside == 0, "a bucket's size");
            }
            std::vector<index_t> owners(static_cast<std::size_t>(layout.cuts.back()), 0);
            const double fair = static_cast<double>(layout.cuts.back()) / dp;
            for (int r = 0; r < dp; ++r) {
              const FlatRanges slices = slices_of(buckets, r);
              for (const auto& part : slices.parts()) {
                for (index_t i = part.flat.begin; i < part.flat.end; ++i)
                  ++owners[static_cast<std::size_t>(i)];
              }
              // Each end of what a rank has in all is off by a norm block, with its pads, at most.
              const double off = std::abs(static_cast<double>(slices.num_elements()) - fair);
              fail_unless(off <= 2 * static_cast<double>(largest), "an uneven slice");
            }
            fail_unless(std::all_of(owners.begin(), owners.end(), [](auto n) { return n == 1; }),
                        "an element with no owner, or two");
          }
        }
      });
    }
  }
}

TEST_CASE("flat ranges: joined, compact, found", "[buckets]") {
  const FlatRanges ranges({{10, 20}, {40, 50}, {0, 5}, {20, 25}, {30, 30}});
  REQUIRE(ranges.parts().size() == 3);
  CHECK(ranges.parts()[1].flat == Range{10, 25});
  CHECK(ranges.num_elements() == 30);
  const auto found = [&](Range range) {
    std::vector<std::pair<Range, index_t>> all;
    ranges.for_each_in(range, [&](Range flat, index_t offset) { all.push_back({flat, offset}); });
    return all;
  };
  using Found = std::vector<std::pair<Range, index_t>>;
  CHECK(found({0, 100}) == Found{{{0, 5}, 0}, {{10, 25}, 5}, {{40, 50}, 20}});
  CHECK(found({12, 41}) == Found{{{12, 25}, 7}, {{40, 41}, 20}});
  CHECK(found({5, 10}).empty());
  CHECK(found({25, 40}).empty());
  CHECK(found({50, 60}).empty());
  CHECK(found({4, 4}).empty());
}
