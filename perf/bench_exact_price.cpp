// The price of exact mode: step times of the same plan in exact and in fast mode, on one rank,
// taken alternately step by step in one process, so that the machine's moods meet both alike. Fast
// mode has one piece and one lane; exact mode has S pieces and R lanes.
//
//   bench_exact_price [HIDDEN [LAYERS [STEPS [MICRO [MICROBATCHES [LANES]]]]]]

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/kernels/gemm.hpp"
#include "perf/one_rank.hpp"

namespace {

using namespace weft;

struct Sizes {
  index_t hidden = 768;
  index_t layers = 2;
  index_t steps = 30;
  index_t micro = 128;
  index_t microbatches = 8;  // of a global batch
  index_t lanes = 1;
};

Plan plan_of(const Sizes& sizes, NumericsMode mode, index_t shards, index_t lanes) {
  Plan plan;
  plan.name = "exact-price";
  plan.task.train = 4000;
  plan.task.validation = 1000;
  plan.model.layers = sizes.layers;
  plan.model.hidden = sizes.hidden;
  plan.batch.micro = sizes.micro;
  plan.batch.global = sizes.micro * sizes.microbatches;
  plan.numerics.mode = mode;
  plan.numerics.shards = shards;
  plan.numerics.lanes = lanes;
  plan.optimizer.lr = 1e-4;
  plan.optimizer.clip_norm = 1.0;
  plan.run.steps = sizes.steps + 2;
  return plan;
}

double step_ms(Trainer& trainer) {
  return 1e3 * perf::seconds_of([&] { trainer.step(); });
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  perf::read_arguments(argc, argv,
                       {&sizes.hidden, &sizes.layers, &sizes.steps, &sizes.micro,
                        &sizes.microbatches, &sizes.lanes});
  perf::OneRank rank;

  fmt::print(
      "{}; hidden {}, {} blocks, {} microbatches of {}, AdamW, clipping; {} steps each, one rank\n",
      kernels::blas_text(), sizes.hidden, sizes.layers, sizes.microbatches, sizes.micro,
      sizes.steps);
  fmt::print("{:>6} {:>6} {:>14} {:>14} {:>8} {:>16}\n", "shards", "lanes", "exact, ms", "fast, ms",
             "price", "spread of ratio");
  for (const index_t shards : {1, 2, 4, 8, 12}) {
    const auto exact = rank.make_trainer(plan_of(sizes, NumericsMode::exact, shards, sizes.lanes));
    const auto fast = rank.make_trainer(plan_of(sizes, NumericsMode::fast, shards, sizes.lanes));
    std::vector<double> exact_ms, fast_ms, ratios;
    for (index_t step = 0; step < sizes.steps + 2; ++step) {
      // Whoever comes second finds the other's data in cache: they take turns.
      const bool exact_first = step % 2 == 0;
      double e = exact_first ? step_ms(*exact) : 0.0;
      const double f = step_ms(*fast);
      if (!exact_first) e = step_ms(*exact);
      if (step < 2) continue;  // first touch of the memory
      exact_ms.push_back(e);
      fast_ms.push_back(f);
      ratios.push_back(e / f);
    }
    std::sort(ratios.begin(), ratios.end());
    fmt::print("{:>6} {:>6} {:>14.2f} {:>14.2f} {:>7.1f}% {:>7.3f} - {:.3f}\n", shards, sizes.lanes,
               perf::median(exact_ms), perf::median(fast_ms), (perf::median(ratios) - 1.0) * 100.0,
               ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4]);
    std::fflush(stdout);
  }
  return 0;
}
