// What each rank holds between steps, in elements and bytes by kind, against a count made from the
// plan's numbers alone.
#include <catch2/catch.hpp>

#include "tests/apps/training_run.hpp"

using namespace weft;
using namespace weft::testing;

TEST_CASE("each rank holds only its shard", "[trainer]") {
  const SmallData data;
  // Stored elements from the plan alone: pieces on multiples of 64 elements, classes padded to 12.
  const auto stored = [](index_t n) { return (n + 63) / 64 * 64; };
  constexpr index_t h = 48, wide = 192, in = 3072, classes = 10, padded = 12;
  for (const auto& [shards, tp] : {std::pair{4, 1}, {4, 2}, {4, 3}, {4, 4}, {12, 5}, {12, 12}}) {
    for (const bool is_adamw : {true, false}) {
      Plan plan = small_plan(shards);
      plan.layout.tp = tp;
      plan.optimizer.kind = is_adamw ? "adamw" : "sgd";
      const TrainingRun run = train(plan, data, {.num_steps = 1});
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
        const auto bytes = [&](MemoryKind kind) {
          return static_cast<index_t>(figures.bytes[static_cast<std::size_t>(kind)]);
        };
        CHECK(figures.held_elements == held);
        CHECK(bytes(MemoryKind::parameters) == 4 * flat);
        CHECK(bytes(MemoryKind::optimizer) == (is_adamw ? 8 * flat : 0));
        // Between steps only the token-block sums of what is replicated, S of each.
        CHECK(bytes(MemoryKind::gradients) == 4 * shards * 9 * stored(h));
        CHECK(bytes(MemoryKind::activations) == 0);
        CHECK(bytes(MemoryKind::input) == 0);
        held_in_all += held;
      }
      const index_t total = h * in + 9 * h + 2 * (2 * h * wide + wide) + classes * (h + 1);
      CHECK(held_in_all == total + (tp - 1) * 9 * h);
    }
  }
}
