// Attention: against the double oracle, and the same bits for a unit (one head of one sample)
// wherever it lies and whoever computes it.
#include <catch2/catch.hpp>

#include <cmath>
#include <iostream>

#include "core/kernels/math.hpp"
#include "tests/core/attention_run.hpp"
#include "tests/core/kernel_sweep.hpp"
#include "tests/core/sixteen_sum.hpp"

using namespace weft;
using namespace weft::testing;
using kernels::AttentionShape;

TEST_CASE("attention agrees with the oracle", "[attention]") {
  Context context(1, {});
  double worst = 0.0;
  for (const index_t tokens : {1, 2, 5, 15, 16, 17, 33, 64}) {
    for (const index_t head_dim : {1, 8, 24}) {
      for (const index_t heads : {1, 3}) {
        const AttentionShape shape{2, tokens, heads, head_dim};
        const AttentionData data(shape, size_of(100 * tokens + head_dim));
        const AttentionOutcome got =
            run_attention(context, shape, data.qkv.data(), data.dout.data());
        const auto n = size_of(tokens), h = size_of(heads);
        const oracle::Matrix qkv = matrix_of(data.qkv, shape.num_rows());
        const oracle::Matrix dout = matrix_of(data.dout, shape.num_rows());
        const double forward = deviation(got.out, oracle::attention_forward(qkv, n, h));
        const double backward = deviation(got.dqkv, oracle::attention_backward(qkv, dout, n, h));
        INFO(tokens << " tokens, " << heads << " heads of " << head_dim << ": " << forward << ", "
                    << backward);
        // Scores of up to 20 whose rounding (2^-24 relative) exp makes an error of p: 20 * 6e-8.
        // Of one token ds is a rounding error in place of 0, so dq and dk are nothing but that.
        CHECK(forward < 2e-6);
        CHECK(backward < 4e-6);
        worst = std::max({worst, forward, backward});
      }
    }
  }
  std::cout << "attention: largest deviation from the oracle, relative to the tensor's largest "
               "element: "
            << worst << "\n";
}

TEST_CASE("whole range = one by one: samples of attention", "[attention][kernels]") {
  const AttentionShape all{sweep_items, 5, 2, 3};
  for (const bool hostile : {false, true}) {
    const AttentionData data(all, 7, hostile);
    const index_t qkv_size = all.tokens * 3 * all.width(), out_size = all.tokens * all.width();
    check_sweep("attention", size_of(out_size + all.heads * all.tokens * 2 + qkv_size),
                [&](Context& context, index_t begin, index_t n) {
                  const AttentionShape shape{n, all.tokens, all.heads, all.head_dim};
                  const AttentionOutcome o =
                      run_attention(context, shape, data.qkv.data() + begin * qkv_size,
                                    data.dout.data() + begin * out_size);
                  Floats by_sample;
                  for (index_t sample = 0; sample < n; ++sample) {
                    for (const Floats* part : {&o.out, &o.row_softmax, &o.dqkv}) {
                      const auto size = static_cast<index_t>(part->size()) / n;
                      by_sample.insert(by_sample.end(), part->begin() + sample * size,
                                       part->begin() + (sample + 1) * size);
                    }
                  }
                  return by_sample;
                });
  }
}

TEST_CASE("threads share units and change no bit", "[attention]") {
  for (const index_t tokens : {1, 16, 64, 23}) {
    const AttentionShape shape{3, tokens, 4, 24};
    const AttentionData data(shape, 5);
    Context alone(1, {});
    const AttentionOutcome expected =
        run_attention(alone, shape, data.qkv.data(), data.dout.data());
    for (const int threads : {2, 3, 4}) {
      Context context(threads, {});
      CHECK(difference(run_attention(context, shape, data.qkv.data(), data.dout.data()),
                       expected) == "");
    }
  }
}

TEST_CASE("a head has the same bits in a piece of any width", "[attention]") {
  constexpr index_t heads = 12;
  Context context(1, {});
  for (const index_t tokens : {16, 64, 21}) {
    for (const index_t head_dim : {4, 8, 24}) {
      for (const bool hostile : {false, true}) {
        const AttentionShape whole{2, tokens, heads, head_dim};
        const AttentionData data(whole, 11, hostile);
        const AttentionOutcome expected =
            run_attention(context, whole, data.qkv.data(), data.dout.data());
        for (const index_t pieces : {2, 3, 4, 5, 6, 12}) {
          for (index_t piece = 0; piece < pieces; ++piece) {
            const Range mine = part_of(piece, pieces, heads);
            const AttentionShape shape{2, tokens, mine.size(), head_dim};
            const index_t first = mine.begin * head_dim, width = shape.width();
            const auto of_qkv = [&](const Floats& x) {
              return columns_of(x, 3 * whole.width(), 3 * first, 3 * width);
            };
            const Floats dout = columns_of(data.dout, whole.width(), first, width);
            const AttentionOutcome got =
                run_attention(context, shape, of_qkv(data.qkv).data(), dout.data());
            INFO(tokens << " tokens, heads of " << head_dim << ", piece " << piece << " of "
                        << pieces << (hostile ? ", hostile" : ""));
            REQUIRE(bit_difference(got.out,
                                   columns_of(expected.out, whole.width(), first, width)) == "");
            REQUIRE(bit_difference(got.dqkv, of_qkv(expected.dqkv)) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("the sum of a row of scores is in 16-accumulator form", "[attention]") {
  // d = 1 and q = 1: scores are k as it is.
  Context context(1, {});
  int other_orders_differ = 0;
  for (const std::size_t n : {3u, 16u, 17u, 50u, 64u}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Floats k = random_floats(n, seed, -20.0f, 0.0f);
      const Floats ones(n, 1.0f);
      const AttentionShape shape{1, static_cast<index_t>(n), 1, 1};
      const AttentionOutcome got =
          run_attention(context, shape, one_head(ones, k, ones).data(), ones.data());
      const float largest = *std::max_element(k.begin(), k.end());
      Floats terms;
      float in_order = 0.0f;
      for (const float score : k) {
        terms.push_back(math::exp(score - largest));
        in_order += terms.back();
      }
      Floats expected;
      for (std::size_t row = 0; row < n; ++row) {
        expected.insert(expected.end(), {largest, 1.0f / sixteen_sum(terms)});
      }
      REQUIRE(bit_difference(got.row_softmax, expected) == "");
      other_orders_differ += in_order != sixteen_sum(terms) ? 1 : 0;
    }
  }
  CHECK(other_orders_differ > 10);
}

TEST_CASE("scores that are equal, huge or as good as masked", "[attention]") {
  Context context(1, {});
  const auto attend = [&](const Floats& q, const Floats& k, const Floats& v) {
    const AttentionShape shape{1, static_cast<index_t>(q.size()), 1, 1};
    const Floats ones(q.size(), 1.0f);
    AttentionOutcome got = run_attention(context, shape, one_head(q, k, v).data(), ones.data());
    for (const float value : got.dqkv) CHECK(std::isfinite(value));
    return got;
  };
  // All equal: the mean, whatever the height.
  for (const float score : {0.0f, 1e30f, -1e30f, 88.0f}) {
    const AttentionOutcome got = attend(Floats(4, 1.0f), Floats(4, score), {1, 2, 3, 6});
    CHECK(got.out == Floats(4, 3.0f));
    CHECK(got.row_softmax[1] == 0.25f);
  }
  // One is far above: its value alone, and exactly 0 of the others.
  const AttentionOutcome one = attend({1, 1, -1}, {1e30f, 5, -1e30f}, {7, 8, 9});
  CHECK(one.out == Floats{7, 7, 9});
  // Two share the top; 1e30 below is as good as masked.
  const AttentionOutcome two = attend({1, 1, 1, 1}, {3, -1e30f, 3, -1e30f}, {2, 100, 4, 100});
  CHECK(two.out == Floats(4, 3.0f));
  // dv of what nobody looks at is exactly 0, so are its dk.
  CHECK(two.dqkv[3 * 1 + 2] == 0.0f);
  CHECK(two.dqkv[3 * 1 + 1] == 0.0f);
  // A difference just below where exp is 0.
  CHECK(attend({1, 1}, {0, -87.4f}, {1, 1e38f}).out == Floats(2, 1.0f));
}

TEST_CASE("attention keeps no scores: its memory is one unit a thread", "[attention]") {
  for (const int threads : {1, 2}) {
    Context context(threads, {});
    const AttentionShape shape{4, 64, 8, 24};
    const AttentionData data(shape, 3);
    run_attention(context, shape, data.qkv.data(), data.dout.data());
    CHECK(context.arena.in_use() == 0);
    // Backward holds p, ds, and k and v turned.
    const std::uint64_t unit = (2 * 64 * 64 + 2 * 64 * 24) * sizeof(float);
    CHECK(context.arena.peak().total == unit * static_cast<std::uint64_t>(threads));
  }
}
