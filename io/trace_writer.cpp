#include "io/trace_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace weft {

namespace {

constexpr int steps_row = 0, main_row = 1, pipeline_row = 2, data_row = 3, first_free_row = 4;

std::string json_string(std::string_view text) { return nlohmann::json(text).dump(); }

class RankEvents {
 public:
  RankEvents(const Trace& trace, const TracePlace& place) : trace_(trace), place_(place) {}

  std::string text() {
    name_process();
    name_row(steps_row, "steps");
    name_row(main_row, "main");
    name_row(pipeline_row, "pipeline");
    name_row(data_row, "data");
    for (const Trace::Event& event : trace_.events()) add_span(event);
    add_intervals();
    return std::move(text_);
  }

 private:
  void append(const std::string& object) {
    if (!text_.empty()) text_ += ",\n";
    text_ += object;
  }

  void name_process() {
    append(fmt::format(
        R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{},"dropped_events":{}}}}})",
        place_.rank, json_string(place_.name), trace_.num_dropped()));
    append(fmt::format(
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
        place_.rank));
  }

  void name_row(int row, std::string_view name) {
    append(
        fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                    place_.rank, row, json_string(name)));
    append(fmt::format(
        R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        place_.rank, row, row));
  }

  // Microseconds, to the nanosecond.
  static std::string us(std::int64_t ns) {
    return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
  }

  // One end of the arrow from a send to its receive: both name the message alike.
  void add_arrow(int row, std::string_view group, const Trace::Interval& interval) {
    using Kind = Trace::Exchange::Kind;
    const Trace::Exchange& message = interval.exchange;
    if (message.kind != Kind::send && message.kind != Kind::receive) return;
    const bool is_send = message.kind == Kind::send;
    const int from = is_send ? place_.rank : message.peer;
    const int to = is_send ? message.peer : place_.rank;
    // A receive's end belongs to what comes behind it; the arrow ends within it.
    const std::int64_t at_ns =
        is_send ? interval.begin_ns : std::max(interval.begin_ns, interval.end_ns - 1);
    append(fmt::format(
        R"({{"ph":"{}",{}"name":"message","cat":"message","id":"{} {}>{} {}","pid":{},"tid":{},"ts":{}}})",
        is_send ? "s" : "f", is_send ? "" : R"("bp":"e",)", group, from, to, message.number,
        place_.rank, row, us(at_ns + place_.shift_ns)));
  }

  void add(int row, std::string_view name, std::string_view kind, std::int64_t begin_ns,
           std::int64_t end_ns, const std::string& arguments) {
    append(fmt::format(
        R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
        json_string(name), json_string(kind), place_.rank, row, us(begin_ns + place_.shift_ns),
        us(end_ns - begin_ns), arguments));
  }

  void add_span(const Trace::Event& event) {
    const std::string_view name = trace_.names()[event.name];
    const std::string_view kind = name_of(event.activity);
    const std::string bytes = event.bytes > 0 ? fmt::format(R"("bytes":{})", event.bytes) : "";
    const auto in_row = [&](int row, std::string_view shown, const std::string& arguments) {
      add(row, shown, kind, event.begin_ns, event.end_ns, arguments);
    };
    in_row(main_row, name, bytes);
    if (event.index >= 0 && event.activity == Activity::forward)
      in_row(pipeline_row, fmt::format("F{}", event.index), index_text("microbatch", event.index));
    if (event.index >= 0 && event.activity == Activity::backward)
      in_row(pipeline_row, fmt::format("B{}", event.index), index_text("microbatch", event.index));
    if (event.activity == Activity::bubble) in_row(pipeline_row, name, bytes);
    if (event.activity == Activity::data_wait) in_row(data_row, name, "");
  }

  static std::string index_text(const char* what, std::int64_t index) {
    return index < 0 ? std::string() : fmt::format(R"("{}":{})", what, index);
  }

  // By row, then in order of their begin; each into the first lane that is free by then.
  void add_intervals() {
    std::map<std::string_view, std::vector<const Trace::Interval*>> rows;
    for (const Trace::Interval& interval : trace_.intervals())
      rows[trace_.names()[interval.row]].push_back(&interval);
    int next_row = first_free_row;
    for (auto& [name, intervals] : rows) {
      std::stable_sort(intervals.begin(), intervals.end(),
                       [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
      if (name == "steps") {
        for (const Trace::Interval* step : intervals)
          add(steps_row, fmt::format("{}", step->index), "step", step->begin_ns, step->end_ns,
              index_text("step", step->index));
        continue;
      }
      next_row += add_row(name, intervals, next_row);
    }
  }

  // Returns how many lanes it took.
  int add_row(std::string_view name, const std::vector<const Trace::Interval*>& intervals,
              int first_row) {
    std::vector<std::int64_t> busy_until;
    for (const Trace::Interval* interval : intervals) {
      const auto is_free = [&](std::int64_t end_ns) { return end_ns <= interval->begin_ns; };
      const auto lane = std::find_if(busy_until.begin(), busy_until.end(), is_free);
      const auto number = static_cast<int>(lane - busy_until.begin());
      if (lane == busy_until.end()) {
        name_row(first_row + number,
                 number == 0 ? std::string(name) : fmt::format("{} ({})", name, number + 1));
        busy_until.push_back(interval->end_ns);
      } else {
        *lane = interval->end_ns;
      }
      std::string arguments = fmt::format(R"("bytes":{})", interval->bytes);
      if (interval->index >= 0) arguments += "," + index_text("step", interval->index);
      add(first_row + number, trace_.names()[interval->name], name, interval->begin_ns,
          interval->end_ns, arguments);
      add_arrow(first_row + number, name, *interval);
    }
    return static_cast<int>(busy_until.size());
  }

  const Trace& trace_;
  const TracePlace& place_;
  std::string text_;
};

}  // namespace

std::string trace_events(const Trace& trace, const TracePlace& place) {
  return RankEvents(trace, place).text();
}

void TraceFile::add(const std::string& events) {
  file_.write(has_events_ ? ",\n" : "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  file_.write(events);
  has_events_ = true;
}

void TraceFile::commit() {
  file_.write("\n]}\n");
  file_.commit();
}

}  // namespace weft
