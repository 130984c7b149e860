#include "apps/trace_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "io/extent_reader.hpp"

namespace weft {

namespace {

using Json = nlohmann::json;
constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;

struct Stretch {
  double begin_ms, end_ms;
};

// Of one process of the trace.
struct RankEvents {
  TracedRank rank;
  std::map<index_t, std::string> rows;  // names by tid
  std::map<index_t, Stretch> steps;
  std::vector<PipelineCell> cells;
};

[[noreturn]] void refuse(const std::string& path, const std::string& found) {
  throw Error(ExitCode::usage,
              fmt::format("{}: expected a trace as weft train --trace or weft profile --trace "
                          "writes it; found {}",
                          path, found));
}

class TraceReader {
 public:
  explicit TraceReader(const std::string& path) : path_(path) {}

  // Each event is dropped as soon as it was looked at: a trace has a million of them.
  void read(const std::string& text) {
    const auto look = [&](int depth, Json::parse_event_t event, Json& value) {
      if (event != Json::parse_event_t::object_end || depth != 2) return true;
      add(value);
      return false;
    };
    try {
      const Json whole = Json::parse(text, look);
      if (!whole.is_object() || !whole.contains("traceEvents")) refuse(path_, "other JSON");
    } catch (const Json::parse_error& error) {
      refuse(path_, fmt::format("a file that breaks off or is no JSON at byte {} of {}", error.byte,
                                text.size()));
    } catch (const Json::exception& error) {
      refuse(path_, fmt::format("an event of another kind: {}", error.what()));
    }
    if (ranks_.empty()) refuse(path_, "no rank in it");
  }

  TracedStep step(std::optional<index_t> wanted) const {
    const std::set<index_t> steps = common_steps();
    if (steps.empty()) refuse(path_, "no step that all its ranks have");
    if (wanted && !steps.contains(*wanted))
      throw Error(ExitCode::usage,
                  fmt::format("--trace-step: expected one of the steps {} to {} that {} has; found "
                              "{}",
                              *steps.begin(), *steps.rbegin(), path_, *wanted));
    TracedStep traced{.path = path_,
                      .step = wanted ? *wanted : typical_of(steps),
                      .first_step = *steps.begin(),
                      .last_step = *steps.rbegin(),
                      .ranks = {}};
    double origin_ms = ranks_.begin()->second.steps.at(traced.step).begin_ms;
    for (const auto& [number, events] : ranks_)
      origin_ms = std::min(origin_ms, events.steps.at(traced.step).begin_ms);
    for (const auto& [number, events] : ranks_)
      traced.ranks.push_back(rank_in(events, events.steps.at(traced.step), origin_ms));
    return traced;
  }

 private:
  void add(const Json& event) {
    if (!event.contains("ph") || !event.contains("pid")) return;
    RankEvents& events = ranks_[event.at("pid").get<index_t>()];
    const std::string kind = event.at("ph");
    if (kind == "M") return add_name(event, events);
    if (kind != "X") return;
    const auto row = events.rows.find(event.at("tid").get<index_t>());
    if (row == events.rows.end()) return;
    const double begin_ms = event.at("ts").get<double>() * 1e-3;
    const Stretch stretch{begin_ms, begin_ms + event.at("dur").get<double>() * 1e-3};
    const Json& arguments = event.at("args");
    if (row->second == "steps") {
      events.steps.insert_or_assign(arguments.at("step").get<index_t>(), stretch);
    } else if (row->second == "pipeline" && arguments.contains("microbatch")) {
      events.cells.push_back({event.at("cat") == "backward", arguments.at("microbatch"),
                              stretch.begin_ms, stretch.end_ms});
    }
  }

  void add_name(const Json& event, RankEvents& events) const {
    const std::string what = event.at("name");
    if (what == "thread_name")
      events.rows[event.at("tid").get<index_t>()] = event.at("args").at("name");
    if (what != "process_name") return;
    const std::string name = event.at("args").at("name");
    TracedRank& rank = events.rank;
    if (std::sscanf(name.c_str(), "rank %ld: tp %ld, dp %ld, pp %ld", &rank.rank, &rank.tp,
                    &rank.dp, &rank.pp) != 4)
      refuse(path_, fmt::format("a process with the name {}", name));
    rank.dropped_events = event.at("args").value("dropped_events", index_t{0});
  }

  std::set<index_t> common_steps() const {
    std::set<index_t> steps;
    for (const auto& [step, ignored] : ranks_.begin()->second.steps) {
      if (std::all_of(ranks_.begin(), ranks_.end(),
                      [&](const auto& one) { return one.second.steps.contains(step); }))
        steps.insert(step);
    }
    return steps;
  }

  index_t typical_of(const std::set<index_t>& steps) const {
    std::vector<std::pair<double, index_t>> by_time;
    for (const index_t step : steps) {
      const Stretch& stretch = ranks_.begin()->second.steps.at(step);
      by_time.emplace_back(stretch.end_ms - stretch.begin_ms, step);
    }
    std::sort(by_time.begin(), by_time.end());
    return by_time[(by_time.size() - 1) / 2].second;
  }

  static TracedRank rank_in(const RankEvents& events, const Stretch& step, double origin_ms) {
    TracedRank rank = events.rank;
    rank.begin_ms = step.begin_ms - origin_ms;
    rank.end_ms = step.end_ms - origin_ms;
    for (PipelineCell cell : events.cells) {
      if (cell.begin_ms < step.begin_ms || cell.begin_ms >= step.end_ms) continue;
      cell.begin_ms -= origin_ms;
      cell.end_ms -= origin_ms;
      rank.cells.push_back(cell);
    }
    std::stable_sort(
        rank.cells.begin(), rank.cells.end(),
        [](const PipelineCell& a, const PipelineCell& b) { return a.begin_ms < b.begin_ms; });
    return rank;
  }

  const std::string& path_;
  std::map<index_t, RankEvents> ranks_;  // by pid
};

}  // namespace

TracedStep parse_trace(const std::string& path, const std::string& text,
                       std::optional<index_t> step) {
  TraceReader reader(path);
  reader.read(text);
  return reader.step(step);
}

TracedStep read_trace(const std::string& path, std::optional<index_t> step) {
  std::string text;
  try {
    text = read_whole_file(path, most_bytes);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, fmt::format("the trace of a report: {}", error.what()));
  }
  return parse_trace(path, text, step);
}

}  // namespace weft
