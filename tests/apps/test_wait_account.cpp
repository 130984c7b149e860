// The arithmetic of `weft profile` on spans and times that are written down here.
#include <catch2/catch.hpp>
#include <numeric>
#include <sstream>

#include "apps/profile_report.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;

namespace {

constexpr std::int64_t ms = 1000000;
using Kind = Trace::Exchange::Kind;

Trace::Event span(Activity activity, std::int64_t begin, std::int64_t end,
                  std::uint16_t group = Trace::no_group, std::int64_t number = -1) {
  return {0, activity, group, begin, end, 0, number};
}

std::int64_t row(const ProfiledStep& step, ProfileRow which) {
  return step.ns[static_cast<std::size_t>(which)];
}

std::int64_t sum(const ProfiledStep& step) {
  return std::accumulate(step.ns.begin(), step.ns.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("own times: the innermost span has the time, a gap is nobody's") {
  const std::vector<OwnTime> times =
      own_times({span(Activity::communication, 10, 30, 3, 7), span(Activity::forward, 0, 100),
                 span(Activity::communication, 90, 100, 4, -1), span(Activity::update, 120, 150)});
  struct Expected {
    std::int64_t begin, end;
    Activity activity;
    int group;
  };
  const std::vector<Expected> expected = {{0, 10, Activity::forward, Trace::no_group},
                                          {10, 30, Activity::communication, 3},
                                          {30, 90, Activity::forward, Trace::no_group},
                                          {90, 100, Activity::communication, 4},
                                          {120, 150, Activity::update, Trace::no_group}};
  REQUIRE(times.size() == expected.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    INFO(i);
    CHECK(times[i].begin_ns == expected[i].begin);
    CHECK(times[i].end_ns == expected[i].end);
    CHECK(times[i].activity == expected[i].activity);
    CHECK(times[i].group == expected[i].group);
  }
  CHECK(times[1].number == 7);
}

// Four participants compute for 40, 41, 42 and 65 ms, so that three wait for 25, 24 and 23 (the
// course, on synchronous data parallelism); the bytes then take 3 ms.
TEST_CASE("the course's straggler: waits of 25, 24 and 23 ms") {
  const std::vector<std::int64_t> compute = {40 * ms, 41 * ms, 42 * ms, 65 * ms};
  const std::vector<std::int64_t> waits = {25 * ms, 24 * ms, 23 * ms, 0};
  const std::int64_t end = 68 * ms;
  std::vector<Trace> traces(4);
  std::vector<std::vector<OwnTime>> times;
  std::vector<std::vector<Arrival>> arrivals;
  for (std::size_t r = 0; r < 4; ++r) {
    // The names "dp" and "bucket" are 0 and 1.
    traces[r].add_interval({.row = "dp", .name = "bucket", .exchange = {Kind::collective, -1, 5}},
                           compute[r], end);
    times.push_back(own_times({span(Activity::forward, 0, compute[r] / 2),
                               span(Activity::backward, compute[r] / 2, compute[r]),
                               span(Activity::communication, compute[r], end, 0, 5)}));
    arrivals.push_back(arrivals_of(traces[r], times[r], "dp", 0));
    REQUIRE(arrivals[r].size() == 1);
    CHECK(arrivals[r][0].at_ns == compute[r]);
  }
  const std::vector<LastArrival> last = last_arrivals(arrivals);
  REQUIRE(last.size() == 1);
  CHECK(last[0].member == 3);
  CHECK(last[0].cause == Cause::compute);
  std::vector<ProfiledRank> ranks(4);
  for (std::size_t r = 0; r < 4; ++r) {
    INFO("rank " << r);
    ranks[r].account = account_of(traces[r], times[r], {{0, 70 * ms}}, {{1, {0, 1, 2, 3}, last}});
    const ProfiledStep& step = ranks[r].account.steps.at(0);
    CHECK(row(step, ProfileRow::straggler_wait) == waits[r]);
    CHECK(row(step, ProfileRow::communication_dp) == 3 * ms);
    CHECK(row(step, ProfileRow::forward) + row(step, ProfileRow::backward) == compute[r]);
    CHECK(row(step, ProfileRow::unexplained) == 2 * ms);
    CHECK(sum(step) == step.wall_ns);
    CHECK(step.wall_ns == 70 * ms);
    CHECK(step.hidden_ns[1] == 0);  // all of it was waited for
  }
  const auto straggler = straggler_of(ranks);
  REQUIRE(straggler);
  CHECK(straggler->rank == 3);
  CHECK(straggler->cause == Cause::compute);
  CHECK(straggler->ms_a_step == Approx(25 + 24 + 23));
  // The way to rank 0 loses nothing.
  for (const ProfiledRank& rank : ranks) {
    const ProfiledRank copy = from_bytes(to_bytes(rank));
    CHECK(copy.account.steps.at(0).ns == rank.account.steps.at(0).ns);
    CHECK(copy.account.waited_ns == rank.account.waited_ns);
  }
}

TEST_CASE("a bucket under way behind backward is hidden, and its rest is exposed") {
  Trace trace;
  trace.add_interval({.row = "dp", .name = "b", .exchange = {Kind::collective, -1, 0}}, 20, 100);
  trace.add_interval({.row = "dp", .name = "b", .exchange = {Kind::collective, -1, 1}}, 40, 120);
  const std::vector<OwnTime> times =
      own_times({span(Activity::backward, 0, 90), span(Activity::communication, 90, 120, 0, 1)});
  // Nobody came later than this rank.
  const std::vector<LastArrival> last = {{0, 20, 0, Cause::compute}, {1, 40, 1, Cause::compute}};
  const ProfileAccount account = account_of(trace, times, {{0, 130}}, {{1, {4, 9}, last}});
  const ProfiledStep& step = account.steps.at(0);
  CHECK(row(step, ProfileRow::backward) == 90);
  CHECK(row(step, ProfileRow::communication_dp) == 30);
  CHECK(step.hidden_ns[1] == 70);  // 20 to 90
  CHECK(row(step, ProfileRow::straggler_wait) == 0);
  CHECK(account.waited_ns.empty());
}

TEST_CASE("a span over the end of a step counts in both") {
  const std::vector<OwnTime> times =
      own_times({span(Activity::forward, 0, 40), span(Activity::update, 40, 60)});
  const ProfileAccount account = account_of(Trace(), times, {{10, 50}, {50, 70}}, {});
  REQUIRE(account.steps.size() == 2);
  CHECK(row(account.steps[0], ProfileRow::forward) == 30);
  CHECK(row(account.steps[0], ProfileRow::update) == 10);
  CHECK(row(account.steps[1], ProfileRow::update) == 10);
  CHECK(row(account.steps[1], ProfileRow::unexplained) == 10);
}

TEST_CASE("why the last one came late: what it did more of since they met before") {
  struct Case {
    const char* what;
    std::array<std::int64_t, 3> spent;  // data, compute, communication of the late one
    Cause cause;
  };
  const Case late[] = {{"its loader", {30, 100, 20}, Cause::data},
                       {"its work", {5, 140, 20}, Cause::compute},
                       {"it waited elsewhere", {5, 100, 60}, Cause::communication}};
  for (const Case& one : late) {
    INFO(one.what);
    const std::array<std::int64_t, 3> usual = {5, 100, 20};
    std::vector<std::vector<Arrival>> members;
    for (int m = 0; m < 3; ++m) {
      const auto& spent = m == 1 ? one.spent : usual;
      // What was before the first meeting does not count: there another one was late.
      const std::array<std::int64_t, 3> before = {m == 2 ? 1000 : 0, 0, 0};
      std::array<std::int64_t, 3> both{};
      for (std::size_t i = 0; i < 3; ++i) both[i] = before[i] + spent[i];
      members.push_back(
          {{4, m == 2 ? 1000 : 0, before}, {5, 2000 + spent[0] + spent[1] + spent[2], both}});
    }
    const std::vector<LastArrival> last = last_arrivals(members);
    REQUIRE(last.size() == 2);
    CHECK(last[0].member == 2);
    CHECK(last[0].cause == Cause::data);
    CHECK(last[1].number == 5);
    CHECK(last[1].member == 1);
    CHECK(last[1].cause == one.cause);
  }
}

// As buckets of gradients: all are launched before anybody waits for the first.
TEST_CASE("who is late for one collective is late for those launched with it, for one reason") {
  const auto member = [](std::int64_t compute) {
    std::vector<Arrival> arrivals = {{0, 10, {0, 10, 0}}};
    for (const std::int64_t number : {1, 2, 3}) {
      const std::int64_t at = 20 + compute + number;
      arrivals.push_back({number, at, {0, 10 + compute, number}});
    }
    return arrivals;
  };
  std::vector<std::vector<Arrival>> members = {member(100), member(160), member(100)};
  // The late one polls a little longer, too.
  for (std::size_t n = 1; n < 4; ++n) members[1][n].spent_ns[2] += 3;
  const std::vector<LastArrival> last = last_arrivals(members);
  REQUIRE(last.size() == 4);
  for (std::size_t n = 1; n < 4; ++n) {
    CHECK(last[n].member == 1);
    CHECK(last[n].cause == Cause::compute);
  }
}

TEST_CASE("a collective that one member did not record is left out") {
  const std::vector<std::vector<Arrival>> members = {{{1, 10, {}}, {2, 20, {}}, {3, 30, {}}},
                                                     {{2, 25, {}}, {3, 26, {}}, {4, 40, {}}}};
  const std::vector<LastArrival> last = last_arrivals(members);
  REQUIRE(last.size() == 2);
  CHECK(last[0].number == 2);
  CHECK(last[0].at_ns == 25);
  CHECK(last[0].member == 1);
  CHECK(last[1].number == 3);
  CHECK(last[1].member == 0);
  CHECK(last_arrivals({members[0]}).empty());
}

TEST_CASE("who passes a delay on is no straggler") {
  std::vector<ProfiledRank> ranks(2);
  ranks[0].account.steps = {{.wall_ns = 1000}};
  ranks[1].account.steps = {{.wall_ns = 1000}};
  ranks[0].account.waited_ns[{1, 0, Cause::communication}] = 500;
  CHECK_FALSE(straggler_of(ranks));
  ranks[1].account.waited_ns[{0, 1, Cause::data}] = 39;  // below 2 % of 2000
  CHECK_FALSE(straggler_of(ranks));
  ranks[1].account.waited_ns[{0, 1, Cause::data}] = 40;
  REQUIRE(straggler_of(ranks));
  CHECK(straggler_of(ranks)->rank == 0);
  CHECK(straggler_of(ranks)->cause == Cause::data);
}

TEST_CASE("the table of a profile is even, and says what its trace had no room for") {
  const Plan plan = weft::testing::sample_plan();
  Profile profile{.plan = plan,
                  .transport = "ucx",
                  .warm_up = 3,
                  .delays = {},
                  .state_hash = {},
                  .loss_hash = {},
                  .skipped_rows = {},
                  .ranks = std::vector<ProfiledRank>(12)};
  for (ProfiledRank& rank : profile.ranks) {
    rank.account.steps = {{.wall_ns = 40 * ms}};
    rank.account.steps[0].ns[static_cast<std::size_t>(ProfileRow::forward)] = 30 * ms;
    rank.account.steps[0].ns[static_cast<std::size_t>(ProfileRow::update)] = 10 * ms;
  }
  std::ostringstream text;
  print(profile, text);
  std::istringstream lines(text.str());
  std::vector<std::string> table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  mean of a step, ms") || !table.empty()) table.push_back(line);
    if (line.starts_with("  all ranks, %")) break;
  }
  REQUIRE(table.size() == 1 + 12 + 1);
  for (const std::string& line : table) CHECK(line.size() == table.front().size());
  CHECK_THAT(table[12], Catch::Contains("rank 11 ") && Catch::Contains("40.000") &&
                            Catch::Contains("30.000") && Catch::Contains("10.000"));
  CHECK_THAT(table[13], Catch::Contains("75.0") && Catch::Contains("25.0"));
  CHECK_THAT(text.str(), !Catch::Contains("WARNING"));
  profile.ranks[5].dropped_events = 7;
  text.str("");
  print(profile, text);
  CHECK_THAT(text.str(), Catch::Contains("WARNING: 7 spans"));
}
