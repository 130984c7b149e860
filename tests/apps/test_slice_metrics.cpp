// Figures of slices: numbers of scikit-learn 1.9.1 for twelve samples in three slices, tokens that
// go where their sample goes, and how all of it is written.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "apps/metrics_json.hpp"
#include "apps/slice_metrics.hpp"
#include "core/error.hpp"

using namespace weft;

namespace {

const SampleSlices three_slices{
    "column:day", {"mon", "tue", "wed", "thu"}, {0, 1, 0, 1, 0, 1, 0, 2, 1, 0, 2, 1}};

// In an order in which slices alternate; a prediction is 1 where the score is above 0.
std::vector<Prediction> twelve() {
  std::vector<Prediction> all;
  const auto add = [&](int label, double score, double loss) {
    all.push_back({label, score > 0 ? 1 : 0, score, loss});
  };
  add(0, -1.5, 0.25);
  add(0, 0.25, 1.5);
  add(1, 0.25, 0.5);
  add(0, -2.0, 0.0625);
  add(0, -0.5, 0.75);
  add(1, 1.0, 0.25);
  add(1, 2.0, 0.125);
  add(0, 0.5, 1.25);
  add(0, -0.75, 0.5);
  add(1, -0.25, 1.0);
  add(0, -3.0, 0.03125);
  add(1, -0.5, 2.0);
  return all;
}

}  // namespace

TEST_CASE("a slice's figures are those of its samples alone", "[slices]") {
  const SliceReport report = judge_slices(three_slices, twelve(), 2, 0.25);
  CHECK(report.by == "column:day");
  REQUIRE(report.slices.size() == 4);
  const SliceFigures& mon = report.slices[0];
  CHECK(mon.name == "mon");
  CHECK(mon.samples == 5);
  CHECK(mon.loss == 0.525);
  CHECK(mon.accuracy == 0.8);
  CHECK(*mon.macro_f1 == Approx(0.8).epsilon(1e-15));
  CHECK(mon.roc_auc == 1.0);
  CHECK(mon.pr_auc == 1.0);
  CHECK(mon.precision == 1.0);
  CHECK(mon.recall == 0.6666666666666666);
  CHECK(mon.f1 == 0.8);
  const SliceFigures& tue = report.slices[1];
  CHECK(tue.samples == 5);
  CHECK(tue.loss == 0.8625);
  CHECK(tue.accuracy == 0.6);
  CHECK(*tue.macro_f1 == Approx(0.5833333333333333).epsilon(1e-15));
  CHECK(tue.roc_auc == 0.8333333333333334);
  CHECK(*tue.pr_auc == Approx(0.8333333333333333).epsilon(1e-15));
  CHECK(tue.precision == 0.5);
  CHECK(tue.recall == 0.5);
  CHECK(tue.f1 == 0.5);
  // No positive one: what is a ratio to them is not defined.
  const SliceFigures& wed = report.slices[2];
  CHECK(wed.samples == 2);
  CHECK(wed.loss == 0.640625);
  CHECK(wed.accuracy == 0.5);
  CHECK(*wed.macro_f1 == Approx(0.3333333333333333).epsilon(1e-15));
  CHECK_FALSE(wed.roc_auc.has_value());
  CHECK_FALSE(wed.pr_auc.has_value());
  CHECK(wed.precision == 0.0);
  CHECK_FALSE(wed.recall.has_value());
  CHECK(wed.f1 == 0.0);
  const SliceFigures& thu = report.slices[3];
  CHECK(thu.samples == 0);
  for (const auto& value : {thu.loss, thu.accuracy, thu.macro_f1, thu.roc_auc, thu.pr_auc,
                            thu.precision, thu.recall, thu.f1})
    CHECK_FALSE(value.has_value());
}

TEST_CASE("without a threshold there is no decision", "[slices]") {
  const SliceFigures mon = judge_slices(three_slices, twelve(), 2, std::nullopt).slices.at(0);
  CHECK_FALSE(mon.precision.has_value());
  CHECK_FALSE(mon.f1.has_value());
  CHECK(mon.roc_auc == 1.0);
}

TEST_CASE("all tokens of a sample are in its slice", "[slices]") {
  // Three samples of two tokens; the first and the last are in slice 1.
  std::vector<Prediction> tokens;
  for (const auto& [label, predicted, loss] :
       std::vector<std::tuple<int, int, double>>{{65, 65, 0.5},
                                                 {66, 65, 1.5},
                                                 {70, 70, 4.0},
                                                 {71, 71, 6.0},
                                                 {65, 65, 0.0},
                                                 {65, 66, 2.0}})
    tokens.push_back({label, predicted, 0.0, loss});
  const SampleSlices slices{"position=2", {"a", "b"}, {1, 0, 1}};
  const SliceReport report = judge_slices(slices, tokens, 256, std::nullopt);
  CHECK(report.slices[0].samples == 1);
  CHECK(report.slices[0].labels == 2);
  CHECK(report.slices[0].loss == 5.0);
  CHECK(report.slices[0].accuracy == 1.0);
  CHECK(report.slices[1].samples == 2);
  CHECK(report.slices[1].labels == 4);
  CHECK(report.slices[1].loss == 1.0);
  CHECK(report.slices[1].accuracy == 0.5);
  const auto json = slices_json({report}, 256);
  CHECK(json.at(0).at("slices").at(1).at("tokens") == 4);
  // 1 / ln 2
  CHECK(json.at(0).at("slices").at(1).at("bits_per_token").get<double>() ==
        Approx(1.4426950408889634).epsilon(1e-15));
  CHECK(slices_text({report}, 256).find("bits/token\n") != std::string::npos);
}

TEST_CASE("slices as JSON and as text: each value under its name, undefined by that word",
          "[slices]") {
  const std::vector<SliceReport> reports = {judge_slices(three_slices, twelve(), 2, 0.25)};
  const auto json = slices_json(reports, 2);
  REQUIRE(json.size() == 1);
  CHECK(json.at(0).at("by") == "column:day");
  const auto& slices = json.at(0).at("slices");
  CHECK(slices.at(1).dump() ==
        R"({"slice":"tue","samples":5,"loss":0.8625,"accuracy":0.6,"macro_f1":0.5833333333333333,)"
        R"("precision":0.5,"recall":0.5,"f1":0.5,"roc_auc":0.8333333333333334,)"
        R"("pr_auc":0.8333333333333333})");
  CHECK(slices.at(2).at("roc_auc").is_null());
  CHECK(slices.at(3).at("loss").is_null());
  CHECK(slices.at(3).at("samples") == 0);
  CHECK_FALSE(slices.at(0).contains("tokens"));
  const std::string text = slices_text(reports, 2);
  INFO(text);
  CHECK(text.find("  by column:day  samples       loss   accuracy   macro F1  precision     recall"
                  "         F1    ROC AUC     PR AUC\n") != std::string::npos);
  CHECK(text.find("  wed                  2     0.6406     0.5000     0.3333     0.0000  undefined"
                  "     0.0000  undefined  undefined\n") != std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
  // Of more classes than two: neither areas nor a threshold's decision.
  const auto four = slices_json({judge_slices(three_slices, twelve(), 4, std::nullopt)}, 4);
  CHECK_FALSE(four.at(0).at("slices").at(0).contains("roc_auc"));
  CHECK(slices_text({judge_slices(three_slices, twelve(), 4, std::nullopt)}, 4).find("AUC") ==
        std::string::npos);
  CHECK(slices_json({}, 2).dump() == "[]");
  CHECK(slices_text({}, 2).empty());
}
