// Predictions that are spread over replicas and known to the last stage alone: one confusion matrix
// and one ranking on every rank, with the bits of one process, for 1 to 12 ranks. Ranks are
// threads.
#include <catch2/catch.hpp>

#include <mutex>
#include <random>

#include "apps/evaluation.hpp"
#include "core/range.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/mesh.hpp"

using namespace weft;

namespace {

// `num` samples; scores have one decimal, so that many tie.
std::vector<Prediction> random_predictions(int num, int num_classes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Prediction> all;
  for (int i = 0; i < num; ++i) {
    const auto label = static_cast<std::int32_t>(random() % static_cast<unsigned>(num_classes));
    const auto other = static_cast<std::int32_t>(random() % static_cast<unsigned>(num_classes));
    const double score = static_cast<double>(random() % 40) / 10.0 - 2.0 + label;
    all.push_back({label, random() % 2 == 0 ? label : other, num_classes == 2 ? score : 0.0});
  }
  return all;
}

struct Expected {
  ConfusionMatrix confusion;
  RankedScores ranking{{}};
};

Expected in_one_place(const std::vector<Prediction>& all, int num_classes) {
  Expected expected{.confusion = ConfusionMatrix(num_classes)};
  std::vector<ScoredSample> samples;
  for (const Prediction& one : all) {
    expected.confusion.add(one.label, one.predicted);
    samples.push_back({one.score, one.label == 1});
  }
  expected.ranking = RankedScores(samples);
  return expected;
}

// On dp x pp ranks, samples dealt out in consecutive parts as an evaluation does.
std::vector<Evaluation> judge_on(int dp, int pp, int num_classes,
                                 const std::vector<Prediction>& all) {
  std::vector<Evaluation> evaluations;
  std::mutex mutex;
  run_ranks(dp * pp, [&](Transport& transport) {
    Mesh mesh(transport, nullptr, {{"tp", 1}, {"dp", dp}, {"pp", pp}}, "tp,dp,pp");
    const Range part = part_of(mesh.rank("dp"), dp, static_cast<index_t>(all.size()));
    std::vector<Prediction> mine;
    if (mesh.rank("pp") == pp - 1) mine.assign(all.begin() + part.begin, all.begin() + part.end);
    Evaluation evaluation;
    judge(mesh.axis("dp"), mesh.axis("pp"), num_classes, mine, evaluation);
    const std::lock_guard lock(mutex);
    evaluations.push_back(evaluation);
  });
  return evaluations;
}

void check_all_ranks(int dp, int pp, int num_classes, const std::vector<Prediction>& all) {
  INFO("dp " << dp << " x pp " << pp << ", " << all.size() << " samples of " << num_classes
             << " classes");
  const Expected expected = in_one_place(all, num_classes);
  const std::vector<Evaluation> found = judge_on(dp, pp, num_classes, all);
  REQUIRE(found.size() == static_cast<std::size_t>(dp * pp));
  for (const Evaluation& one : found) {
    REQUIRE(one.confusion == expected.confusion);
    REQUIRE(one.ranking.has_value() == (num_classes == 2));
    if (!one.ranking) continue;
    REQUIRE(one.ranking->roc_auc() == expected.ranking.roc_auc());
    REQUIRE(one.ranking->average_precision() == expected.ranking.average_precision());
    REQUIRE(best_threshold(one) == expected.ranking.best_f1_threshold());
    REQUIRE(one.ranking->at(0.3) == expected.ranking.at(0.3));
  }
}

}  // namespace

TEST_CASE("one confusion matrix and one ranking on every layout", "[evaluation]") {
  for (const int num_classes : {2, 5}) {
    const std::vector<Prediction> all = random_predictions(67, num_classes, 5);
    REQUIRE(in_one_place(all, num_classes).confusion.num_samples() == 67);
    for (int dp = 1; dp <= 12; ++dp) {
      for (int pp = 1; dp * pp <= 12; ++pp) check_all_ranks(dp, pp, num_classes, all);
    }
  }
}

TEST_CASE("replicas without a sample, a class without one, and no samples at all", "[evaluation]") {
  for (const int num_classes : {2, 5}) {
    for (const int num_samples : {0, 1, 3}) {
      std::vector<Prediction> all = random_predictions(num_samples, num_classes, 9);
      for (Prediction& one : all) one.label = 0;
      for (const int dp : {1, 2, 5, 12}) check_all_ranks(dp, 1, num_classes, all);
      check_all_ranks(4, 3, num_classes, all);
    }
  }
}

TEST_CASE("a threshold is chosen only where there are two classes", "[evaluation]") {
  const std::vector<Prediction> all = random_predictions(30, 3, 1);
  CHECK_FALSE(best_threshold(judge_on(1, 1, 3, all).front()).has_value());
}
