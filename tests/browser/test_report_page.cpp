// The page of `weft report` in a headless Chromium: it runs without an error, fits a small window,
// and its sliders do the arithmetic of apps/ideal_model to the last bit.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "apps/ideal_command.hpp"
#include "apps/ideal_model.hpp"
#include "tests/weft_process.hpp"

namespace {

using weft::IdealModel;
using weft::test::ProcessResult;
using Json = nlohmann::ordered_json;

bool is_asked_for() {
  const char* asked = std::getenv("WEFT_CHROMIUM");
  if (asked && std::string(asked) == "1") return true;
  std::cout << "SKIPPED: WEFT_CHROMIUM=1 runs this test in Chromium\n";
  return false;
}

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

ProcessResult done(const ProcessResult& result) {
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result;
}

// The page of a real run of two ranks, of a study, and of a profile of two stages.
std::string make_page() {
  const std::string folder = weft::test::fresh_folder("report");
  const std::string data = folder + "/data";
  done(weft::test::run_weft("data make cifar10 " + data + " --rows 200"));
  const std::string plan = WEFT_PLANS "/cifar10-mlp.toml --data " + data +
                           " --set 'task.split={train=900,validation=100,seed=7}'";
  done(weft::test::run_weft_ranks(2, "train " + plan + " --set run.steps=30 --run " + folder +
                                         "/it --set layout.dp=2 --set eval.every_epochs=1"));
  const ProcessResult study = done(weft::test::run_weft_ranks(
      2, "layouts " + plan + " --steps 6 --json --grid 'tp=1,2 dp=1,2'"));
  std::ofstream(folder + "/study.json") << study.out;
  const ProcessResult profile = done(weft::test::run_weft_ranks(
      2, "profile " + plan + " --steps 5 --warmup 2 --json --set layout.pp=2 --trace " + folder +
             "/stages.json"));
  std::ofstream(folder + "/profile.json") << profile.out;
  done(weft::test::run_weft("report " + folder + "/it --study " + folder +
                            "/study.json --profile " + folder + "/profile.json --trace " + folder +
                            "/stages.json --trace-step 4"));
  return folder + "/it.html";
}

// Of all kinds; numbers that are no short decimals.
std::vector<std::pair<IdealModel, weft::index_t>> models() {
  std::vector<std::pair<IdealModel, weft::index_t>> all;
  for (const weft::index_t stages : {1, 3, 4}) {
    for (const weft::index_t replicas : {1, 2, 7, 64}) {
      for (const weft::Scaling scaling : {weft::Scaling::strong, weft::Scaling::weak}) {
        all.push_back({{.compute_ms = 72.0 / 0.7,
                        .fixed_ms = 12.1,
                        .communication_ms = 18.3 * static_cast<double>(replicas),
                        .hidden_ms = 11.9,
                        .split_ms = 1.0 / 3,
                        .batch = 100,
                        .stages = stages,
                        .microbatches = 5,
                        .scaling = scaling},
                       stages * replicas});
      }
    }
  }
  return all;
}

// What the test does in the page; what it finds is the text of an element of the page.
std::string script() {
  Json asked = Json::array();
  for (const auto& [model, devices] : models()) asked.push_back({weft::model_json(model), devices});
  return R"(<script>
const found = { width: window.innerWidth, clientWidth: document.documentElement.clientWidth,
  scrollWidth: document.documentElement.scrollWidth };
const result = () => document.getElementById("ideal-result").textContent;
const move = (name, value) => {
  const slider = document.getElementById("slide-" + name);
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
};
found.steps = )" +
         asked.dump() +
         R"(.map(([model, devices]) => idealStep(model, devices));
found.before = result();
move("compute_ms", 72); move("fixed_ms", 12); move("communication_ms", 18); move("hidden_ms", 0);
move("batch", 128); move("replicas", 4);
found.sliders = result();
move("split_ms", 4);
found.serial = result();
move("hidden_ms", 12);
found.hidden = result();
found.row = [...document.querySelectorAll("#ideal-table tbody tr")].map((row) => row.textContent)
  .find((text) => text.startsWith("4"));
found.bars = document.querySelectorAll("#ideal-plot rect").length;
move("hidden_ms", 99);
found.clamped = result();
move("stages", 4); move("microbatches", 16); move("replicas", 1);
found.pipeline = result();
const long = document.querySelector("figure.long");
found.cells = [...document.querySelectorAll("rect.cell")].filter((cell) =>
  cell.textContent.includes("microbatch")).map((cell) => [cell.textContent.split(":")[0],
  cell.getBoundingClientRect().width]);
found.long = { inner: long.scrollWidth, outer: long.clientWidth };
found.profile = document.getElementById("profile-profile").textContent;
found.account = document.getElementById("where-each-rank-s-time-went").querySelectorAll("rect.part").length;
found.errors = window.errors;
const pre = document.createElement("pre");
pre.id = "found";
pre.textContent = JSON.stringify(found);
document.body.append(pre);
</script>
)";
}

// The text of the element, as the dump has it.
Json found_in(const std::string& dom) {
  const std::string begin = "<pre id=\"found\">";
  const std::size_t at = dom.find(begin);
  INFO(dom.substr(0, 2000));
  REQUIRE(at != std::string::npos);
  std::string text = dom.substr(at + begin.size());
  text.resize(text.find("</pre>"));
  for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
    for (auto i = text.find(from); i != std::string::npos; i = text.find(from, i + 1))
      text.replace(i, std::string(from).size(), to);
  }
  return Json::parse(text);
}

Json open_page(std::string page, const std::string& folder) {
  const std::string head = "<head>\n";
  page.insert(page.find(head) + head.size(),
              "<script>window.errors = []; window.addEventListener('error', (event) => "
              "window.errors.push(event.message));</script>\n");
  const std::size_t end = page.rfind("</body>");
  REQUIRE(end != std::string::npos);
  page.insert(end, script());
  std::ofstream(folder + "/moved.html") << page;
  // Without network, sandbox (which root may not use) and traces in anybody's home.
  return found_in(
      done(weft::test::run_shell("HOME=" + folder +
                                 " chromium --headless --no-sandbox --disable-gpu "
                                 "--proxy-server=127.0.0.1:9 --user-data-dir=" +
                                 folder + "/profile --window-size=500,900 --dump-dom file://" +
                                 folder + "/moved.html"))
          .out);
}

}  // namespace

TEST_CASE("a report's page in Chromium") {
  if (!is_asked_for()) return;
  const std::string path = make_page();
  const std::string folder = weft::test::fresh_folder("chromium");
  const Json found = open_page(text_of_file(path), folder);
  INFO(found.dump(1));
  CHECK(found.at("errors").empty());

  // A phone scrolls a wide table, never the page.
  CHECK(found.at("width") <= 500);
  CHECK(found.at("scrollWidth") <= found.at("clientWidth"));

  // A profile's account, and a traced step of two stages: each passes all microbatches forward and
  // back. The picture scrolls by itself, so that a cell is not too small for a finger.
  CHECK(found.at("profile").get<std::string>().find("5 steps after 2 of warm-up") !=
        std::string::npos);
  CHECK(found.at("account") >= 2 * 3);  // forward, backward and bubble of two ranks at least
  CHECK(found.at("long").at("inner") > found.at("long").at("outer"));
  std::map<std::string, int> passes;
  for (const Json& cell : found.at("cells")) {
    CHECK(cell.at(1) > 0.0);
    ++passes[cell.at(0)];
  }
  const auto num_microbatches = passes.size() / 2;
  CHECK(num_microbatches >= 4);
  for (std::size_t k = 0; k < num_microbatches; ++k) {
    CHECK(passes["forward of microbatch " + std::to_string(k)] == 2);
    CHECK(passes["backward of microbatch " + std::to_string(k)] == 2);
  }

  // The course's figures (sections 4, 5 and 7) by moved sliders: 72/N + 12 + 18 ms on four devices,
  // 52 ms with the local computing measured there, 40 ms with 12 ms hidden.
  CHECK(found.at("before") != found.at("sliders"));
  const auto starts = [&](const char* key, const std::string& begin) {
    INFO(key);
    CHECK(found.at(key).get<std::string>().starts_with(begin));
  };
  starts("sliders", "4 devices: 48.00 ms a step, 2667 samples/s, speed-up 1.75,");
  starts("serial", "4 devices: 52.00 ms a step, 2462 samples/s, speed-up 1.62,");
  starts("hidden",
         "4 devices: 40.00 ms a step, 3200 samples/s, speed-up 2.10, efficiency 52.5 %, "
         "0.160 device-seconds");
  CHECK(found.at("row") == "440.0032002.1052.50.160");
  CHECK(found.at("bars") >= 4 * 7);
  starts("clamped", "4 devices: 34.00 ms a step");  // no more is hidden than there is
  CHECK(found.at("pipeline").get<std::string>().ends_with("busy 84.2 %"));

  // Equal bits: JSON carries doubles whole.
  const auto asked = models();
  REQUIRE(found.at("steps").size() == asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& [model, devices] = asked[i];
    const weft::IdealStep step = weft::ideal_step(model, devices);
    const Json& other = found.at("steps")[i];
    INFO(other.dump());
    CHECK(other.at("devices") == step.devices);
    CHECK(other.at("batch") == step.batch);
    CHECK(other.at("compute_ms") == step.compute_ms);
    CHECK(other.at("bubble_ms") == step.bubble_ms);
    CHECK(other.at("fixed_ms") == step.fixed_ms);
    CHECK(other.at("exposed_ms") == step.exposed_ms);
    CHECK(other.at("step_ms") == step.step_ms);
    CHECK(other.at("samples_per_s") == step.samples_per_s);
    CHECK(other.at("speed_up") == step.speed_up);
    CHECK(other.at("efficiency") == step.efficiency);
    CHECK(other.at("device_s") == step.device_s);
    CHECK(other.at("updates_per_epoch") == step.updates);
  }
}
