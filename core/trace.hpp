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
    std::int64_t begin_ns;  // since the trace began
    std::int64_t end_ns;
    std::uint64_t bytes;  // payload sent, for communication
  };

  // Opens on construction, closes on destruction. Spans nest: a span's own time excludes the spans
  // inside it, so that own times add up to wall time.
  class Span {
   public:
    Span(Trace* trace, Activity activity, std::string_view name);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }

   private:
    Trace* trace_;
    Span* parent_ = nullptr;
    Activity activity_{};
    std::uint32_t name_ = 0;
    std::int64_t begin_ns_ = 0;
    std::int64_t nested_ns_ = 0;
    std::uint64_t bytes_ = 0;
  };

  Trace() : start_(Clock::now()) {}

  std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }
  // Own time of every closed span so far, by activity.
  std::int64_t own_ns(Activity activity) const { return own_ns_[static_cast<int>(activity)]; }

  // Keep single events from now on (they cost memory); off at first.
  void record_events(bool on) { record_ = on; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  friend class Span;
  std::uint32_t intern(std::string_view name);

  Clock::time_point start_;
  Span* open_ = nullptr;
  bool record_ = false;
  std::int64_t own_ns_[num_activities] = {};
  std::vector<Event> events_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace weft
