#include "apps/wait_account.hpp"

#include <algorithm>
#include <utility>

namespace weft {

namespace {

// Spans that began at the same time: the one that ends last encloses the others.
bool comes_first(const Trace::Event& a, const Trace::Event& b) {
  return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
}

Cause cause_of(Activity activity) {
  if (activity == Activity::data_wait) return Cause::data;
  const bool waits = activity == Activity::communication || activity == Activity::bubble;
  return waits ? Cause::communication : Cause::compute;
}

// What was in no span is the rank's own work, too.
class Spent {
 public:
  explicit Spent(const std::vector<OwnTime>& times) : times_(times) {
    std::array<std::int64_t, num_causes> sum{};
    for (const OwnTime& time : times) {
      before_.push_back(sum);
      sum[static_cast<std::size_t>(cause_of(time.activity))] += time.ns();
    }
  }

  std::array<std::int64_t, num_causes> until(std::int64_t at_ns) const {
    std::array<std::int64_t, num_causes> sum{};
    if (times_.empty() || at_ns <= times_.front().begin_ns) return sum;
    const auto next =
        std::upper_bound(times_.begin(), times_.end(), at_ns,
                         [](std::int64_t at, const OwnTime& time) { return at < time.begin_ns; });
    const OwnTime& last = *(next - 1);
    sum = before_[static_cast<std::size_t>(next - 1 - times_.begin())];
    sum[static_cast<std::size_t>(cause_of(last.activity))] +=
        std::min(at_ns, last.end_ns) - last.begin_ns;
    auto& compute = sum[static_cast<std::size_t>(Cause::compute)];
    compute = at_ns - times_.front().begin_ns - sum[static_cast<std::size_t>(Cause::data)] -
              sum[static_cast<std::size_t>(Cause::communication)];
    return sum;
  }

 private:
  const std::vector<OwnTime>& times_;
  std::vector<std::array<std::int64_t, num_causes>> before_;
};

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<OwnTime> own_times(std::vector<Trace::Event> spans) {
  std::stable_sort(spans.begin(), spans.end(), comes_first);
  std::vector<OwnTime> times;
  std::vector<const Trace::Event*> open;
  std::int64_t at_ns = 0;  // up to here all time has its place
  const auto go_on_to = [&](std::int64_t end_ns) {
    if (!open.empty() && end_ns > at_ns) {
      const Trace::Event& span = *open.back();
      times.push_back({at_ns, end_ns, span.activity, span.group, span.index});
    }
    at_ns = std::max(at_ns, end_ns);
  };
  const auto close_until = [&](std::int64_t begin_ns) {
    while (!open.empty() && open.back()->end_ns <= begin_ns) {
      go_on_to(open.back()->end_ns);
      open.pop_back();
    }
  };
  for (const Trace::Event& span : spans) {
    close_until(span.begin_ns);
    go_on_to(span.begin_ns);
    open.push_back(&span);
  }
  while (!open.empty()) {
    go_on_to(open.back()->end_ns);
    open.pop_back();
  }
  return times;
}

std::string_view name_of(Cause cause) {
  static constexpr std::array<std::string_view, num_causes> names = {"data", "compute",
                                                                     "communication"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<Arrival> arrivals_of(const Trace& trace, const std::vector<OwnTime>& times,
                                 std::string_view group, std::int64_t ahead_ns) {
  const Spent spent(times);
  std::vector<Arrival> arrivals;
  for (const Trace::Interval& interval : trace.intervals()) {
    if (interval.exchange.kind != Trace::Exchange::Kind::collective) continue;
    if (trace.names()[interval.row] != group) continue;
    arrivals.push_back(
        {interval.exchange.number, interval.begin_ns - ahead_ns, spent.until(interval.begin_ns)});
  }
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.number < b.number; });
  return arrivals;
}

namespace {

// All members come to one collective.
struct Meeting {
  std::vector<Arrival> arrivals;
  std::size_t last = 0;

  std::int64_t end_ns() const { return arrivals[last].at_ns; }
  // Of the members but the last.
  template <class Get>
  std::int64_t median_of_others(Get get) const {
    std::vector<std::int64_t> values;
    for (std::size_t m = 0; m < arrivals.size(); ++m)
      if (m != last) values.push_back(get(m));
    return median(std::move(values));
  }
};

Meeting meeting_of(std::vector<Arrival> arrivals) {
  const auto last =
      std::max_element(arrivals.begin(), arrivals.end(),
                       [](const Arrival& a, const Arrival& b) { return a.at_ns < b.at_ns; });
  const auto member = static_cast<std::size_t>(last - arrivals.begin());
  return {std::move(arrivals), member};
}

// The last meeting that was over when the others came to this one: who was late for one that was
// still under way then is late for this one, too, and for the same reason.
const Meeting* base_of(const Meeting& now, const std::vector<Meeting>& before) {
  const std::int64_t came_ns =
      now.median_of_others([&](std::size_t m) { return now.arrivals[m].at_ns; });
  const auto base = std::find_if(before.rbegin(), before.rend(),
                                 [&](const Meeting& one) { return one.end_ns() <= came_ns; });
  return base == before.rend() ? nullptr : &*base;
}

Cause cause_of_delay(const Meeting& now, const Meeting* base) {
  const auto spent = [&](std::size_t member, std::size_t cause) {
    const std::int64_t then = base ? base->arrivals[member].spent_ns[cause] : 0;
    return now.arrivals[member].spent_ns[cause] - then;
  };
  std::array<std::int64_t, num_causes> excess{};
  for (std::size_t cause = 0; cause < excess.size(); ++cause)
    excess[cause] = spent(now.last, cause) -
                    now.median_of_others([&](std::size_t m) { return spent(m, cause); });
  return static_cast<Cause>(std::max_element(excess.begin(), excess.end()) - excess.begin());
}

}  // namespace

std::vector<LastArrival> last_arrivals(const std::vector<std::vector<Arrival>>& of_members) {
  std::vector<LastArrival> last;
  if (of_members.size() < 2) return last;
  std::vector<std::size_t> next(of_members.size(), 0);
  std::vector<Meeting> meetings;
  for (const Arrival& first : of_members[0]) {
    std::vector<Arrival> now;
    for (std::size_t m = 0; m < of_members.size(); ++m) {
      const std::vector<Arrival>& list = of_members[m];
      while (next[m] < list.size() && list[next[m]].number < first.number) ++next[m];
      if (next[m] < list.size() && list[next[m]].number == first.number)
        now.push_back(list[next[m]]);
    }
    if (now.size() < of_members.size()) continue;
    const Meeting meeting = meeting_of(std::move(now));
    last.push_back({first.number, meeting.end_ns(), static_cast<int>(meeting.last),
                    cause_of_delay(meeting, base_of(meeting, meetings))});
    meetings.push_back(meeting);
  }
  return last;
}

}  // namespace weft
