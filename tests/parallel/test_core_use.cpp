// Whether a core is left beside the ranks of a host.
#include <catch2/catch.hpp>

#include <sched.h>

#include <algorithm>

#include "parallel/comm/core_use.hpp"

using namespace weft;

TEST_CASE("a core is idle where there are more than threads of all ranks there", "[core_use]") {
  const struct {
    const char* what;
    std::vector<CoreUse> ranks;
    std::vector<bool> expected;
  } cases[] = {
      {"alone", {{"a", "11", 1}}, {true}},
      {"alone, all cores computing", {{"a", "11", 2}}, {false}},
      {"two ranks, two cores", {{"a", "11", 1}, {"a", "11", 1}}, {false, false}},
      {"two ranks, three cores", {{"a", "111", 1}, {"a", "111", 1}}, {true, true}},
      {"two ranks of two threads, four cores",
       {{"a", "1111", 2}, {"a", "1111", 2}},
       {false, false}},
      {"two hosts", {{"a", "11", 1}, {"b", "11", 1}}, {true, true}},
      {"bound to a core each, of many", {{"a", "10", 1}, {"a", "01", 1}}, {false, false}},
      {"bound to two each, one computing on both",
       {{"a", "1100", 1}, {"a", "0011", 2}},
       {true, false}},
      {"one bound, one free", {{"a", "1000", 1}, {"a", "1111", 1}}, {false, true}},
      {"two bound to the same two cores, one elsewhere",
       {{"a", "11", 1}, {"a", "11", 1}, {"a", "0011", 1}},
       {false, false, true}},
      {"a host that tells nothing", {{"a", "", 1}}, {false}},
  };
  for (const auto& one : cases) {
    INFO(one.what);
    for (std::size_t me = 0; me < one.ranks.size(); ++me) {
      INFO("rank " << me);
      CHECK(has_idle_core(one.ranks, me) == one.expected[me]);
    }
  }
}

TEST_CASE("what a rank says of its cores is the system's, and arrives", "[core_use]") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof(before), &before) == 0);
  const CoreUse mine = CoreUse::mine(3);
  CHECK(std::count(mine.cores.begin(), mine.cores.end(), '1') == CPU_COUNT(&before));
  CHECK_FALSE(mine.host.empty());
  const CoreUse read = CoreUse::from_text(mine.text());
  CHECK(read.host == mine.host);
  CHECK(read.cores == mine.cores);
  CHECK(read.num_threads == 3);
  // Bound to one of them.
  const auto first = static_cast<int>(mine.cores.find('1'));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof(one), &one) == 0);
  const CoreUse bound = CoreUse::mine(1);
  ::sched_setaffinity(0, sizeof(before), &before);
  CHECK(bound.cores == std::string(static_cast<std::size_t>(first), '0') + "1");
  CHECK_FALSE(has_idle_core({bound}, 0));
}
