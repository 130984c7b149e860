// What each rank holds between steps, in elements and bytes by kind, against counts made from the
// plan's numbers alone, and what schedules keep of microbatches under way.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tests/apps/training_run.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// Stored elements of a block: pieces lie on multiples of 64.
index_t stored(index_t n) { return (n + 63) / 64 * 64; }

constexpr index_t hidden = 48, classes = 10;

// What a tp rank has of one stage of small_vit(4) with four blocks, by hand from FORMAT.md. Of four
// pieces rank r of 3 has 1, 1, 2.
struct VitShare {
  index_t pieces, first_piece, blocks;
  bool is_first, is_last;

  static constexpr index_t wide = 2 * hidden, patch = 3 * 16 * 16, tokens = 4, padded = 12;

  // Elements in matrices and vectors that are cut, `count` rounding the storage of each piece.
  template <class Count>
  index_t cut(const Count& count) const {
    index_t sum = 0;
    for (index_t s = first_piece; s < first_piece + pieces; ++s) {
      sum += blocks * (count(3 * hidden / 4 * hidden) + count(3 * hidden / 4) +  // qkv
                       count(hidden * hidden / 4) +                              // proj
                       count(wide / 4 * hidden) + count(wide / 4) +              // up
                       count(hidden * wide / 4));                                // down
      if (is_first) sum += count(hidden * patch / 4);
      if (is_last) sum += head(s, count);
    }
    return sum;
  }

  // Vectors of `hidden` that every tp rank has and that are summed by token blocks: two norms, the
  // biases of proj and down.
  index_t vectors() const { return 6 * blocks + (is_first ? 1 : 0) + (is_last ? 2 : 0); }
  index_t positions() const { return is_first ? tokens * hidden : 0; }

  index_t stored_elements() const { return cut(stored) + positions() + vectors() * stored(hidden); }
  index_t cut_elements() const {
    return cut([](index_t n) { return n; });
  }
  index_t copied_elements() const { return positions() + vectors() * hidden; }

 private:
  // Three rows a piece in storage; of the last piece one is a class, two are pads.
  template <class Count>
  static index_t head(index_t s, const Count& count) {
    const bool with_pads = count(1) > 1;
    const index_t rows = with_pads ? padded / 4 : std::min(classes - 3 * s, index_t{3});
    return count(rows * hidden) + count(rows);
  }
};

}  // namespace

TEST_CASE("each rank holds only its shard", "[trainer][memory]") {
  constexpr index_t h = hidden, wide = 192, in = 3072, padded = 12;
  for (const auto& [shards, tp] : {std::pair{4, 1}, {4, 2}, {4, 3}, {4, 4}, {12, 5}, {12, 12}}) {
    for (const bool is_adamw : {true, false}) {
      Plan plan = small_plan(shards);
      plan.layout.tp = tp;
      plan.optimizer.kind = is_adamw ? "adamw" : "sgd";
      const TrainingRun run = train(plan, small_data(), {.num_steps = 1});
      index_t held_in_all = 0;
      for (index_t rank = 0; rank < tp; ++rank) {
        // Replicated: stem.bias, three a block, two of the final norm.
        index_t flat = (1 + 3 * 2 + 2) * stored(h), held = (1 + 3 * 2 + 2) * h;
        for (index_t s = rank * shards / tp; s < (rank + 1) * shards / tp; ++s) {
          const auto piece = [&](index_t n) { return (s + 1) * n / shards - s * n / shards; };
          flat += stored(h * piece(in)) + stored(piece(padded) * h) + stored(piece(padded)) +
                  2 * (2 * stored(h * piece(wide)) + stored(piece(wide)));
          index_t real = 0;
          for (index_t c = s * padded / shards; c < (s + 1) * padded / shards; ++c) {
            real += c < classes ? 1 : 0;
          }
          held += h * piece(in) + real * (h + 1) + 2 * (2 * h * piece(wide) + piece(wide));
        }
        INFO("S = " << shards << ", tp = " << tp << ", rank " << rank);
        const RankFigures& figures = run.ranks[static_cast<std::size_t>(rank)];
        CHECK(figures.held_elements == held);
        CHECK(figures.bytes_of(MemoryKind::parameters) == 4 * flat);
        CHECK(figures.bytes_of(MemoryKind::optimizer) == (is_adamw ? 8 * flat : 0));
        // Between steps only the token-block sums of what is replicated, S of each.
        CHECK(figures.bytes_of(MemoryKind::gradients) == 4 * shards * 9 * stored(h));
        CHECK(figures.bytes_of(MemoryKind::activations) == 0);
        CHECK(figures.bytes_of(MemoryKind::input) == 0);
        held_in_all += held;
      }
      const index_t total = h * in + 9 * h + 2 * (2 * h * wide + wide) + classes * (h + 1);
      CHECK(held_in_all == total + (tp - 1) * 9 * h);
    }
  }
}

TEST_CASE("on three axes with ZeRO-1 each rank holds its part, and all parts are the model",
          "[trainer][memory]") {
  Plan plan = small_vit(4);
  plan.model.layers = 4;
  plan.layout.tp = 3;
  plan.layout.dp = 2;
  plan.layout.pp = 2;
  plan.layout.stages = {3, 1};
  plan.layout.zero = 1;
  plan.layout.sequence_parallel = true;
  plan.comm.bucket_bytes = 10000;
  for (const index_t states : {2, 1}) {
    plan.optimizer.kind = states == 2 ? "adamw" : "sgd";
    plan.optimizer.momentum = states == 2 ? 0.0 : 0.9;
    const TrainingRun run = train(plan, small_data(), {.num_steps = 1});
    REQUIRE(run.ranks.size() == 12);
    index_t held_once = 0;
    index_t optimizer_bytes[3][2] = {};  // of tp rank and stage, over dp
    for (const RankFigures& rank : run.ranks) {
      INFO("tp " << rank.tp << ", dp " << rank.dp << ", pp " << rank.pp);
      const VitShare share{.pieces = rank.tp == 2 ? 2 : 1,
                           .first_piece = rank.tp,
                           .blocks = rank.pp == 0 ? 3 : 1,
                           .is_first = rank.pp == 0,
                           .is_last = rank.pp == 1};
      const index_t all = share.stored_elements();
      CHECK(rank.held_elements == share.cut_elements() + share.copied_elements());
      CHECK(rank.bytes_of(MemoryKind::parameters) == 4 * all);
      // Between steps: sums of the rank's own token blocks, of which it has as many as pieces.
      CHECK(rank.bytes_of(MemoryKind::gradients) ==
            4 * share.pieces * share.vectors() * stored(hidden));
      // In a step: the first lane's whole gradient, into which the second lane's is added parameter
      // by parameter. patch.weight and qkv.weight are the largest.
      const index_t largest =
          share.pieces * stored((rank.pp == 0 ? VitShare::patch : 3 * hidden) * hidden / 4);
      CHECK(rank.peak_of(MemoryKind::gradients) ==
            rank.bytes_of(MemoryKind::gradients) + 4 * (all + largest));
      // Half of the elements, up to one norm block of 1024.
      const index_t optimizer = rank.bytes_of(MemoryKind::optimizer);
      CHECK(std::abs(optimizer - 4 * states * all / 2) <= 4 * states * 1024);
      CHECK(rank.bytes_of(MemoryKind::activations) == 0);
      CHECK(rank.bytes_of(MemoryKind::input) == 0);
      optimizer_bytes[rank.tp][rank.pp] += optimizer;
      if (rank.dp == 0)
        held_once += rank.held_elements - (rank.tp == 0 ? 0 : share.copied_elements());
    }
    for (const RankFigures& rank : run.ranks) {
      CHECK(optimizer_bytes[rank.tp][rank.pp] == states * rank.bytes_of(MemoryKind::parameters));
    }
    // patch, positions; 4 blocks of qkv, proj, up, down and two norms; final norm, head.
    constexpr index_t h = hidden, wide = 2 * hidden;
    CHECK(held_once == h * 768 + h + 4 * h +
                           4 * (3 * h * h + 3 * h + h * h + h + 2 * h * wide + wide + h + 4 * h) +
                           2 * h + classes * (h + 1));
  }
}

TEST_CASE("1f1b keeps p - i microbatches on stage i, GPipe all of them", "[trainer][memory]") {
  constexpr index_t p = 3;
  Plan plan = small_vit(4);
  plan.model.patch = 8;
  plan.model.layers = 6;
  plan.layout.pp = p;
  // [schedule][m / 8 - 1][stage]: bytes of activations at the peak
  const auto peaks_of = [&](const char* schedule, index_t microbatches) {
    plan.layout.schedule = schedule;
    plan.batch.global = microbatches * plan.batch.micro;
    std::vector<index_t> peaks;
    for (const RankFigures& rank : train(plan, small_data(), {.num_steps = 2}).ranks)
      peaks.push_back(rank.peak_of(MemoryKind::activations));
    return peaks;
  };
  const auto gpipe8 = peaks_of("gpipe", 8), gpipe16 = peaks_of("gpipe", 16);
  const auto alternating8 = peaks_of("1f1b", 8), alternating16 = peaks_of("1f1b", 16);
  for (index_t stage = 0; stage < p; ++stage) {
    const auto i = static_cast<std::size_t>(stage);
    const index_t one = (gpipe16[i] - gpipe8[i]) / 8;  // what a microbatch keeps
    std::cout << "stage " << stage << ": a microbatch keeps " << one << " bytes; peaks of GPipe "
              << gpipe8[i] << ", " << gpipe16[i] << ", of 1f1b " << alternating8[i] << ", "
              << alternating16[i] << "\n";
    INFO("stage " << stage << ", a microbatch keeps " << one << " bytes");
    CHECK(one > 0);
    const index_t kept = p - stage;
    // Messages under way come and go with the machine's load: they are less than a microbatch.
    CHECK(std::abs(gpipe8[i] - alternating8[i] - (8 - kept) * one) < one);
    CHECK(std::abs(alternating16[i] - alternating8[i]) < one);
  }
}
