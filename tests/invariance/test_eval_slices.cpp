// `weft eval --slices` on every layout: the same figures to the last bit, whichever replica a
// sample was judged by; and figures of slices against those of the whole, which know nothing of
// slices.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "tests/weft_process.hpp"

namespace {

using nlohmann::json;
using weft::test::ProcessResult;

struct Layout {
  int tp, dp, pp;
  std::string more = {};
};

// 30 or 40 samples in microbatches of 4 or 2, so that replicas have other numbers of samples, and
// some none.
const std::vector<Layout> layouts = {
    {1, 1, 1},
    {2, 1, 1},
    {1, 3, 1},
    {1, 2, 2, " --set layout.zero=1 --set layout.schedule=gpipe"},
    {1, 4, 1},
    {2, 2, 2, " --set layout.sequence_parallel=true --set comm.transport=mpi"},
    {2, 3, 1, " --set layout.order=dp,tp,pp"},
};

struct Model {
  std::string plan, set, keys, slices;
};

const std::string transformer =
    "--set model.hidden=48 --set model.heads=4 --set model.layers=2 --set batch.micro=2 "
    "--set batch.global=16 ";
const std::vector<Model> models = {
    {"bank-mlp", "bank",
     "--set model.hidden=48 --set model.layers=2 --set batch.micro=4 --set batch.global=32 "
     "--set task.split.train=900 "
     "--set task.split.validation=30 --set task.split.test=41",
     "class,time=3,column:job,column:age --slices column:pdays"},
    {"ag-news-encoder", "ag_news",
     transformer + "--set task.tokens=15 --set task.vocabulary=203 --set task.split.train=400 "
                   "--set task.split.validation=30",
     "class,column:tokens"},
    {"text-gpt", "text",
     transformer + "--set task.tokens=12 --set task.split.train=400 --set task.split.validation=30 "
                   "--set task.split.test=41",
     "position=3,position=30"},
    {"cifar10-mlp", "cifar10",
     "--set model.hidden=48 --set batch.micro=4 --set batch.global=32 --set "
     "'task.split={train=320,validation=30,seed=7}'",
     "class"}};

std::string plan_of(const Model& model) {
  const std::string folder = weft::test::fresh_folder("slices-" + model.set);
  const ProcessResult made = weft::test::run_weft("data make " + model.set + " " + folder +
                                                  (model.set == "text" ? "" : " --rows 1200"));
  INFO(made.text);
  REQUIRE(made.exit_code == 0);
  return WEFT_PLANS "/" + model.plan + ".toml --data " + folder +
         " --set run.steps=4 --set numerics.shards=4 --set numerics.lanes=4 " + model.keys;
}

json eval(const std::string& plan, const std::string& run, const std::string& split,
          const std::string& slices, const Layout& layout) {
  const ProcessResult result = weft::test::run_weft_ranks(
      layout.tp * layout.dp * layout.pp,
      "eval " + plan + " --json --checkpoint " + run + " --split " + split + " --slices " + slices +
          " --set layout.tp=" + std::to_string(layout.tp) +
          " --set layout.dp=" + std::to_string(layout.dp) +
          " --set layout.pp=" + std::to_string(layout.pp) + layout.more);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result.json();
}

// Each way to cut has all samples, and the means over its slices are those of the whole, but for
// the rounding of sums in another order.
void check_sums(const json& found, int num_samples) {
  const json& metrics = found.at("metrics");
  for (const json& report : found.at("slices")) {
    INFO(report.dump());
    double samples = 0.0, correct = 0.0, loss = 0.0;
    for (const json& one : report.at("slices")) {
      if (one.at("samples") == 0) continue;
      const double n = one.at("samples");
      samples += n;
      correct += n * one.at("accuracy").get<double>();
      loss += n * one.at("loss").get<double>();
    }
    CHECK(samples == num_samples);
    CHECK(correct / num_samples ==
          Approx(metrics.at("accuracy").get<double>()).epsilon(0).margin(1e-12));
    CHECK(loss / num_samples == Approx(metrics.at("loss").get<double>()).epsilon(1e-12));
  }
}

// Of the samples of one label the right ones are its recall: a sample in a wrong slice shows.
void check_classes(const json& found) {
  for (const json& report : found.at("slices")) {
    if (report.at("by") != "class") continue;
    const json& classes = found.at("metrics").at("per_class");
    REQUIRE(report.at("slices").size() == classes.size());
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const json& one = report.at("slices").at(c);
      INFO(one.dump());
      CHECK(one.at("slice") == classes.at(c).at("class"));
      CHECK(one.at("samples") == classes.at(c).at("support"));
      CHECK(one.at("accuracy") == classes.at(c).at("recall"));
    }
  }
}

}  // namespace

TEST_CASE("figures of slices are the same on every layout, and add up to the whole") {
  for (const Model& model : models) {
    const std::string plan = plan_of(model);
    const std::string run = weft::test::fresh_folder("slices-run-" + model.set) + "/it";
    const ProcessResult trained = weft::test::run_weft("train " + plan + " --run " + run);
    INFO(trained.text);
    REQUIRE(trained.exit_code == 0);
    std::string expected, of_one_split;
    for (const Layout& layout : layouts) {
      INFO(model.plan << ": tp " << layout.tp << " dp " << layout.dp << " pp " << layout.pp);
      const json found = eval(plan, run, "validation", model.slices, layout);
      if (expected.empty()) {
        expected = found.at("slices").dump();
        check_sums(found, 30);
        check_classes(found);
        of_one_split = found.at("metrics").dump();
      }
      CHECK(found.at("slices").dump() == expected);
      CHECK(found.at("metrics").dump() == of_one_split);
    }
    if (model.set != "bank" && model.set != "text") continue;
    const std::string test = eval(plan, run, "test", model.slices, layouts[0]).at("slices").dump();
    const json again = eval(plan, run, "test", model.slices, layouts[5]);
    CHECK(again.at("slices").dump() == test);
    CHECK(test != expected);
    check_sums(again, 41);
  }
}

TEST_CASE("a window of text by itself: its loss is the mean of its tokens'") {
  const Model& model = models[2];
  const std::string plan = plan_of(model);
  const std::string run = weft::test::fresh_folder("slices-window") + "/it";
  REQUIRE(weft::test::run_weft("train " + plan + " --run " + run).exit_code == 0);
  const json whole = eval(plan, run, "validation", "position=30", {1, 2, 1});
  const json& windows = whole.at("slices").at(0).at("slices");
  REQUIRE(windows.size() == 30);
  for (const json& one : windows) {
    CHECK(one.at("samples") == 1);
    CHECK(one.at("tokens") == 12);
    CHECK(one.at("bits_per_token").get<double>() ==
          Approx(one.at("loss").get<double>() / std::log(2.0)).epsilon(1e-14));
  }
  // The first of them as the only one that is judged: the parts of the file are cut by the counts,
  // so validation begins where it did when the test part takes what it leaves.
  const ProcessResult alone = weft::test::run_weft(
      "eval " + plan +
      " --set task.split.validation=1 --set task.split.test=70 --json --split validation" +
      " --allow-plan-change --checkpoint " + run);
  INFO(alone.text);
  REQUIRE(alone.exit_code == 0);
  const json metrics = alone.json().at("metrics");
  CHECK(metrics.at("loss").dump() == windows.at(0).at("loss").dump());
  CHECK(metrics.at("accuracy").dump() == windows.at(0).at("accuracy").dump());
}
