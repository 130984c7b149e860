// Spans of time on one rank, named alike in trace, error and profile. Kept in memory; io writes
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft {

// What a rank's main thread is busy with; the account of a step adds these up.
enum class Activity : std::uint8_t {
  start_up,
  data_wait,
  forward,
  backward,
  communication,
  bubble,  // a pipeline stage without work: it waits for a neighbour's result
  update,
  evaluation,
  checkpoint,
  output
};
inline constexpr int num_activities = 10;
std::string_view name_of(Activity activity);

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  struct Event {
    std::uint32_t name;  // index into names()
    Activity activity;
    std::uint16_t group;    // index into names(): who communicates; or no_group
    std::int64_t begin_ns;  // since the trace began
    std::int64_t end_ns;
    std::uint64_t bytes;  // payload sent, for communication
    std::int64_t index;   // of a microbatch; with a group, of its collectives; or -1
  };
  static constexpr std::uint16_t no_group = 0xffff;

  // Which collective of its group, or which message between two ranks, an interval is; the same on
  // all that take part.
  struct Exchange {
    enum class Kind : std::uint8_t { none, collective, send, receive };
    Kind kind = Kind::none;
    std::int32_t peer = -1;    // of a message: the other's world rank
    std::int64_t number = -1;  // of a group's collectives, or of a pair's messages one way
  };

  // What goes on beside the main thread's spans, and is no part of the account: a collective from
  // its start to its end, another thread's work, a step.
  struct Interval {
    std::uint32_t row;   // index into names(): what they are shown together with
    std::uint32_t name;  // index into names()
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t bytes;
    std::int64_t index;  // of a step, or -1
    Exchange exchange;
  };
  struct IntervalLabel {
    std::string_view row;
    std::string_view name;
    std::uint64_t bytes = 0;
    std::int64_t index = -1;
    Exchange exchange = {};
  };

  // Of both kinds together: some 50 MB, then they are counted and dropped.
  static constexpr std::size_t most_events = std::size_t{1} << 20;

  // Opens on construction, closes on destruction. Spans nest: a span's own time excludes the spans
  // inside it, so that own times add up to wall time.
  class Span {
   public:
    Span(Trace* trace, Activity activity, std::string_view name, std::int64_t index = -1);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }
    // For communication.
    void set_group(std::string_view group);

   private:
    Trace* trace_;
    Span* parent_ = nullptr;
    Activity activity_{};
    std::uint32_t name_ = 0;
    std::int64_t begin_ns_ = 0;
    std::int64_t nested_ns_ = 0;
    std::uint64_t bytes_ = 0;
    std::int64_t index_ = -1;
    std::uint16_t group_ = no_group;
    bool is_recorded_ = false;  // recording may begin or end within a span
    bool is_region_ = false;    // of a Kokkos tool that is loaded, too
  };

  Trace() : start_(Clock::now()) {}

  Clock::time_point begin() const { return start_; }
  std::int64_t now_ns() const { return ns_of(Clock::now()); }
  std::int64_t ns_of(Clock::time_point time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_).count();
  }
  // Own time of every closed span so far, by activity.
  std::int64_t own_ns(Activity activity) const { return own_ns_[static_cast<int>(activity)]; }

  // Keep single events from now on (they cost memory); off at first.
  void record_events(bool on) { record_ = on; }
  bool is_recording() const { return record_; }
  // Also while events are not recorded.
  void add_interval(const IntervalLabel& label, std::int64_t begin_ns, std::int64_t end_ns);
  const std::vector<Interval>& intervals() const { return intervals_; }
  std::size_t num_dropped() const { return num_dropped_; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  friend class Span;
  std::uint32_t intern(std::string_view name);
  bool has_room();

  Clock::time_point start_;
  Span* open_ = nullptr;
  bool record_ = false;
  std::int64_t own_ns_[num_activities] = {};
  std::vector<Event> events_;
  std::vector<Interval> intervals_;
  std::size_t num_dropped_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace weft
