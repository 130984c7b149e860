// Attention that does not see everything: against the double oracle, the same bits for a unit
// wherever it lies and whoever computes it, and nothing at all of what is hidden.
#include <catch2/catch.hpp>

#include <cmath>
#include <iostream>
#include <limits>

#include "core/kernels/math.hpp"
#include "tests/core/attention_run.hpp"
#include "tests/core/kernel_sweep.hpp"
#include "tests/core/sixteen_sum.hpp"

using namespace weft;
using namespace weft::testing;
using kernels::AttentionShape;

namespace {

using Lengths = std::vector<std::int32_t>;

// The masks of a batch: causal, by lengths, both.
struct Masking {
  bool causal;
  bool has_lengths;
};
constexpr Masking all_maskings[] = {{true, false}, {false, true}, {true, true}};

// None, one, all, and what lies between.
Lengths lengths_of(index_t num_samples, index_t tokens) {
  Lengths lengths;
  for (index_t i = 0; i < num_samples; ++i) {
    const index_t choices[] = {tokens, tokens / 2, 1, tokens - tokens / 3, 0};
    lengths.push_back(static_cast<std::int32_t>(choices[i % 5]));
  }
  return lengths;
}

AttentionShape masked(AttentionShape shape, const Masking& masking, const Lengths& lengths) {
  shape.mask = {masking.causal, masking.has_lengths ? lengths.data() : nullptr};
  return shape;
}

oracle::AttentionMask oracle_mask(const Masking& masking, const Lengths& lengths) {
  if (!masking.has_lengths) return {masking.causal, {}};
  return {masking.causal, {lengths.begin(), lengths.end()}};
}

std::string text_of(const Masking& masking) {
  return std::string(masking.causal ? "causal" : "") + (masking.has_lengths ? " lengths" : "");
}

}  // namespace

TEST_CASE("masked attention agrees with the oracle", "[attention]") {
  Context context(1, {});
  double worst = 0.0;
  // Blocks of causal attention have 64 rows: below, at and above one and two of them.
  for (const index_t tokens : {1, 2, 5, 33, 63, 64, 65, 128, 150}) {
    for (const index_t head_dim : {1, 8, 24}) {
      for (const Masking& masking : all_maskings) {
        const Lengths lengths = lengths_of(5, tokens);
        const AttentionShape shape = masked({5, tokens, 2, head_dim}, masking, lengths);
        const AttentionData data(shape, size_of(100 * tokens + head_dim));
        const AttentionOutcome got =
            run_attention(context, shape, data.qkv.data(), data.dout.data());
        const oracle::Matrix qkv = matrix_of(data.qkv, shape.num_rows());
        const oracle::Matrix dout = matrix_of(data.dout, shape.num_rows());
        const oracle::AttentionMask mask = oracle_mask(masking, lengths);
        const auto n = size_of(tokens);
        const double forward = deviation(got.out, oracle::attention_forward(qkv, n, 2, mask));
        const double backward =
            deviation(got.dqkv, oracle::attention_backward(qkv, dout, n, 2, mask));
        INFO(tokens << " tokens, heads of " << head_dim << ", " << text_of(masking) << ": "
                    << forward << ", " << backward);
        // As without masks (test_attention.cpp).
        CHECK(forward < 2e-6);
        CHECK(backward < 4e-6);
        worst = std::max({worst, forward, backward});
      }
    }
  }
  std::cout << "masked attention: largest deviation from the oracle, relative to the tensor's "
               "largest element: "
            << worst << "\n";
}

TEST_CASE("what stands in padding changes no bit, and padding gets +0", "[attention]") {
  Context context(1, {});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const index_t tokens : {5, 64, 70}) {
    for (const bool causal : {false, true}) {
      for (const bool hostile : {false, true}) {
        const index_t samples = 5, head_dim = 8;
        const Lengths lengths = lengths_of(samples, tokens);
        const AttentionShape shape =
            masked({samples, tokens, 3, head_dim}, {causal, true}, lengths);
        const AttentionData data(shape, 40, hostile);
        const AttentionOutcome expected =
            run_attention(context, shape, data.qkv.data(), data.dout.data());
        const auto is_padding = [&](std::size_t row) {
          return static_cast<std::int32_t>(row % size_of(tokens)) >= lengths[row / size_of(tokens)];
        };
        const std::size_t width = size_of(shape.width());
        for (const float garbage : {nan, infinity, -infinity, 3e38f, 0.0f, -0.0f}) {
          AttentionData other = data;
          for (std::size_t row = 0; row < size_of(shape.num_rows()); ++row) {
            if (!is_padding(row)) continue;
            std::fill_n(other.qkv.begin() + static_cast<std::ptrdiff_t>(row * 3 * width), 3 * width,
                        garbage);
            std::fill_n(other.dout.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                        garbage);
          }
          INFO(tokens << " tokens, causal " << causal << ", hostile " << hostile << ", padding "
                      << garbage);
          REQUIRE(difference(run_attention(context, shape, other.qkv.data(), other.dout.data()),
                             expected) == "");
        }
        for (std::size_t i = 0; i < expected.dqkv.size(); ++i) {
          if (!is_padding(i / (3 * width))) continue;
          REQUIRE(bit_difference<float>({expected.dqkv[i]}, {0.0f}) == "");
          REQUIRE(bit_difference<float>({expected.out[i / (3 * width) * width]}, {0.0f}) == "");
        }
      }
    }
  }
}

TEST_CASE("later tokens change no bit of earlier ones", "[attention]") {
  Context context(1, {});
  for (const index_t tokens : {5, 64, 70, 130}) {
    const AttentionShape shape = masked({2, tokens, 2, 8}, {true, false}, {});
    const std::size_t row_length = size_of(3 * shape.width()), width = size_of(shape.width());
    const AttentionData data(shape, 41);
    const AttentionOutcome expected =
        run_attention(context, shape, data.qkv.data(), data.dout.data());
    for (index_t changed = 1; changed < tokens; changed += 9) {
      AttentionData other = data;
      for (const index_t sample : {0, 1}) {
        const auto from = size_of(sample * tokens + changed) * row_length;
        const auto end = size_of((sample + 1) * tokens) * row_length;
        for (std::size_t i = from; i < end; ++i) other.qkv[i] = 1.5f * data.qkv[i] + 40.0f;
      }
      const AttentionOutcome got =
          run_attention(context, shape, other.qkv.data(), data.dout.data());
      INFO(tokens << " tokens, changed from " << changed);
      for (const index_t sample : {0, 1}) {
        const std::size_t first = size_of(sample * tokens) * width;
        REQUIRE(bit_difference(got.out.data() + first, expected.out.data() + first,
                               size_of(changed) * width) == "");
        const std::size_t last = size_of((sample + 1) * tokens) * width - 1;
        CHECK(got.out[last] != expected.out[last]);
      }
      // dq of a query that sees nothing of what changed.
      for (index_t t = 0; t < changed; ++t) {
        for (const index_t head : {0, 1}) {
          const std::size_t q = size_of(t) * row_length + size_of(head * 24);
          REQUIRE(bit_difference(got.dqkv.data() + q, expected.dqkv.data() + q, 8) == "");
        }
      }
    }
  }
}

TEST_CASE("the sum of a row is over the keys that are seen, in 16-accumulator form",
          "[attention]") {
  Context context(1, {});
  for (const std::size_t n : {3u, 17u, 50u, 64u}) {
    const Floats k = random_floats(n, n, -20.0f, 0.0f), ones(n, 1.0f);
    const Lengths lengths{static_cast<std::int32_t>(n - n / 3)};
    for (const Masking& masking : all_maskings) {
      const AttentionShape shape = masked({1, static_cast<index_t>(n), 1, 1}, masking, lengths);
      const AttentionOutcome got =
          run_attention(context, shape, one_head(ones, k, ones).data(), ones.data());
      Floats expected;
      for (std::size_t row = 0; row < n; ++row) {
        const std::size_t length = masking.has_lengths ? size_of(lengths[0]) : n;
        const std::size_t keys = masking.causal ? std::min(row + 1, length) : length;
        if (row >= length) {
          expected.insert(expected.end(), {0.0f, 0.0f});
          continue;
        }
        const Floats seen(k.begin(), k.begin() + static_cast<std::ptrdiff_t>(keys));
        const float largest = *std::max_element(seen.begin(), seen.end());
        Floats terms;
        for (const float score : seen) terms.push_back(math::exp(score - largest));
        expected.insert(expected.end(), {largest, 1.0f / sixteen_sum(terms)});
      }
      INFO(n << " tokens, " << text_of(masking));
      REQUIRE(bit_difference(got.row_softmax, expected) == "");
    }
  }
}

TEST_CASE("whole range = one by one: samples of masked attention", "[attention][kernels]") {
  const Lengths lengths = lengths_of(sweep_items, 5);
  for (const Masking& masking : all_maskings) {
    const AttentionShape all{sweep_items, 5, 2, 3};
    const AttentionData data(all, 7, true);
    const index_t qkv_size = all.tokens * 3 * all.width(), out_size = all.tokens * all.width();
    check_sweep("attention " + text_of(masking), size_of(out_size + qkv_size),
                [&](Context& context, index_t begin, index_t n) {
                  const Lengths mine(lengths.begin() + begin, lengths.begin() + begin + n);
                  const AttentionOutcome o = run_attention(
                      context, masked({n, all.tokens, all.heads, all.head_dim}, masking, mine),
                      data.qkv.data() + begin * qkv_size, data.dout.data() + begin * out_size);
                  Floats by_sample;
                  for (index_t sample = 0; sample < n; ++sample) {
                    for (const Floats* part : {&o.out, &o.dqkv}) {
                      const auto size = static_cast<index_t>(part->size()) / n;
                      by_sample.insert(by_sample.end(), part->begin() + sample * size,
                                       part->begin() + (sample + 1) * size);
                    }
                  }
                  return by_sample;
                });
  }
}

TEST_CASE("threads and pieces change no bit of masked attention", "[attention]") {
  constexpr index_t heads = 12, samples = 3;
  for (const index_t tokens : {1, 16, 65}) {
    const Lengths lengths = lengths_of(samples, tokens);
    for (const Masking& masking : all_maskings) {
      const AttentionShape whole = masked({samples, tokens, heads, 4}, masking, lengths);
      const AttentionData data(whole, 11, true);
      Context alone(1, {});
      const AttentionOutcome expected =
          run_attention(alone, whole, data.qkv.data(), data.dout.data());
      INFO(tokens << " tokens, " << text_of(masking));
      for (const int threads : {2, 3, 4}) {
        Context context(threads, {});
        REQUIRE(difference(run_attention(context, whole, data.qkv.data(), data.dout.data()),
                           expected) == "");
      }
      for (const index_t pieces : {2, 3, 5, 12}) {
        for (index_t piece = 0; piece < pieces; ++piece) {
          const Range mine = part_of(piece, pieces, heads);
          const AttentionShape shape = masked({samples, tokens, mine.size(), 4}, masking, lengths);
          const index_t first = mine.begin * 4, width = shape.width();
          const auto of_qkv = [&](const Floats& x) {
            return columns_of(x, 3 * whole.width(), 3 * first, 3 * width);
          };
          const auto of_out = [&](const Floats& x) {
            return columns_of(x, whole.width(), first, width);
          };
          const AttentionOutcome got =
              run_attention(alone, shape, of_qkv(data.qkv).data(), of_out(data.dout).data());
          REQUIRE(bit_difference(got.out, of_out(expected.out)) == "");
          REQUIRE(bit_difference(got.dqkv, of_qkv(expected.dqkv)) == "");
        }
      }
    }
  }
}

TEST_CASE("the products that are announced are those of each block", "[attention]") {
  const std::int32_t any = 0;
  const auto flops = [](const AttentionShape& shape) {
    index_t sum = 0;
    for (const kernels::GemmCall& call : kernels::attention_products(shape))
      sum += 2 * call.m * call.n * call.k;
    return sum;
  };
  const AttentionShape whole{1, 192, 1, 8};
  CHECK(flops(whole) == 6 * 2 * 192 * 192 * 8);
  CHECK(kernels::attention_products(whole).size() == 6);
  // Blocks of 64 see 64, 128 and 192 keys.
  const AttentionShape causal = masked(whole, {true, false}, {});
  CHECK(kernels::attention_products(causal).size() == 18);
  CHECK(flops(causal) == 6 * 2 * 64 * (64 + 128 + 192) * 8);
  AttentionShape brief = whole;
  brief.mask.lengths = &any;
  CHECK(flops(brief) == flops(whole));
}
