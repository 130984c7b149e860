// `weft ideal` without the command line: table, JSON, plot, and a study beside its fit.
#include <catch2/catch.hpp>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/ideal_command.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;
using nlohmann::json;

namespace {

struct Said {
  std::string text;
  json object;
};

Said run(IdealOptions options) {
  options.json = true;
  std::ostringstream text, out;
  CHECK(ideal(options, text, out) == 0);
  const std::string line = out.str();
  CHECK(line.find('\n') == line.size() - 1);
  return {text.str(), json::parse(line)};
}

std::string fault_of_run(const IdealOptions& options) {
  std::ostringstream text, out;
  const auto error = error_of([&] { ideal(options, text, out); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::usage);
  CHECK(out.str().empty());
  return error->what();
}

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("table and JSON say the same, in 120 columns", "[ideal_command]") {
  IdealOptions options;
  options.model.hidden_ms = 12;
  options.model.split_ms = 4;
  options.ranks = {4, 16, 4};
  options.local_ms = {40, 41, 42, 65};
  const Said said = run(options);
  REQUIRE(said.object["steps"].size() == 3);  // 1 is always there, nothing is there twice
  CHECK(said.object["steps"][0]["devices"] == 1);
  CHECK(said.object["steps"][1]["step_ms"] == 40);
  CHECK(said.object["steps"][1]["samples_per_s"] == 3200);
  CHECK(said.object["steps"][1]["speed_up"] == 2.1);
  CHECK(said.object["steps"][1]["efficiency"] == 0.525);
  CHECK(said.object["model"]["scaling"] == "strong");
  CHECK(said.object["slowest"]["waits_ms"] == std::vector<double>{25, 24, 23, 0});
  CHECK(said.object["slowest"]["slowest_rank"] == 3);
  std::istringstream lines(said.text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 120);
    CHECK_FALSE(line.ends_with(' '));
  }
  for (const char* part :
       {"  40.00       3200     2.10   52.5%     0.160  100.0%\n", "splitting costs 4 ms",
        "    3     65.00      0.00  the slowest\n", "waits for rank 3: 65 ms"}) {
    INFO(part << "\n" << said.text);
    CHECK(said.text.find(part) != std::string::npos);
  }
}

TEST_CASE("of the usual numbers of devices those are shown that the stages divide",
          "[ideal_command]") {
  IdealOptions options;
  options.model.stages = 4;
  options.model.microbatches = 16;
  options.scaling = "weak";
  const Said said = run(options);
  REQUIRE(said.object["steps"].size() == 6);
  CHECK(said.object["steps"][1]["devices"] == 4);
  CHECK(said.object["steps"][2]["batch"] == 256);
  CHECK(said.text.find("busy 84.2 % of the time") != std::string::npos);
  CHECK(said.text.find("weak scaling: 128 samples a step for each replica") != std::string::npos);
}

TEST_CASE("a study beside its fit, and the plot", "[ideal_command]") {
  const TemporaryFolder folder;
  json rows = json::array();
  // 60 ms shared out, 20 fixed, 10 for dp.
  for (const auto& [dp, ms] : {std::pair{1, 80.0}, {2, 60.0}, {4, 45.0}, {8, 37.5}}) {
    rows.push_back({{"name", "dp=" + std::to_string(dp)},
                    {"layout", {{"tp", 1}, {"dp", dp}, {"pp", 1}}},
                    {"ideal_bubble_percent", 0},
                    {"step_ms", {{"median", ms}}}});
  }
  IdealOptions options;
  options.study = folder / "study.json";
  options.svg = folder / "plot.svg";
  std::ofstream(options.study) << json{{"rows", rows}};
  const Said said = run(options);
  CHECK(said.object["fit"]["terms"]["compute_ms"].get<double>() == Approx(60));
  CHECK(said.object["fit"]["terms"]["fixed_ms"].get<double>() == Approx(20));
  CHECK(said.object["fit"]["terms"]["dp_ms"].get<double>() == Approx(10));
  CHECK(said.object["fit"]["rows"][2]["predicted_ms"].get<double>() == Approx(45));
  CHECK(said.object["fit"]["rows"][2]["without_it_ms"].get<double>() == Approx(45));
  CHECK(said.object["fit"]["largest_error_percent"].get<double>() == Approx(0).margin(1e-9));
  CHECK(said.text.find("dp=4         4       45.00     45.00") != std::string::npos);
  const std::string svg = text_of_file(options.svg);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.find("Step time, measured and fitted") != std::string::npos);
  run(options);  // replaces it
}

TEST_CASE("what is no model, no study or no plot", "[ideal_command]") {
  const TemporaryFolder folder;
  IdealOptions options;
  options.scaling = "stong";
  CHECK(fault_of_run(options) ==
        "--scaling: expected strong or weak; found stong; did you mean strong?");
  options = {};
  options.model.stages = 4;
  options.ranks = {6};
  CHECK(fault_of_run(options).find("Give 4 or 8") != std::string::npos);
  options = {};
  options.local_ms = {40, -1};
  CHECK(fault_of_run(options) == "--local: expected milliseconds of 0 or more; found -1");
  options = {};
  options.svg = folder / "plot.png";
  CHECK(fault_of_run(options).find("expected a name that ends with .svg") != std::string::npos);
  options = {};
  options.study = folder / "none.json";
  CHECK(fault_of_run(options).starts_with("--study: "));
}
