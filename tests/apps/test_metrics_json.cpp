// Evaluations as JSON and text: every value under its name, undefined ones as null and by that
// word.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "apps/metrics_json.hpp"

using namespace weft;

namespace {

// Label 0: 3 right, 1 taken for 1. Label 1: 2 right. No label and no prediction of class 2.
Evaluation of_three_classes() {
  Evaluation evaluation{.loss = 0.5, .samples = 6, .confusion = ConfusionMatrix(3), .ranking = {}};
  for (int i = 0; i < 3; ++i) evaluation.confusion.add(0, 0);
  evaluation.confusion.add(0, 1);
  for (int i = 0; i < 2; ++i) evaluation.confusion.add(1, 1);
  return evaluation;
}

const std::vector<std::string> three_names = {"cat", "a class with a long name", "owl"};

}  // namespace

TEST_CASE("metrics as JSON: each value under its name, undefined is null", "[metrics]") {
  const auto json = metrics_json(of_three_classes(), three_names, std::nullopt);
  CHECK(json.at("loss") == 0.5);
  CHECK(json.at("accuracy") == 5.0 / 6.0);
  CHECK(json.at("macro_precision") == (1.0 + 2.0 / 3.0) / 2.0);
  CHECK(json.at("macro_recall") == (0.75 + 1.0) / 2.0);
  CHECK(json.at("macro_f1") == (6.0 / 7.0 + 4.0 / 5.0) / 2.0);
  CHECK(json.at("confusion").dump() == "[[3,1,0],[0,2,0],[0,0,0]]");
  CHECK(json.at("per_class").at(0).at("class") == "cat");
  CHECK(json.at("per_class").at(0).at("precision") == 1.0);
  CHECK(json.at("per_class").at(0).at("recall") == 0.75);
  CHECK(json.at("per_class").at(0).at("support") == 4);
  for (const char* name : {"precision", "recall", "f1"})
    CHECK(json.at("per_class").at(2).at(name).is_null());
  CHECK_FALSE(json.contains("roc_auc"));
}

TEST_CASE("metrics as text: undefined by that word, never a number", "[metrics]") {
  const std::string text = metrics_text(of_three_classes(), three_names, std::nullopt);
  INFO(text);
  CHECK(text.find("  cat                          1.0000     0.7500     0.8571        4\n") !=
        std::string::npos);
  CHECK(text.find("  owl                       undefined  undefined  undefined        0\n") !=
        std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
}

TEST_CASE("metrics of two classes: areas, and the decision at the threshold", "[metrics]") {
  Evaluation evaluation{.loss = 0.1, .samples = 4, .confusion = ConfusionMatrix(2), .ranking = {}};
  for (const int label : {0, 0, 1, 1}) evaluation.confusion.add(label, label);
  evaluation.ranking = RankedScores({{-1.0, false}, {2.0, false}, {1.0, true}, {3.0, true}});
  const auto json = metrics_json(evaluation, {"no", "yes"}, 2.5);
  CHECK(json.at("threshold") == 2.5);
  CHECK(json.at("precision") == 1.0);
  CHECK(json.at("recall") == 0.5);
  CHECK(json.at("f1") == 2.0 / 3.0);
  CHECK(json.at("roc_auc") == 0.75);
  CHECK(json.at("pr_auc") == (1.0 + 2.0 / 3.0) / 2.0);
  CHECK(best_threshold(evaluation) == 1.0);

  const auto without = metrics_json(evaluation, {"no", "yes"}, std::nullopt);
  for (const char* name : {"threshold", "precision", "recall", "f1"})
    CHECK(without.at(name).is_null());
  CHECK(without.at("roc_auc") == 0.75);
  CHECK(metrics_text(evaluation, {"no", "yes"}, std::nullopt).find("difference of undefined") !=
        std::string::npos);
}

TEST_CASE("a byte's 256 classes are no table; the loss is told in bits", "[metrics]") {
  // ln 2 a byte is one bit, by definition.
  Evaluation evaluation{
      .loss = 0.6931471805599453, .samples = 2, .confusion = ConfusionMatrix(256), .ranking = {}};
  evaluation.confusion.add(65, 65);
  evaluation.confusion.add(66, 65);
  const auto json = metrics_json(evaluation, {}, std::nullopt);
  CHECK(json.at("bits_per_token") == 1.0);
  CHECK(json.at("accuracy") == 0.5);
  CHECK_FALSE(json.contains("per_class"));
  CHECK_FALSE(json.contains("confusion"));
  CHECK(metrics_text(evaluation, {}, std::nullopt) ==
        "  loss 0.6931 = 1.0000 bits a token, accuracy 0.5000\n");
}
