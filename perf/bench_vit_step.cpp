// How near a whole training step of the vision transformer comes to its own matrix products: steps
// of one rank in exact mode (data to update), in turns with bare products of the same model's whole
// shapes (one piece), in one process. Operations of both are counted by one formula:
//   6 samples tokens 12 L h^2 + 12 L samples tokens^2 h
//
//   bench_vit_step [HIDDEN [STEPS [SHARDS [MICROBATCHES [LANES [WITH_FAST]]]]]]
//
// With WITH_FAST 1, fast mode takes turns too: the price of exact mode. Two models in memory slow
// each other down, so it is off by default.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/kernels/gemm.hpp"
#include "perf/one_rank.hpp"

namespace {

using namespace weft;

struct Sizes {
  index_t hidden = 384;
  index_t steps = 12;
  index_t shards = 4;
  index_t microbatches = 4;  // of a global batch
  index_t lanes = 1;
  index_t with_fast = 0;
  static constexpr index_t layers = 6, heads = 8, micro = 16;
};

Plan plan_of(const Sizes& sizes, NumericsMode mode) {
  Plan plan;
  plan.name = "vit-step";
  plan.task.train = 4000;
  plan.task.validation = 1000;
  plan.model.kind = "vit";
  plan.model.layers = Sizes::layers;
  plan.model.hidden = sizes.hidden;
  plan.model.heads = Sizes::heads;
  plan.model.patch = 4;
  plan.batch.micro = Sizes::micro;
  plan.batch.global = Sizes::micro * sizes.microbatches;
  plan.numerics.mode = mode;
  plan.numerics.shards = sizes.shards;
  plan.numerics.lanes = sizes.lanes;
  plan.optimizer.lr = 1e-4;
  plan.optimizer.weight_decay = 0.05;
  plan.optimizer.clip_norm = 1.0;
  plan.run.steps = sizes.steps + 2;
  return plan;
}

// The products of all blocks' linear layers for one microbatch, each whole: y, dx and dw.
class BareProducts {
 public:
  BareProducts(Context& context, index_t t, index_t h) : context_(context) {
    const index_t most = std::max(t, 4 * h) * 4 * h;
    for (Tensor* tensor : {&a_, &b_, &c_}) {
      *tensor = Tensor(context.arena, MemoryKind::workspace, {most});
      for (index_t i = 0; i < most; ++i)
        tensor->data()[i] = static_cast<float>(i % 113) * 0.01f - 0.5f;
    }
    for (const auto& [n, k] : {std::pair{3 * h, h}, {h, h}, {4 * h, h}, {h, 4 * h}}) {
      const auto add = [&](bool ta, bool tb, index_t m, index_t cols, index_t inner) {
        calls_.push_back({.transpose_a = ta,
                          .transpose_b = tb,
                          .m = m,
                          .n = cols,
                          .k = inner,
                          .a = a_.data(),
                          .lda = ta ? m : inner,
                          .b = b_.data(),
                          .ldb = tb ? inner : cols,
                          .c = c_.data(),
                          .ldc = cols});
      };
      add(false, true, t, n, k);   // y = x w^T
      add(false, false, t, k, n);  // dx = dy w
      add(true, false, n, k, t);   // dw = dy^T x
    }
  }

  void run(index_t layers) {
    for (index_t layer = 0; layer < layers; ++layer) {
      for (const kernels::GemmCall& call : calls_) kernels::gemm(context_, call);
    }
  }

 private:
  Context& context_;
  Tensor a_, b_, c_;
  std::vector<kernels::GemmCall> calls_;
};

// Rates of one round, in GFLOP/s.
struct Round {
  double exact, fast, bare;
};

class Comparison {
 public:
  explicit Comparison(const Sizes& sizes)
      : sizes_(sizes),
        exact_(rank_.make_trainer(plan_of(sizes, NumericsMode::exact))),
        fast_(sizes.with_fast ? rank_.make_trainer(plan_of(sizes, NumericsMode::fast)) : nullptr),
        rows_(Sizes::micro * exact_->plan().tokens_per_sample()),
        bare_(context_, rows_, sizes.hidden) {}

  // In turns, so that the machine's moods meet all alike; whoever comes second finds the other's
  // data in cache.
  Round round(index_t number) {
    double exact_s = 0.0, fast_s = 0.0;
    const auto run_exact = [&] { exact_s = perf::seconds_of([&] { exact_->step(); }); };
    const auto run_fast = [&] {
      if (fast_) fast_s = perf::seconds_of([&] { fast_->step(); });
    };
    if (number % 2 == 0) {
      run_exact();
    } else {
      run_fast();
    }
    const double bare_s = perf::seconds_of([&] {
      for (index_t m = 0; m < sizes_.microbatches; ++m) bare_.run(Sizes::layers);
    });
    if (number % 2 == 0) {
      run_fast();
    } else {
      run_exact();
    }
    const double step = (linear() + attention()) * 1e-9;
    return {step / exact_s, fast_ ? step / fast_s : 0.0, linear() * 1e-9 / bare_s};
  }

  void print_account() const {
    const Trace& trace = exact_->context().trace;
    for (int activity = 0; activity < num_activities; ++activity) {
      const auto which = static_cast<Activity>(activity);
      const double ms = static_cast<double>(trace.own_ns(which)) * 1e-6;
      if (ms > 0.0) fmt::print("  {:14} {:9.1f} ms\n", name_of(which), ms);
    }
  }

 private:
  double linear() const {
    const auto h = static_cast<double>(sizes_.hidden);
    return 6.0 * static_cast<double>(rows_ * sizes_.microbatches) * 12.0 * Sizes::layers * h * h;
  }
  double attention() const {
    const auto tokens = static_cast<double>(exact_->plan().tokens_per_sample());
    return 12.0 * Sizes::layers * static_cast<double>(rows_ * sizes_.microbatches) * tokens *
           static_cast<double>(sizes_.hidden);
  }

  Sizes sizes_;
  perf::OneRank rank_;
  std::unique_ptr<Trainer> exact_, fast_;
  index_t rows_;  // of a microbatch
  Context context_{1, {}};
  BareProducts bare_;
};

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  perf::read_arguments(argc, argv,
                       {&sizes.hidden, &sizes.steps, &sizes.shards, &sizes.microbatches,
                        &sizes.lanes, &sizes.with_fast});
  Comparison comparison(sizes);
  std::vector<double> exact, fast, bare, reached, price;
  for (index_t step = 0; step < sizes.steps + 2; ++step) {
    const Round round = comparison.round(step);
    if (step < 2) continue;  // first touch of the memory
    exact.push_back(round.exact);
    fast.push_back(round.fast);
    bare.push_back(round.bare);
    reached.push_back(100.0 * round.exact / round.bare);
    price.push_back(100.0 * (round.fast / round.exact - 1.0));
  }
  fmt::print(
      "{}; ViT {} layers, hidden {}, {} heads, patch 4, {} microbatches of {}, AdamW, clipping; "
      "{} steps, one rank, one core\n"
      "bare products {:.1f} GFLOP/s; exact S={} {:.1f} ({:.1f} % of bare)\n",
      kernels::blas_text(), Sizes::layers, sizes.hidden, Sizes::heads, sizes.microbatches,
      Sizes::micro, sizes.steps, perf::median(bare), sizes.shards, perf::median(exact),
      perf::median(reached));
  if (sizes.with_fast) {
    fmt::print("fast {:.1f} GFLOP/s; price of exact {:.1f} %\n", perf::median(fast),
               perf::median(price));
  }
  comparison.print_account();
  return 0;
}
