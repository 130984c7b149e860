// `weft report` of profiles, traces and seeds that are written here by hand: every figure that is
// said of them, and one clear message for each file that is none.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <tuple>

#include "apps/profile_records.hpp"
#include "apps/report_command.hpp"
#include "apps/report_sections.hpp"
#include "apps/svg_timeline.hpp"
#include "apps/trace_records.hpp"
#include "io/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using Json = nlohmann::ordered_json;

namespace {

namespace fs = std::filesystem;

void check_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Of two replicas over 10 steps: 40 ms, of which rank 1 makes rank 0 wait for 10.
Json rank(int dp, double forward_ms, double straggler_ms) {
  const double steps_ns = 10 * 1e6;
  return {{"tp", 0},
          {"dp", dp},
          {"pp", 0},
          {"step_ms", {{"mean", 40.0}, {"median", 39.0 + dp}, {"p95", 44.0}}},
          {"wall_ns", 40 * steps_ns},
          {"ns",
           {{"data_wait", 0},
            {"forward", forward_ms * steps_ns},
            {"communication_dp", 5 * steps_ns},
            {"straggler_wait", straggler_ms * steps_ns},
            {"unexplained", 0.5 * steps_ns}}},
          {"hidden_ns", {{"tp", 0}, {"dp", 3 * steps_ns}}},
          {"waits", dp == 0 ? Json{{{"for_rank", 1},
                                    {"over", "dp"},
                                    {"cause", "compute"},
                                    {"ms_a_step", straggler_ms}}}
                            : Json::array()},
          {"buckets",
           {{"backward_end_ms", 30.0},
            {"tail_ms", 4.0 + dp},
            {"of",
             {{{"name", "grad<0>"},
               {"ready_ms", 20.0},
               {"launched_ms", 21.0},
               {"completed_ms", 34.0 + dp}}}}}},
          {"memory",
           {{"peak_bytes", 9 << 20},
            {"peak_phase", "backward"},
            {"by_kind", {{"parameters", 4 << 20}, {"activations", 5 << 20}, {"input", 0}}},
            {"foreseen", {{"parameters", 3 << 20}, {"optimizer", 2 << 20}}}}},
          {"dropped_events", 0}};
}

Json profile() {
  return {{"profile_format", 1},
          {"plan", "it"},
          {"layout", {{"tp", 1}, {"dp", 2}, {"pp", 1}}},
          {"transport", "ucx"},
          {"warm_up_steps", 2},
          {"measured_steps", 10},
          {"injected", "1:compute=10"},
          {"straggler", {{"rank", 1}, {"cause", "compute"}, {"waited_ms_a_step", 10.0}}},
          {"slow_links", {{{"over", "dp"}, {"percent_of_time", 12.5}}}},
          {"ranks", {rank(0, 24.5, 10.0), rank(1, 34.5, 0.0)}}};
}

std::string markdown(ReportOptions options) {
  options.markdown = true;
  std::ostringstream text, out;
  CHECK(report(options, text, out) == 0);
  return out.str();
}

// Two stages, steps 7 to 9 of 100, 40 and 60 ms, each with 2 microbatches: F F B B on both, 5 ms a
// pass, the second stage 5 ms behind.
std::string trace_text() {
  Json events = Json::array();
  const auto span = [&](int rank, int row, const char* kind, double begin_ms, double ms,
                        const Json& arguments) {
    events.push_back({{"ph", "X"},
                      {"name", "x"},
                      {"cat", kind},
                      {"pid", rank},
                      {"tid", row},
                      {"ts", begin_ms * 1e3},
                      {"dur", ms * 1e3},
                      {"args", arguments}});
  };
  for (int rank = 0; rank < 2; ++rank) {
    const std::string name =
        "rank " + std::to_string(rank) + ": tp 0, dp 0, pp " + std::to_string(rank);
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", rank},
                      {"args", {{"name", name}, {"dropped_events", 0}}}});
    for (const auto& [row, what] : {std::pair{0, "steps"}, {1, "main"}, {2, "pipeline"}})
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", rank},
                        {"tid", row},
                        {"args", {{"name", what}}}});
    double begin_ms = 1000;
    for (const auto& [step, ms] : {std::pair{7, 100.0}, {8, 40.0}, {9, 60.0}}) {
      span(rank, 0, "step", begin_ms + rank, ms - 2, {{"step", step}});
      for (int k = 0; k < 2; ++k) {
        span(rank, 1, "forward", begin_ms + 5 * (k + rank) + 1, 5, Json::object());
        span(rank, 2, "forward", begin_ms + 5 * (k + rank) + 1, 5, {{"microbatch", k}});
        span(rank, 2, "backward", begin_ms + 5 * (k - rank) + 21, 5, {{"microbatch", k}});
      }
      span(rank, 2, "bubble", begin_ms + 12, 2, {{"bytes", 3}});
      begin_ms += ms;
    }
  }
  events.push_back({{"ph", "s"}, {"pid", 0}, {"tid", 4}, {"ts", 1.0}, {"id", "m"}});
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump() + "\n";
}

}  // namespace

TEST_CASE("a profile in a report has the figures of its file", "[report]") {
  const TemporaryFolder folder;
  write_all(folder / "slow.json", "text before\n" + profile().dump() + "\n");
  const std::string text =
      markdown({.runs = {}, .study = "", .html = "", .profiles = {folder / "slow.json"}});
  INFO(text);
  check_parts(text,
              {"# weft report: slow\n", "## Profile slow\n", "plan it, 2 ranks (tp 1 dp 2 pp 1)",
               "40.00 ms median, 44.00 ms P95", "DELAYS INJECTED: 1:compute=10.",
               "STRAGGLER: rank 1; the others waited 10.000 ms a step for its compute.",
               "LINKS: 12.5 % of the time went on dp",
               "| rank | forward | comm dp | straggler wait | unexplained | wall ms |",
               "| 0: tp 0 dp 0 pp 0 | 24.500 | 5.000 | 10.000 | 0.500 | 40.000 |",
               "| 1: tp 0 dp 1 pp 0 | 34.500 | 5.000 | 0.000 | 0.500 | 40.000 |",
               "| 1: tp 0 dp 1 pp 0 | 3.000 | 3.000 |",  // hidden
               "| 0 | 10.000 | 1 | dp | compute |",
               "backward ends at 30.000 ms, the last bucket 5.000 ms later",  // rank 1's is longer
               "| 0 grad<0> | 20.000 | 21.000 | 35.000 |",
               "| rank | parameters | foreseen | activations | peak MiB | in phase |",
               "| 0: tp 0 dp 0 pp 0 | 4.00 | 3.00 | 5.00 | 9.00 | backward |"});
  CHECK(text.find("Plan, resolved") == std::string::npos);

  std::ostringstream said, out;
  report({.runs = {}, .study = "", .html = "", .profiles = {folder / "slow.json"}}, said, out);
  CHECK(said.str() == "report " + folder / "slow.html\n");
  const std::string page = read_all(folder / "slow.html");
  check_parts(page, {"grad&lt;0&gt;", "The account of a mean step", "backward ends"});
  CHECK(page.find("href=\"#plans\"") == std::string::npos);
  CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("what is no profile of this version is told in one message", "[report]") {
  const auto message_of = [](const std::string& text) {
    const auto error = error_of([&] { parse_profile("p.json", text); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::usage);
    return std::string(error->what());
  };
  const auto with = [](const std::function<void(Json&)>& change) {
    Json json = profile();
    change(json);
    return json.dump();
  };
  check_parts(message_of(""), {"p.json: expected what `weft profile --json` writes", "empty file"});
  check_parts(message_of("{\"rows\":[]}\n"), {"an object of another command"});
  check_parts(message_of(with([](Json& json) { json.erase("profile_format"); })),
              {"expected a profile of format 1; found one of an older weft", "Profile again"});
  check_parts(message_of(with([](Json& json) { json["profile_format"] = 2; })), {"found format 2"});
  check_parts(message_of(with([](Json& json) { json["ranks"] = Json::array(); })),
              {"found no rank or no step"});
  for (const char* key : {"plan", "layout", "straggler", "slow_links"})
    check_parts(message_of(with([&](Json& json) { json.erase(key); })), {"changed", key});
  check_parts(message_of(with([](Json& json) { json["ranks"][1]["ns"]["forward"] = "x"; })),
              {"found one that was changed"});
  check_parts(message_of(with([](Json& json) { json["ranks"][0].erase("memory"); })), {"memory"});
  const std::string whole = profile().dump();
  for (std::size_t size = 1; size < whole.size(); size += 7)
    check_parts(message_of(whole.substr(0, size)), {"cut off"});
  CHECK(error_of([] { read_profile("/nowhere/p.json"); })->code() == ExitCode::usage);
}

TEST_CASE("a traced step is read as it lies in the file", "[report]") {
  const TracedStep step = parse_trace("t.json", trace_text(), std::nullopt);
  CHECK(step.step == 9);  // of 100, 40 and 60 ms
  CHECK(step.first_step == 7);
  CHECK(step.last_step == 9);
  REQUIRE(step.ranks.size() == 2);
  CHECK(step.ranks[1].pp == 1);
  CHECK(step.ranks[1].begin_ms == Approx(1));
  CHECK(step.ranks[1].end_ms == Approx(59));
  REQUIRE(step.ranks[1].cells.size() == 4);
  const std::vector<std::tuple<bool, int, double>> expected = {
      {false, 0, 6}, {false, 1, 11}, {true, 0, 16}, {true, 1, 21}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const PipelineCell& cell = step.ranks[1].cells[i];
    CHECK(std::tuple(cell.is_backward, static_cast<int>(cell.microbatch), cell.begin_ms) ==
          std::tuple(std::get<0>(expected[i]), std::get<1>(expected[i]),
                     Approx(std::get<2>(expected[i]))));
    CHECK(cell.end_ms - cell.begin_ms == Approx(5));
  }
  CHECK(parse_trace("t.json", trace_text(), 7).step == 7);
  CHECK(says(error_of([] { parse_trace("t.json", trace_text(), 10); }),
             "expected one of the steps 7 to 9 that t.json has; found 10"));
}

TEST_CASE("a pipeline's grid shows each pass, and how long it idles", "[report]") {
  const TemporaryFolder folder;
  write_all(folder / "t.json", trace_text());
  const ReportOptions options{.runs = {},
                              .study = "",
                              .html = folder / "page.html",
                              .traces = {folder / "t.json"},
                              .trace_step = 8};
  const std::string text = markdown(
      {.runs = {}, .study = "", .html = "", .traces = {folder / "t.json"}, .trace_step = 8});
  INFO(text);
  // From 1 to 31 ms two ranks work 20 ms each: 20 of 60 ms idle; (2 - 1) / (2 + 2 - 1).
  check_parts(text, {"## Pipeline of t\n", "step 8 of 7 to 9", "idle for 33.3 %",
                     "of 2 stages and 2 microbatches with even work is 33.3 %",
                     "| 1: tp 0 dp 0 pp 1 | 10.000 | 10.000 | 10.000 | 33.3 | 38.000 |"});
  std::ostringstream said, out;
  report(options, said, out);
  const std::string page = read_all(folder / "page.html");
  CHECK(count(page, "<rect class=\"cell\"") == 2 * 4);
  CHECK(count(page, "fill-opacity") == 2 * 2);
  CHECK(count(page, "<figure class=\"long\">") == 1);
  check_parts(page, {"stage 1, rank 1", "forward of microbatch 1: 5.000 ms, from 6.000 ms on"});
}

TEST_CASE("a run's own trace is shown", "[report]") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "it");
  write_all(folder / "it/plan.toml", "name = \"it\"\n");
  write_all(folder / "it/run.jsonl", "{\"step\":1,\"loss\":1,\"step_ms\":1,\"samples\":1}\n");
  write_all(folder / "it/trace.json", trace_text());
  check_parts(markdown({.runs = {folder / "it"}, .study = "", .html = ""}),
              {"## Pipeline of run it\n", "step 9 of 7 to 9"});
  // As of a run that was stopped before its first traced step: the rest of the report is there.
  write_all(folder / "it/trace.json", "{\"traceEvents\":[]}");
  check_parts(markdown({.runs = {folder / "it"}, .study = "", .html = ""}),
              {"## Run it\n", "## Pipeline of run it\n", "Not shown: ", "no rank in it"});
}

TEST_CASE("a trace that breaks off, or is none, is told in one message", "[report]") {
  const std::string whole = trace_text();
  for (std::size_t size = 0; size + 2 < whole.size(); size += 11) {
    const auto error = error_of([&] { parse_trace("t.json", whole.substr(0, size), {}); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::usage);
    CHECK(says(error, "t.json: expected a trace as weft train --trace"));
    CHECK(says(error, "breaks off or is no JSON at byte"));
  }
  const auto found = [](const std::string& text, const char* what) {
    INFO(text);
    CHECK(says(error_of([&] { parse_trace("t.json", text, {}); }), what));
  };
  found("{}", "other JSON");
  found("[1]", "other JSON");
  found("{\"traceEvents\":[]}", "no rank in it");
  found("{\"traceEvents\":[{\"ph\":\"X\",\"pid\":0,\"tid\":1}]}",
        "no step that all its ranks have");
  found("{\"traceEvents\":[{\"ph\":1,\"pid\":0}]}", "an event of another kind");
  found(R"({"traceEvents":[{"ph":"M","name":"process_name","pid":0,"args":{"name":"chrome"}}]})",
        "a process with the name chrome");
}

TEST_CASE("a timeline's cells are as long as their times, from where it begins", "[svg_plot]") {
  const SvgPicture picture =
      draw(Timeline{.title = "t",
                    .value_name = "ms",
                    .rows = {{"a", {{.begin = 100, .end = 120, .color = "#0072B2"}}},
                             {"b", {{.begin = 120, .end = 160, .color = "#0072B2"}}}},
                    .marks = {{"end", 150}},
                    .begin = 100});
  std::vector<double> widths;
  for (auto at = picture.body.find("class=\"cell\""); at != std::string::npos;
       at = picture.body.find("class=\"cell\"", at + 1))
    widths.push_back(std::stod(picture.body.substr(picture.body.find("width=\"", at) + 7)));
  REQUIRE(widths.size() == 2);
  CHECK(widths[1] == Approx(2 * widths[0]).epsilon(1e-3));
  CHECK(widths[0] > 80);  // a third of the axis: it does not begin at 0
  CHECK(draw(Timeline{.title = "nothing"}).body.find("no values") != std::string::npos);
}

namespace {

constexpr const char* seed_plan =
    "[task]\ndataset = \"cifar10\"\npath = \"PATH\"\n"
    "target = { metric = \"accuracy\", split = \"validation\", at_least = 0.5 }\n"
    "[model]\nkind = \"mlp\"\nlayers = 2\nhidden = 16\n[batch]\nglobal = 32\nmicro = 8\n"
    "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[run]\nsteps = 10\n";

struct SeedRunFile {
  int seed;
  std::optional<double> elapsed_s;  // none: not reached
  const char* stopped = nullptr;
  bool has_end = true;
  const char* more = "";  // of the plan
};

std::string write_seed_run(const std::string& folder, const SeedRunFile& run) {
  fs::create_directories(folder);
  const std::string set = "numerics.seed=" + std::to_string(run.seed);
  std::vector<std::string> overrides{set};
  if (*run.more) overrides.emplace_back(run.more);
  write_all(folder + "/plan.toml", to_toml(parse_plan(seed_plan, folder, overrides)));
  write_all(folder + "/run.jsonl", "{\"step\":1,\"loss\":1,\"step_ms\":1,\"samples\":1}\n");
  if (!run.has_end) return folder;
  const bool reached = run.elapsed_s.has_value();
  const double s = run.elapsed_s.value_or(0.0);
  const auto when = [&](double value) { return reached ? Json(value) : Json(nullptr); };
  write_all(folder + "/summary.json",
            Json{{"ranks", Json::array()},
                 {"step_ms", {{"warm_up_steps", 0}}},
                 {"layout", {{"tp", 1}}},
                 {"stopped", run.stopped ? Json(run.stopped) : Json(nullptr)},
                 {"target",
                  {{"metric", "accuracy"},
                   {"split", "validation"},
                   {"at_least", 0.5},
                   {"reached", reached},
                   {"step", when(10 * s)},
                   {"epochs", when(s / 2)},
                   {"value", when(0.51)},
                   {"training_s", when(s / 4)},
                   {"elapsed_s", when(s)},
                   {"best", 0.45}}}}
                .dump());
  return folder;
}

}  // namespace

TEST_CASE("time to the target over seeds: how many, median, spread", "[report]") {
  const TemporaryFolder folder;
  std::vector<std::string> runs;
  const auto add = [&](const SeedRunFile& run) {
    runs.push_back(write_seed_run(folder / ("run" + std::to_string(runs.size())), run));
  };
  add({1, 8.0});
  add({2, 4.0});
  add({3, std::nullopt});                  // the end came first
  add({4, std::nullopt, "time limit"});    // still open
  add({5, std::nullopt, nullptr, false});  // so is this one
  add({6, 6.0});
  add({7, 5.0, nullptr, true, "optimizer.lr=0.2"});  // another plan, of which there is no second
  const std::string text = markdown({.runs = runs, .study = "", .html = ""});
  INFO(text);
  // Of 4, 6, 8 and one later than all: between 6 and 8.
  check_parts(text,
              {"## Time to the target over seeds",
               "| accuracy at least 0.5 | tp 1 dp 1 pp 1 | 6 | 3 of 4 | 2 | 70 | 40 to 80 | 1.75 | "
               "1.00 to 2.00 | 7.00 | 4.00 to 8.00 |",
               "| run1 | tp 1 dp 1 pp 1 | 2 | yes | 40 | 2.00 | 1.00 | 4.00 | 0.4500 |",
               "| run2 | tp 1 dp 1 pp 1 | 3 | no | - | - | - | - | 0.4500 |",
               "| run3 | tp 1 dp 1 pp 1 | 4 | not yet"});
  CHECK(count(text, "| run6 | tp 1 dp 1 pp 1 | 7 |") == 0);

  const std::string half = markdown({.runs = {runs[0], runs[2]}, .study = "", .html = ""});
  check_parts(half, {"| 1 of 2 | 0 | none | 80 to 80 |"});
  const std::string alone = markdown({.runs = {runs[0], runs[6]}, .study = "", .html = ""});
  CHECK(alone.find("over seeds") == std::string::npos);
}
