#include "apps/profile_account.hpp"

#include <algorithm>
#include <numeric>

namespace weft {

namespace {

constexpr std::size_t index_of(ProfileRow row) { return static_cast<std::size_t>(row); }

constexpr ProfileRow communication_row(int group) {
  return static_cast<ProfileRow>(static_cast<int>(ProfileRow::communication_tp) + group);
}

// Other groups' time counts as that of all ranks.
int group_named(std::string_view name) {
  const auto* const found = std::find(profile_groups.begin(), profile_groups.end(), name);
  return std::min(static_cast<int>(found - profile_groups.begin()),
                  static_cast<int>(profile_groups.size()) - 1);
}

ProfileRow row_of(const OwnTime& time, int group) {
  switch (time.activity) {
    case Activity::data_wait:
      return ProfileRow::data_wait;
    case Activity::forward:
      return ProfileRow::forward;
    case Activity::backward:
      return ProfileRow::backward;
    case Activity::communication:
      return communication_row(group);
    case Activity::bubble:
      return ProfileRow::bubble;
    case Activity::update:
      return ProfileRow::update;
    default:
      return ProfileRow::unexplained;
  }
}

// In order and apart from each other.
std::vector<Range> merged(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
  std::vector<Range> apart;
  for (const Range range : ranges) {
    if (!apart.empty() && range.begin <= apart.back().end)
      apart.back().end = std::max(apart.back().end, range.end);
    else
      apart.push_back(range);
  }
  return apart;
}

class Accountant {
 public:
  Accountant(const Trace& trace, const std::vector<OwnTime>& times,
             const std::vector<GroupArrivals>& groups)
      : times_(times), groups_(groups) {
    for (const std::string& name : trace.names()) group_by_name_.push_back(group_named(name));
    std::array<std::vector<Range>, profile_groups.size()> under_way;
    for (const Trace::Interval& interval : trace.intervals()) {
      if (interval.exchange.kind == Trace::Exchange::Kind::none) continue;
      under_way[at(group_by_name_[interval.row])].push_back({interval.begin_ns, interval.end_ns});
    }
    for (std::size_t g = 0; g < under_way.size(); ++g) under_way_[g] = merged(under_way[g]);
  }

  ProfileAccount account(const std::vector<Range>& steps) {
    ProfileAccount account;
    auto next = times_.begin();
    for (const Range step : steps) {
      ProfiledStep rows{.wall_ns = step.size()};
      next = std::find_if(next, times_.end(),
                          [&](const OwnTime& time) { return time.end_ns > step.begin; });
      for (auto time = next; time != times_.end() && time->begin_ns < step.end; ++time)
        add(*time, intersection(Range{time->begin_ns, time->end_ns}, step), rows, account);
      for (std::size_t g = 0; g < under_way_.size(); ++g) add_under_way(g, step, rows);
      rows.ns[index_of(ProfileRow::unexplained)] +=
          rows.wall_ns - std::accumulate(rows.ns.begin(), rows.ns.end(), std::int64_t{0});
      account.steps.push_back(rows);
    }
    return account;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void add(const OwnTime& time, Range part, ProfiledStep& rows, ProfileAccount& account) {
    const int group = time.group == Trace::no_group ? static_cast<int>(profile_groups.size()) - 1
                                                    : group_by_name_[time.group];
    const ProfileRow row = row_of(time, group);
    // Behind what the rank does itself there is what is under way (add_under_way).
    const bool waits = row == ProfileRow::bubble || time.activity == Activity::communication;
    if (waits && time.group != Trace::no_group)
      rows.hidden_ns[at(group)] -= covered(at(group), part);
    std::int64_t waited_ns = 0;
    if (time.activity == Activity::communication && time.number >= 0)
      waited_ns = wait_for_last(time, group, part, account);
    rows.ns[index_of(ProfileRow::straggler_wait)] += waited_ns;
    rows.ns[index_of(row)] += part.size() - waited_ns;
  }

  // How much of `part` lies before the last of the group came.
  std::int64_t wait_for_last(const OwnTime& time, int group, Range part, ProfileAccount& account) {
    const auto ours = std::find_if(groups_.begin(), groups_.end(),
                                   [&](const GroupArrivals& one) { return one.group == group; });
    if (ours == groups_.end()) return 0;
    const auto last = std::lower_bound(
        ours->last.begin(), ours->last.end(), time.number,
        [](const LastArrival& arrival, std::int64_t number) { return arrival.number < number; });
    if (last == ours->last.end() || last->number != time.number) return 0;
    const std::int64_t waited_ns = intersection(part, Range{part.begin, last->at_ns}).size();
    if (waited_ns > 0)
      account.waited_ns[{ours->members[at(last->member)], group, last->cause}] += waited_ns;
    return waited_ns;
  }

  std::int64_t covered(std::size_t group, Range part) const {
    const std::vector<Range>& ranges = under_way_[group];
    auto range = std::partition_point(ranges.begin(), ranges.end(),
                                      [&](Range one) { return one.end <= part.begin; });
    std::int64_t sum = 0;
    for (; range != ranges.end() && range->begin < part.end; ++range)
      sum += intersection(*range, part).size();
    return sum;
  }

  void add_under_way(std::size_t group, Range step, ProfiledStep& rows) {
    rows.hidden_ns[group] += covered(group, step);
  }

  const std::vector<OwnTime>& times_;
  const std::vector<GroupArrivals>& groups_;
  std::vector<int> group_by_name_;  // of the trace's names
  std::array<std::vector<Range>, profile_groups.size()> under_way_;
};

}  // namespace

std::string_view name_of(ProfileRow row) {
  static constexpr std::array<std::string_view, num_profile_rows> names = {
      "data_wait",        "forward",          "backward",          "communication_tp",
      "communication_dp", "communication_pp", "communication_run", "bubble",
      "straggler_wait",   "update",           "unexplained"};
  return names[index_of(row)];
}

ProfileAccount account_of(const Trace& trace, const std::vector<OwnTime>& times,
                          const std::vector<Range>& steps,
                          const std::vector<GroupArrivals>& groups) {
  return Accountant(trace, times, groups).account(steps);
}

}  // namespace weft
