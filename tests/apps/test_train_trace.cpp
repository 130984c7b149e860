// The file of `weft train --trace`, read by parsers that are not ours, and what it says of a run
// whose schedule is known by hand.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
using Json = nlohmann::json;

struct Span {
  std::string name;
  double begin, end;  // microseconds
  long bytes, step;
};
using Rows = std::map<std::string, std::vector<Span>>;  // of one rank, each in order of begin

// From a send to its receive.
struct Arrow {
  std::vector<double> begins, ends;  // microseconds; one of each, if the trace is sound
  std::set<int> from, to;            // ranks
};

struct TraceOfRun {
  std::map<int, std::string> names;  // of the processes
  std::map<std::string, Arrow> arrows;
  std::map<int, Rows> ranks;
};

// Also has Python read the file, by the JSON parser of its library.
TraceOfRun read_trace(const std::string& path) {
  const ProcessResult python = run_shell("python3 -m json.tool " + path + " /dev/null");
  INFO(python.text);
  REQUIRE(python.exit_code == 0);
  std::ifstream file(path);
  const Json json = Json::parse(file);
  std::map<std::pair<int, int>, std::string> row_names;
  TraceOfRun trace;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") != "M") continue;
    if (event.at("name") == "process_name") {
      trace.names[event.at("pid")] = event.at("args").at("name");
      CHECK(event.at("args").at("dropped_events") == 0);
    }
    if (event.at("name") == "thread_name")
      row_names[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  }
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    if (event.at("ph") == "s" || event.at("ph") == "f") {
      Arrow& arrow = trace.arrows[event.at("id")];
      const bool begins = event.at("ph") == "s";
      (begins ? arrow.begins : arrow.ends).push_back(event.at("ts"));
      (begins ? arrow.from : arrow.to).insert(event.at("pid").get<int>());
      continue;
    }
    REQUIRE(event.at("ph") == "X");
    const double begin = event.at("ts"), duration = event.at("dur");
    REQUIRE(duration >= 0.0);
    const Json& arguments = event.at("args");
    trace.ranks[event.at("pid")][row_names.at({event.at("pid"), event.at("tid")})].push_back(
        {event.at("name"), begin, begin + duration, arguments.value("bytes", 0L),
         arguments.value("step", -1L)});
  }
  for (auto& [rank, rows] : trace.ranks) {
    for (auto& [name, spans] : rows)
      std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
      });
  }
  return trace;
}

// Half a nanosecond: times are whole nanoseconds, printed as microseconds.
constexpr double rounding = 5e-4;

// Either one after the other, or, with `nests`, one inside the other.
void check_row(const std::vector<Span>& spans, bool nests) {
  std::vector<double> open;  // ends of the spans around
  for (const Span& span : spans) {
    INFO(span.name << " at " << span.begin);
    while (!open.empty() && open.back() <= span.begin + rounding) open.pop_back();
    if (open.empty())
      open.push_back(span.end);
    else {
      CHECK(nests);
      CHECK(span.end <= open.back() + rounding);
      open.push_back(span.end);
    }
  }
}

std::vector<Span> inside(const std::vector<Span>& spans, const Span& step) {
  std::vector<Span> found;
  for (const Span& span : spans) {
    if (span.begin >= step.begin - rounding && span.end <= step.end + rounding)
      found.push_back(span);
  }
  return found;
}

// "F0 F1 B0 ...": what is computed, without the waits.
std::string computed(const std::vector<Span>& spans) {
  std::string text;
  for (const Span& span : spans) {
    if (span.name[0] == 'F' || span.name[0] == 'B') text += (text.empty() ? "" : " ") + span.name;
  }
  return text;
}

const Span& find(const std::vector<Span>& spans, const std::string& name) {
  const auto span = std::find_if(spans.begin(), spans.end(),
                                 [&](const Span& other) { return other.name == name; });
  REQUIRE(span != spans.end());
  return *span;
}

std::vector<std::string> sorted_names(const std::vector<Span>& spans) {
  std::vector<std::string> all;
  for (const Span& span : spans) all.push_back(span.name);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("a trace of four ranks shows one forward, one backward") {
  const std::string run = fresh_run("trace");
  // 10 steps of which 5 warm up; 4 lanes of 2 microbatches: 8 of them go through the pipeline.
  const ProcessResult result =
      train(write_plan({.steps = 10, .every_steps = 4}, "trace"), run,
            {4, "layout.tp=2 layout.pp=2"}, "--json --trace --trace-steps 3");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  TraceOfRun trace = read_trace(run + "/trace.json");
  CHECK(trace.names == std::map<int, std::string>{{0, "rank 0: tp 0, dp 0, pp 0"},
                                                  {1, "rank 1: tp 1, dp 0, pp 0"},
                                                  {2, "rank 2: tp 0, dp 0, pp 1"},
                                                  {3, "rank 3: tp 1, dp 0, pp 1"}});
  REQUIRE(trace.ranks.size() == 4);
  // 8 activations and 8 gradients of each of 3 steps, between the stages of either tp rank.
  std::size_t num_pipeline = 0;
  for (const auto& [id, arrow] : trace.arrows) {
    INFO("arrow " << id);
    REQUIRE(arrow.begins.size() == 1);
    REQUIRE(arrow.ends.size() == 1);
    CHECK(arrow.begins[0] <= arrow.ends[0]);
    if (!id.starts_with("pp ")) continue;
    ++num_pipeline;
    CHECK(std::abs(*arrow.from.begin() - *arrow.to.begin()) == 2);
  }
  CHECK(num_pipeline == 2 * 3 * (8 + 8));
  for (auto& [rank, rows] : trace.ranks) {
    for (const auto& [name, spans] : rows) {
      INFO("rank " << rank << ", " << name);
      check_row(spans, name == "main");
    }
    INFO("rank " << rank);
    std::vector<std::string> steps;
    for (const Span& step : rows["steps"]) steps.push_back(step.name);
    CHECK(steps == std::vector<std::string>{"6", "7", "8"});
    // By hand, from the definition: the first of two stages is one forward ahead.
    const char* expected = rank < 2 ? "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7"
                                    : "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7";
    for (const Span& step : rows["steps"])
      CHECK(computed(inside(rows["pipeline"], step)) == expected);
    CHECK(rows["data"].size() == 3);
    CHECK(rows["loader"].size() == 3);
    // Saved after steps 4, 8 and 10; the validation comes at the end.
    std::vector<long> saved;
    for (const Span& save : rows["checkpoint"]) saved.push_back(save.step);
    CHECK(saved == std::vector<long>{4, 8, 10});
    REQUIRE(rows["evaluation"].size() == 1);
    CHECK(rows["evaluation"][0].step == 10);
    // Groups by their names; there is no second replica.
    CHECK(!rows["tp"].empty());
    CHECK(!rows["pp"].empty());
    CHECK(!rows.contains("dp"));
  }
  // A stage computes what its neighbour has sent: on one machine the clocks are one.
  for (std::size_t i = 0; i < 3; ++i) {
    const auto stage = [&](int rank) {
      return inside(trace.ranks[rank]["pipeline"], trace.ranks[rank]["steps"][i]);
    };
    const std::vector<Span> first = stage(0), last = stage(2);
    for (int k = 0; k < 8; ++k) {
      const std::string f = "F" + std::to_string(k), b = "B" + std::to_string(k);
      INFO(f << " in the recorded step " << i);
      CHECK(find(first, f).end <= find(last, f).begin);
      CHECK(find(last, f).end <= find(last, b).begin);
      CHECK(find(last, b).end <= find(first, b).begin);
    }
  }
  // Both ranks of a tp group have the same collectives.
  for (const int rank : {0, 2}) {
    std::vector<Span> mine, theirs;
    for (const char* row : {"tp", "tp (2)", "tp (3)"}) {
      for (const Span& span : trace.ranks[rank][row]) mine.push_back(span);
      for (const Span& span : trace.ranks[rank + 1][row]) theirs.push_back(span);
    }
    CHECK(sorted_names(mine) == sorted_names(theirs));
    CHECK(std::any_of(mine.begin(), mine.end(), [](const Span& span) { return span.bytes > 0; }));
  }
}

TEST_CASE("buckets of gradients are in flight while backward goes on") {
  const std::string run = fresh_run("trace-buckets");
  const std::string file = run + "-elsewhere.json";
  const ProcessResult result =
      train(write_plan({.steps = 4}, "trace-buckets"), run, {2, "layout.dp=2"},
            "--json --trace " + file + " --set comm.bucket_bytes=4096");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  TraceOfRun trace = read_trace(file);
  for (auto& [rank, rows] : trace.ranks) {
    REQUIRE(rows["steps"].size() == 2);  // 2 of 4 warm up; 20 were asked for
    for (const Span& step : rows["steps"]) {
      const Span last_backward = inside(rows["pipeline"], step).back();
      std::vector<Span> buckets;
      for (const auto& [name, spans] : rows) {
        if (!name.starts_with("dp")) continue;
        for (const Span& span : inside(spans, step))
          if (span.name.starts_with("grad_sync.bucket.")) buckets.push_back(span);
      }
      INFO("rank " << rank << ", " << buckets.size() << " buckets");
      CHECK(buckets.size() >= 4);
      CHECK(std::any_of(buckets.begin(), buckets.end(),
                        [&](const Span& bucket) { return bucket.begin < last_backward.end; }));
    }
  }
}

TEST_CASE("tracing changes no bit, and what cannot be traced is said") {
  const std::string plan = write_plan({.steps = 6}, "trace-bits");
  const std::string with = fresh_run("trace-with"), without = fresh_run("trace-without");
  REQUIRE(train(plan, with, {2, "layout.pp=2"}, "--trace --trace-steps 1").exit_code == 0);
  REQUIRE(train(plan, without, {2, "layout.pp=2"}).exit_code == 0);
  CHECK(outcome_of(with) == outcome_of(without));

  const ProcessResult name =
      train(plan, fresh_run("trace-name"), {2, "layout.pp=2"}, "--trace notes.txt");
  CHECK(name.exit_code == 2);
  CHECK(name.text.find("--trace: expected a name that ends in .json; found notes.txt") !=
        std::string::npos);
  const std::string run = fresh_run("trace-folder");
  const ProcessResult missing =
      train(plan, run, {2, "layout.pp=2"}, "--trace " + run + "/no/folder/trace.json");
  CHECK(missing.exit_code == 1);
  CHECK(missing.text.find("the trace could not be written") != std::string::npos);
  CHECK(outcome_of(run) == outcome_of(without));  // the run itself is whole
}
