// `weft report` of a run whose records are written here by hand: what the page and the text say of
// them, and that neither says more.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/report_command.hpp"
#include "apps/report_document.hpp"
#include "apps/run_records.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;
using Json = nlohmann::ordered_json;

namespace {

namespace fs = std::filesystem;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Json rank(int dp, double forward, double communication) {
  return {{"tp", 0},
          {"dp", dp},
          {"pp", 0},
          {"peak_phase", "backward"},
          {"peak_bytes_by_kind", {{"parameters", 3 << 20}, {"activations", 5 << 20}, {"input", 0}}},
          {"ms", {{"forward", forward}, {"communication", communication}, {"bubble", 0.0}}}};
}

// 60 steps: 20 of warm-up with 500 ms, then 1, 2, ... 40 ms.
void write_run(const std::string& folder, bool has_end = true) {
  fs::create_directories(folder);
  write(folder + "/plan.toml", "name = \"<&>\"\n[run]\nsteps = 60\n");
  std::string lines;
  for (int step = 1; step <= 60; ++step) {
    lines += Json{{"step", step},
                  {"loss", 2.5 - 0.01 * step},
                  {"step_ms", step <= 20 ? 500 : step - 20},
                  {"samples", 128}}
                 .dump() +
             "\n";
  }
  write(folder + "/run.jsonl", lines + "{\"step\":61,\"lo");  // half a line: still at it, or killed
  write(folder + "/eval.jsonl",
        R"({"step":30,"split":"validation","loss":2.1,"accuracy":0.25,"macro_f1":0.2})"
        "\n"
        R"({"step":60,"split":"validation","loss":1.9,"accuracy":0.375,"macro_f1":null,)"
        R"("per_class":[{"class":"<cat>","precision":null,"recall":0.5,"f1":0.25,"support":100}]})"
        "\n");
  if (!has_end) return;
  write(folder + "/events.jsonl", "{\"resumed_from_step\":0}\n");
  write(folder + "/test_uses.jsonl",
        "{\"time\":\"2026-11-30T10:00:00Z\",\"step\":60,\"accuracy\":0.36,\"macro_f1\":0.31}\n");
  write(folder + "/summary.json",
        Json{{"plan", "it"},
             {"state_hash", "aa"},
             {"loss_hash", "bb"},
             {"plan_hash", "cc"},
             {"steps", 60},
             {"stopped", nullptr},
             {"resumed_from_step", 0},
             {"step_ms", {{"warm_up_steps", 20}, {"measured_steps", 40}}},
             {"layout", {{"tp", 1}, {"dp", 2}, {"pp", 1}}},
             {"peak_bytes", 8 << 20},
             {"ranks", {rank(0, 800, 20), rank(1, 600, 220)}},
             {"replicas", {{{"dp", 0}, {"updates", 60}, {"samples_hash", "0123"}}}},
             {"training_s", 10.82},
             {"total_s", 12.5},
             {"target", nullptr},
             {"fingerprint", "BLIS <1>; g++"}}
            .dump());
}

struct Said {
  std::string text, out;
};

Said run(const ReportOptions& options) {
  std::ostringstream text, out;
  CHECK(report(options, text, out) == 0);
  return {text.str(), out.str()};
}

void check_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a report in Markdown has every figure of the records", "[report]") {
  const TemporaryFolder folder;
  write_run(folder / "it");
  const Said said = run({.runs = {folder / "it"}, .study = "", .html = "", .markdown = true});
  INFO(said.out);
  // By hand: the 20th and the 38th of 1 to 40 ms; 40 x 128 samples in 820 ms.
  check_parts(
      said.out,
      {"# weft report: it\n",
       "| it | done | tp 1 dp 2 pp 1 | 60 | 1.9000 | 1.9000 | 0.3750 | - | 20.00 | 38.00 | 6244 | "
       "8.0 | 1 |",
       "40 steps after 20 of warm-up: median 20.00 ms, P95 38.00 ms",
       "| rank | forward | communication | step ms |",  // the bubble is 0 everywhere
       "| 0: tp 0 dp 0 pp 0 | 20.000 | 0.500 | 20.500 |",
       "| 1: tp 0 dp 1 pp 0 | 15.000 | 5.500 | 20.500 |",
       "| rank | parameters | activations | peak MiB | in phase |",
       "| 1: tp 0 dp 1 pp 0 | 3.000 | 5.000 | 8.000 | backward |", "| training | 10.82 |",
       "| <cat> | - | 0.5000 | 0.2500 | 100 |",
       "| 1 | 2026-11-30T10:00:00Z | 60 | 0.3600 | 0.3100 |", "Used 1 time.",
       "| {\"resumed_from_step\":0} |", "| state_hash | aa |", "| 0 | 60 | 0123 |",
       "```\nBLIS <1>; g++\n```", "```\nname = \"<&>\"\n[run]\nsteps = 60\n```",
       "| 4 | 48.00 | 2667 | 1.75 | 43.8 | 0.192 |"});  // 72 / 4 + 12 + 18, section 5 of the course
  CHECK(said.out.find("<svg") == std::string::npos);
  CHECK(said.text.empty());
}

TEST_CASE("a page is whole in itself, and escapes what it shows", "[report]") {
  const TemporaryFolder folder;
  write_run(folder / "it");
  const auto before = fs::last_write_time(folder / "it");
  const Said said = run({.runs = {folder / "it/"}, .study = "", .html = "", .markdown = false});
  const std::string path = folder / "it.html";
  CHECK(said.text == "report " + path + "\n");
  CHECK(said.out.empty());
  CHECK(fs::last_write_time(folder / "it") == before);  // nothing new in the run's folder
  const std::string page = text_of_file(path);
  check_parts(page, {"<!DOCTYPE html>", "name = &quot;&lt;&amp;&gt;&quot;", "&lt;cat&gt;",
                     "BLIS &lt;1&gt;; g++", "median 20.00 ms", "Memory at the peak",
                     "\"compute_ms\":72.0", "function idealStep(model, devices)"});
  CHECK(page.find("<cat>") == std::string::npos);
  CHECK(page.find("{{") == std::string::npos);
  // Nothing is fetched: no address but the name of SVG's elements.
  for (const char* asks : {"src=", "@import", "url(", "fetch(", "XMLHttp", "import("})
    CHECK(page.find(asks) == std::string::npos);
  for (auto at = page.find("href="); at != std::string::npos; at = page.find("href=", at + 1))
    CHECK(page.substr(at, 7) == "href=\"#");
  for (auto at = page.find("http"); at != std::string::npos; at = page.find("http", at + 1)) {
    const std::string address = page.substr(at, 26);
    CHECK((address == "http://www.w3.org/2000/svg" || page.substr(at, 10) == "http-equiv"));
  }
  run({.runs = {folder / "it"}, .study = "", .html = "", .markdown = false});  // replaces it
}

TEST_CASE("several runs, one of them without an end", "[report]") {
  const TemporaryFolder folder;
  write_run(folder / "a");
  write_run(folder / "b", false);
  const Said said =
      run({.runs = {folder / "a", folder / "b"}, .study = "", .html = "", .markdown = true});
  check_parts(said.out, {"# weft report: a and 1 more\n", "## Run a\n", "## Run b\n",
                         "| b | no end recorded | - | 60 | 1.9000 |",
                         "Its ranks' time and memory are recorded at the end",
                         "It was not used by this run."});
  CHECK(report_path({.runs = {"runs/a", "runs/b"}, .study = "", .html = ""}) ==
        "runs/report.html");
  CHECK(report_path({.runs = {"runs/a/"}, .study = "", .html = ""}) == "runs/a.html");
}

TEST_CASE("a study is drawn with the ideal line, and the sliders begin there", "[report]") {
  const TemporaryFolder folder;
  write_run(folder / "it");
  Json rows = Json::array();
  for (const auto& [dp, ms] : {std::pair{1, 80.0}, {2, 60.0}, {4, 45.0}, {8, 37.5}}) {
    rows.push_back({{"name", "dp=" + std::to_string(dp)},
                    {"layout", {{"tp", 1}, {"dp", dp}, {"pp", 1}}},
                    {"ideal_bubble_percent", 0},
                    {"step_ms", {{"median", ms}}}});
  }
  write(folder / "study.json", Json{{"rows", rows}}.dump());
  const std::string path = folder / "page.html";
  run({.runs = {folder / "it"}, .study = folder / "study.json", .html = path, .markdown = false});
  const std::string page = text_of_file(path);
  check_parts(page, {"Scaling of the study", "ideal: as many times the devices", "best measured"});
  const std::string begin = "id=\"ideal-model\">";
  const std::size_t at = page.find(begin) + begin.size();
  const Json model = Json::parse(page.substr(at, page.find("</script>", at) - at));
  CHECK(model["compute_ms"].get<double>() == Approx(60));
  CHECK(model["fixed_ms"].get<double>() == Approx(20));
  CHECK(model["communication_ms"].get<double>() == Approx(10));
}

TEST_CASE("what holds no run is refused", "[report]") {
  const TemporaryFolder folder;
  const auto code_of = [&](const ReportOptions& options) {
    std::ostringstream text, out;
    const auto error = error_of([&] { report(options, text, out); });
    REQUIRE(error.has_value());
    INFO(error->what());
    return error->code();
  };
  CHECK(code_of({.runs = {folder / "none"}, .study = "", .html = ""}) == ExitCode::data);
  fs::create_directories(folder / "empty");
  CHECK(code_of({.runs = {folder / "empty"}, .study = "", .html = ""}) == ExitCode::data);
  write_run(folder / "it");
  CHECK(code_of({.runs = {folder / "it"}, .study = "", .html = "page.htm"}) == ExitCode::usage);
  CHECK(code_of({.runs = {folder / "it"}, .study = folder / "none", .html = ""}) ==
        ExitCode::usage);
  write(folder / "it/summary.json", "{\"plan\": 1}");
  CHECK(code_of({.runs = {folder / "it"}, .study = "", .html = ""}) == ExitCode::data);
}

TEST_CASE("records are read as a resume would go on with them", "[report]") {
  const TemporaryFolder folder;
  write_run(folder / "it", false);
  std::ofstream(folder / "it/run.jsonl", std::ios::app)
      << "\n{\"step\":59,\"loss\":null,\"step_ms\":7,\"samples\":128}\n";
  const RunRecords run = read_run(folder / "it");
  REQUIRE(run.steps.size() == 59);  // step 60 was before the kill
  CHECK(std::isnan(run.steps.back().loss));
  CHECK(run.steps.back().step_ms == 7);
  CHECK(std::isnan(run.steps.back().lr));
  CHECK(run.evaluations.size() == 2);
  CHECK(run.summary.is_null());
}

TEST_CASE("tables and listings keep what would end them", "[report]") {
  const std::vector<ReportSection> sections{
      {"s", {ReportTable{{"a", "b"}, {{"x|y", "1"}}}, ReportListing{"``` and ````\n"}}}};
  CHECK(markdown_of("t", sections) ==
        "# t\n\n## s\n\n| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n\n`````\n``` and ````\n`````\n");
  CHECK(html_of(sections).find("<td>x|y</td><td class=\"number\">1</td>") != std::string::npos);
  CHECK(filled("a{{b}}c{{d}}", {{"b", "{{d}}"}, {"d", "2"}}) == "a{{d}}c2");
  CHECK_THROWS_AS(filled("{{x}}", {}), std::logic_error);
}
