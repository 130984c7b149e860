// Confusion matrix and ranked scores: what scikit-learn says of the same labels and scores
// (metrics_reference.json, made by make_metrics_reference.py), and the same bits however samples
// are dealt out and ordered.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/error.hpp"
#include "layers/confusion_matrix.hpp"
#include "layers/ranked_scores.hpp"

using namespace weft;

namespace {

using Json = nlohmann::json;

const Json& reference() {
  static const Json json = Json::parse(std::ifstream(WEFT_METRICS_REFERENCE));
  return json;
}

// scikit-learn adds means and areas in another order: a few roundings of values up to 1.
void check_value(const std::string& what, const std::optional<double>& found,
                 const Json& expected) {
  INFO(what << ": " << (found ? std::to_string(*found) : "undefined") << ", expected "
            << expected.dump());
  REQUIRE(found.has_value() == !expected.is_null());
  if (found) CHECK(std::abs(*found - expected.get<double>()) <= 1e-12);
}

void check_decision(const DecisionCounts& counts, const Json& expected) {
  check_value("precision", counts.precision(), expected.at("precision"));
  check_value("recall", counts.recall(), expected.at("recall"));
  check_value("f1", counts.f1(), expected.at("f1"));
}

// Samples first, first + stride, ... of a reference case.
ConfusionMatrix matrix_of(const Json& expected, std::size_t first = 0, std::size_t stride = 1) {
  ConfusionMatrix matrix(expected.at("num_classes").get<index_t>());
  for (std::size_t i = first; i < expected.at("labels").size(); i += stride)
    matrix.add(expected["labels"][i].get<index_t>(), expected["predicted"][i].get<index_t>());
  return matrix;
}

std::vector<ScoredSample> samples_of(const Json& expected) {
  std::vector<ScoredSample> samples;
  for (std::size_t i = 0; i < expected.at("labels").size(); ++i)
    samples.push_back({expected.at("scores")[i].get<double>(), expected["labels"][i] == 1});
  return samples;
}

}  // namespace

TEST_CASE("confusion matrix: scikit-learn's values", "[metrics]") {
  REQUIRE(reference().at("multiclass").size() == 10);
  for (const Json& expected : reference()["multiclass"]) {
    INFO(expected.at("name").get<std::string>());
    const ConfusionMatrix matrix = matrix_of(expected);
    CHECK(matrix.num_samples() == static_cast<std::int64_t>(expected.at("labels").size()));
    for (index_t c = 0; c < matrix.num_classes(); ++c) {
      INFO("class " << c);
      const auto at = static_cast<std::size_t>(c);
      std::int64_t support = 0;
      for (index_t p = 0; p < matrix.num_classes(); ++p) {
        const auto count = expected.at("confusion")[at][static_cast<std::size_t>(p)];
        CHECK(matrix.count(c, p) == count.get<std::int64_t>());
        support += count.get<std::int64_t>();
      }
      CHECK(matrix.support(c) == support);
      check_decision(matrix.of_class(c), {{"precision", expected.at("precision")[at]},
                                          {"recall", expected.at("recall")[at]},
                                          {"f1", expected.at("f1")[at]}});
    }
    check_value("accuracy", matrix.accuracy(), expected.at("accuracy"));
    check_value("macro precision", matrix.macro_precision(), expected.at("macro_precision"));
    check_value("macro recall", matrix.macro_recall(), expected.at("macro_recall"));
    check_value("macro f1", matrix.macro_f1(), expected.at("macro_f1"));
  }
}

TEST_CASE("confusion matrix: equal however samples are dealt out, empty parts too", "[metrics]") {
  for (const Json& expected : reference().at("multiclass")) {
    INFO(expected.at("name").get<std::string>());
    const ConfusionMatrix whole = matrix_of(expected);
    for (std::size_t num_parts = 2; num_parts <= 12; ++num_parts) {
      ConfusionMatrix sum(whole.num_classes());
      for (std::size_t part = num_parts; part-- > 0;) sum += matrix_of(expected, part, num_parts);
      REQUIRE(sum == whole);
      REQUIRE(sum.macro_f1() == whole.macro_f1());
    }
    CHECK(ConfusionMatrix(whole.num_classes(), whole.counts()) == whole);
  }
}

TEST_CASE("confusion matrix: without samples all is undefined; what is no class is refused",
          "[metrics]") {
  ConfusionMatrix matrix(3);
  CHECK(matrix.num_samples() == 0);
  for (const auto& value : {matrix.accuracy(), matrix.macro_precision(), matrix.macro_recall(),
                            matrix.macro_f1(), matrix.of_class(1).f1()}) {
    CHECK_FALSE(value.has_value());
  }
  CHECK_THROWS_AS(matrix.add(3, 0), Error);
  CHECK_THROWS_AS(matrix.add(0, -1), Error);
  CHECK(matrix == ConfusionMatrix(3));
}

TEST_CASE("ranked scores: scikit-learn's values", "[metrics]") {
  REQUIRE(reference().at("binary").size() == 11);
  for (const Json& expected : reference()["binary"]) {
    INFO(expected.at("name").get<std::string>());
    const RankedScores ranked(samples_of(expected));
    check_value("ROC AUC", ranked.roc_auc(), expected.at("roc_auc"));
    check_value("average precision", ranked.average_precision(), expected.at("average_precision"));
    const auto threshold = ranked.best_f1_threshold();
    const Json& best = expected.at("best_threshold");
    REQUIRE(threshold.has_value() == !best.is_null());
    if (threshold) CHECK(*threshold == best.get<double>());
    for (const Json& decision : expected.at("decisions")) {
      INFO("threshold " << decision.at("threshold"));
      check_decision(ranked.at(decision["threshold"].get<double>()), decision);
    }
  }
}

TEST_CASE("ranked scores: the same bits in any order of the samples", "[metrics]") {
  std::mt19937 shuffle(7);
  for (const Json& expected : reference().at("binary")) {
    std::vector<ScoredSample> samples = samples_of(expected);
    const RankedScores base(samples);
    for (int i = 0; i < 20; ++i) {
      std::shuffle(samples.begin(), samples.end(), shuffle);
      const RankedScores other(samples);
      REQUIRE(other.roc_auc() == base.roc_auc());
      REQUIRE(other.average_precision() == base.average_precision());
      const auto a = other.best_f1_threshold(), b = base.best_f1_threshold();
      REQUIRE(a == b);
      if (a) REQUIRE(std::signbit(*a) == std::signbit(*b));
    }
  }
}

TEST_CASE("ranked scores: none, infinite ones, and ones that are not numbers", "[metrics]") {
  const RankedScores none({});
  CHECK_FALSE(none.roc_auc());
  CHECK_FALSE(none.average_precision());
  CHECK_FALSE(none.best_f1_threshold());
  CHECK(none.at(0.0) == DecisionCounts{});

  constexpr double infinity = std::numeric_limits<double>::infinity();
  const RankedScores infinite({{infinity, true}, {-infinity, false}, {0.0, true}});
  CHECK(infinite.roc_auc() == 1.0);
  CHECK(infinite.best_f1_threshold() == 0.0);
  CHECK(infinite.at(infinity) == DecisionCounts{1, 0, 1});

  // Of three positives two are found, whatever a score that is no number is compared with.
  const RankedScores unordered({{NAN, true}, {1.0, true}, {NAN, false}, {2.0, true}, {0.0, false}});
  CHECK_FALSE(unordered.roc_auc());
  CHECK_FALSE(unordered.average_precision());
  CHECK_FALSE(unordered.best_f1_threshold());
  CHECK(unordered.at(1.0) == DecisionCounts{2, 0, 1});
  CHECK(unordered.at(NAN) == DecisionCounts{0, 0, 3});
}
