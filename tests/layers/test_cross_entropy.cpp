// Class-parallel cross entropy: the oracle's loss and gradient, the same bits on every layout, and
// the rows that break naive versions (EXACT 3.12, 3.13, 7.7).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "layers/cross_entropy.hpp"
#include "tests/core/float_data.hpp"
#include "tests/core/shard_values.hpp"
#include "tests/layers/layer_run.hpp"
#include "tests/oracle/cross_entropy.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr index_t all_shards[] = {1, 2, 3, 4, 6, 12};

struct LogitRows {
  index_t num_classes = 10;
  Floats logits;  // [rows, num_classes]
  std::vector<std::int32_t> labels;
  Floats weights;
  float scale = 1.0f;
  float pad_logit = 0.0f;  // stored in pads, and of no effect

  index_t size() const { return static_cast<index_t>(labels.size()); }
  void add(const Floats& logits_of_row, int label, float weight = 1.0f) {
    logits.insert(logits.end(), logits_of_row.begin(), logits_of_row.end());
    labels.push_back(label);
    weights.push_back(weight);
  }
};

struct Result {
  LossSums sums;
  Floats dlogits;  // [rows, padded]
  std::vector<Prediction> predictions;
};

// Empty, or what differs.
std::string difference(const std::vector<Prediction>& a, const std::vector<Prediction>& b) {
  if (a.size() != b.size()) return "another number of predictions";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].label != b[i].label || a[i].predicted != b[i].predicted)
      return "another class in row " + std::to_string(i);
    const std::string bits = bit_difference<double>({a[i].score}, {b[i].score});
    if (!bits.empty()) return "score of row " + std::to_string(i) + ": " + bits;
  }
  return {};
}

// Of the real rows: the first of the largest logits; of two classes their difference.
std::vector<Prediction> predictions_of(const LogitRows& rows) {
  std::vector<Prediction> all;
  const auto classes = static_cast<std::size_t>(rows.num_classes);
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    if (rows.weights[row] == 0.0f) continue;
    const float* logit = rows.logits.data() + row * classes;
    const auto best = static_cast<std::int32_t>(std::max_element(logit, logit + classes) - logit);
    const double score =
        classes == 2 ? static_cast<double>(logit[1]) - static_cast<double>(logit[0]) : 0.0;
    all.push_back({rows.labels[row], best, score});
  }
  return all;
}

// The same on every rank, else throws.
Result run(const LogitRows& rows, const RankGroup& group) {
  const index_t t = rows.size();
  const index_t padded = round_up(rows.num_classes, group.shards);
  Floats stored(static_cast<std::size_t>(t * padded), rows.pad_logit);
  for (index_t i = 0; i < t * rows.num_classes; ++i) {
    stored[static_cast<std::size_t>(i / rows.num_classes * padded + i % rows.num_classes)] =
        rows.logits[static_cast<std::size_t>(i)];
  }
  Result result{{}, Floats(static_cast<std::size_t>(t * padded), NAN), {}};
  std::vector<LossSums> sums(static_cast<std::size_t>(group.tp));
  std::mutex mutex;
  run_group(group, [&](TpRank& rank) {
    CrossEntropy loss("loss", rank.tp, rows.num_classes);
    const auto to_device = [&](const auto& from) {
      using T = typename std::decay_t<decltype(from)>::value_type;
      Tensor to(rank.context.arena, MemoryKind::input, {t}, DTypeOf<T>::value);
      copy_to_device(to.raw(), from.data(), to.num_bytes());
      return to;
    };
    const Activation logits = Activation::cut(rank.context, rank.tp, t, padded);
    scatter(logits.spec, stored, logits.data.data());
    Activation dlogits;
    sums[static_cast<std::size_t>(rank.axis.rank())] =
        loss.forward(rank.context, logits, to_device(rows.labels), to_device(rows.weights),
                     rows.scale, &dlogits);
    // Without a gradient, the same sums.
    std::vector<Prediction> predictions;
    const LossSums again = loss.forward(rank.context, logits, to_device(rows.labels),
                                        to_device(rows.weights), rows.scale, nullptr, &predictions);
    if (again.correct != sums[static_cast<std::size_t>(rank.axis.rank())].correct) {
      throw std::runtime_error("evaluation differs");
    }
    const std::lock_guard lock(mutex);
    if (result.predictions.empty()) result.predictions = predictions;
    if (const auto other = difference(predictions, result.predictions); !other.empty())
      throw std::runtime_error("ranks predict otherwise: " + other);
    gather(dlogits.spec, dlogits.data.data(), result.dlogits);
  });
  result.sums = sums.front();
  for (const LossSums& other : sums) {
    if (bit_difference<double>({other.loss}, {sums[0].loss}) != "" ||
        other.correct != sums[0].correct || other.rows != sums[0].rows) {
      throw std::runtime_error("ranks have other sums");
    }
  }
  return result;
}

oracle::CrossEntropy truth_of(const LogitRows& rows) {
  std::vector<double> weights;
  for (const float weight : rows.weights) {
    weights.push_back(static_cast<double>(weight) * static_cast<double>(rows.scale));
  }
  return oracle::softmax_cross_entropy({static_cast<std::size_t>(rows.size()),
                                        static_cast<std::size_t>(rows.num_classes),
                                        {rows.logits.begin(), rows.logits.end()}},
                                       {rows.labels.begin(), rows.labels.end()}, weights);
}

// Against the oracle, for every S; and the bits of tp = 1 on every layout.
void check_rows(const LogitRows& rows) {
  const oracle::CrossEntropy truth = truth_of(rows);
  double loss = 0.0;
  index_t num_real = 0;
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    if (rows.weights[row] == 0.0f) continue;
    loss += static_cast<double>(rows.weights[row]) * truth.row_losses[row];
    ++num_real;
  }
  for (const index_t shards : all_shards) {
    const Result base = run(rows, {.shards = shards});
    INFO("S = " << shards);
    CHECK(base.sums.rows == num_real);
    CHECK(difference(base.predictions, predictions_of(rows)) == "");
    // f32 exp and sums of 10 terms, then f64: 1e-6 of a row's loss, which may itself be near 0.
    if (std::isfinite(loss)) {
      CHECK(std::abs(base.sums.loss - loss) <= 1e-6 * (std::abs(loss) + 0.1));
    } else {
      CHECK(base.sums.loss == loss);
    }
    const index_t padded = round_up(rows.num_classes, shards);
    Floats valid;
    for (index_t i = 0; i < rows.size() * padded; ++i) {
      const float value = base.dlogits[static_cast<std::size_t>(i)];
      if (i % padded < rows.num_classes) {
        valid.push_back(value);
      } else {
        CHECK(bit_difference<float>({value}, {0.0f}) == "");  // +0
      }
    }
    CHECK(difference_from_oracle("dlogits", valid, truth.dlogits, 1e-6) == "");
    for (int tp = 2; tp <= static_cast<int>(shards); ++tp) {
      INFO("tp = " << tp);
      const Result other = run(rows, {.shards = shards, .tp = tp});
      REQUIRE(bit_difference<double>({other.sums.loss}, {base.sums.loss}) == "");
      REQUIRE(other.sums.correct == base.sums.correct);
      REQUIRE(difference(other.predictions, base.predictions) == "");
      REQUIRE(bit_difference(other.dlogits, base.dlogits) == "");
    }
    for (const int threads : several_threads()) {
      const Result threaded = run(rows, {.shards = shards, .threads = threads});
      REQUIRE(bit_difference(threaded.dlogits, base.dlogits) == "");
    }
  }
}

Floats row_of(float value, index_t n = 10) { return Floats(static_cast<std::size_t>(n), value); }

}  // namespace

TEST_CASE("random rows, some of them padding, with a scale", "[cross_entropy]") {
  for (const index_t classes : {2, 10, 37}) {
    LogitRows rows;
    rows.num_classes = classes;
    rows.scale = 1.0f / 11.0f;
    for (int t = 0; t < 13; ++t) {
      rows.add(random_floats(static_cast<std::size_t>(classes), 10 + t, -4.0f, 4.0f),
               t * 7 % static_cast<int>(classes), t % 6 == 5 ? 0.0f : 1.0f);
    }
    rows.pad_logit = 1e30f;
    INFO(classes << " classes");
    check_rows(rows);
  }
}

TEST_CASE("rows that break naive versions", "[cross_entropy]") {
  LogitRows rows;
  rows.add(row_of(0.0f), 3);  // all equal: log 10
  rows.add(row_of(-0.0f), 9);
  rows.add(row_of(1e4f), 0);  // exp overflows without the maximum
  rows.add(row_of(-1e4f), 7);
  Floats steep = row_of(-1e4f);
  steep[4] = 1e4f;
  rows.add(steep, 4);  // loss 0
  rows.add(steep, 5);  // loss 2e4
  Floats masked = row_of(1.0f);
  for (const std::size_t c : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{9}}) {
    masked[c] = -infinity;  // whole shards without a class at S = 12 and S = 4
  }
  rows.add(masked, 5);
  check_rows(rows);
  Result result = run(rows, {.shards = 12, .tp = 12});
  CHECK(result.dlogits[static_cast<std::size_t>(6 * 12)] == 0.0f);

  // The label's own logit at -inf: the loss is infinite, not a large number.
  rows.add(masked, 0);
  CHECK(run(rows, {.shards = 4, .tp = 3}).sums.loss == infinity);
}

TEST_CASE("rows weigh what their class does, and count once", "[cross_entropy]") {
  LogitRows rows;
  rows.scale = 1.0f / 7.0f;
  const float class_weights[] = {0.25f, 1.0f, 3.0f, 0x1p-20f, 100.0f};
  for (int t = 0; t < 13; ++t) {
    rows.add(random_floats(10, 80 + t, -4.0f, 4.0f), t % 5, t == 7 ? 0.0f : class_weights[t % 5]);
  }
  check_rows(rows);
  // A weight of 2 is the row twice: to the bit, since doubling is exact.
  LogitRows twice, heavy;
  twice.add(random_floats(10, 1), 3);
  twice.add(random_floats(10, 1), 3);
  heavy.add(random_floats(10, 1), 3, 2.0f);
  const Result a = run(twice, {.shards = 4}), b = run(heavy, {.shards = 4});
  CHECK(a.sums.loss == b.sums.loss);
  CHECK(b.sums.rows == 1);
  CHECK(b.sums.correct * 2 == a.sums.correct);
}

TEST_CASE("hostile logits keep their bits on every layout", "[cross_entropy]") {
  LogitRows rows;
  for (int t = 0; t < 29; ++t) rows.add(hostile_floats(10, 500 + t), t % 10);
  for (const index_t shards : all_shards) {
    const Result base = run(rows, {.shards = shards});
    for (int tp = 2; tp <= static_cast<int>(shards); ++tp) {
      const Result other = run(rows, {.shards = shards, .tp = tp});
      REQUIRE(bit_difference<double>({other.sums.loss}, {base.sums.loss}) == "");
      REQUIRE(bit_difference(other.dlogits, base.dlogits) == "");
    }
  }
}

TEST_CASE("two classes: scores are differences of logits, equal ones and infinite ones too",
          "[cross_entropy]") {
  LogitRows rows;
  rows.num_classes = 2;
  rows.add({0.25f, 0.25f}, 1);
  rows.add({0.0f, -0.0f}, 0);
  rows.add({1.0f, 1.0f + 0x1p-23f}, 1);
  rows.add({1e8f, 0x1p-24f}, 1);  // more digits than an f32 difference has
  rows.add({-infinity, 3.0f}, 1);
  rows.add({3e38f, -3e38f}, 0, 0.0f);
  rows.add({-3e38f, 3e38f}, 1);  // beyond the range of f32
  rows.pad_logit = infinity;
  check_rows(rows);
  const Result base = run(rows, {.shards = 1});
  REQUIRE(base.predictions.size() == 6);
  CHECK(base.predictions[0].predicted == 0);
  CHECK(base.predictions[3].score == 0x1p-24 - 1e8);
  CHECK(std::isfinite(base.predictions[5].score));
}

TEST_CASE("padded rows have no gradient and are not counted", "[cross_entropy]") {
  LogitRows rows;
  for (int t = 0; t < 5; ++t) rows.add(random_floats(10, 60 + t), t);
  const Result full = run(rows, {.shards = 4, .tp = 2});
  for (int t = 0; t < 3; ++t) rows.add(random_floats(10, 60), 0, 0.0f);
  const Result padded = run(rows, {.shards = 4, .tp = 2});
  CHECK(padded.sums.rows == 5);
  CHECK(padded.sums.loss == full.sums.loss);
  CHECK(padded.sums.correct == full.sums.correct);
  for (std::size_t i = 5 * 12; i < padded.dlogits.size(); ++i) CHECK(padded.dlogits[i] == 0.0f);
}

TEST_CASE("a correct row has its largest logit at the label; ties go to the lower class",
          "[cross_entropy]") {
  for (const index_t shards : all_shards) {
    for (int tp = 1; tp <= static_cast<int>(shards); tp += 2) {
      const auto correct = [&](const Floats& logits, int label) {
        LogitRows rows;
        rows.add(logits, label);
        rows.pad_logit = infinity;
        return run(rows, {.shards = shards, .tp = tp}).sums.correct;
      };
      Floats tie = row_of(0.0f);
      tie[2] = tie[8] = 5.0f;
      CHECK(correct(tie, 2) == 1);
      CHECK(correct(tie, 8) == 0);
      CHECK(correct(row_of(0.0f), 0) == 1);
      CHECK(correct(row_of(0.0f), 9) == 0);
      Floats last = row_of(-3.0f);
      last[9] = -2.0f;
      CHECK(correct(last, 9) == 1);
    }
  }
}

TEST_CASE("what is not a number does not become a loss", "[cross_entropy]") {
  for (const index_t shards : all_shards) {
    for (const int tp : {1, static_cast<int>(shards)}) {
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity}) {
        for (const int where : {0, 4, 9}) {
          LogitRows rows;
          rows.add(random_floats(10, 3), 4);
          rows.add(random_floats(10, 4), 4);
          rows.logits[static_cast<std::size_t>(where)] = bad;
          INFO("S = " << shards << ", tp = " << tp << ", class " << where << " is " << bad);
          CHECK(!std::isfinite(run(rows, {.shards = shards, .tp = tp}).sums.loss));
        }
      }
    }
  }
}
