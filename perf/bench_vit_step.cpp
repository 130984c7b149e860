// How near a whole training step of the vision transformer comes to its own matrix products: steps
// of one rank in exact mode (data to update), in turns with bare products of the same model's whole
// shapes (one piece), in one process. Operations of both are counted by one formula:
//   6 samples tokens 12 L h^2 + 12 L samples tokens^2 h
//
//   bench_vit_step [HIDDEN [STEPS [SHARDS [MICROBATCHES [LANES]]]]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer.hpp"
#include "core/kernels/gemm.hpp"
#include "core/kokkos_session.hpp"
#include "io/synthetic_cifar10.hpp"
#include "parallel/comm/local_transport.hpp"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

struct Sizes {
  index_t hidden = 384;
  index_t steps = 12;
  index_t shards = 4;
  index_t microbatches = 4;  // of a global batch
  index_t lanes = 1;
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_of(const auto& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
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

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  index_t* const arguments[] = {&sizes.hidden, &sizes.steps, &sizes.shards, &sizes.microbatches,
                                &sizes.lanes};
  for (int i = 1; i < argc && i <= 5; ++i) *arguments[i - 1] = std::atol(argv[i]);

  const std::string folder =
      (std::filesystem::temp_directory_path() / "weft-vit-step-cifar10").string();
  if (!std::filesystem::exists(folder + "/test_batch.bin"))
    make_synthetic_cifar10(folder, {.rows_per_file = 1000});
  const Cifar10 data(folder);
  const Split split = make_split(data.num_samples(Cifar10::Part::training), 4000, 1000, 7);
  const KokkosSession kokkos(1);
  LocalWorld world(1);
  const std::unique_ptr<Transport> transport = world.make_transport(0);
  Trainer exact(plan_of(sizes, NumericsMode::exact), data, split, *transport);
  Trainer fast(plan_of(sizes, NumericsMode::fast), data, split, *transport);
  Context context(1, {});
  const index_t tokens = exact.plan().tokens_per_sample();
  const index_t t = Sizes::micro * tokens;
  const auto h = static_cast<double>(sizes.hidden);
  BareProducts bare(context, t, sizes.hidden);

  const double rows = static_cast<double>(t * sizes.microbatches);
  const double linear = 6.0 * rows * 12.0 * Sizes::layers * h * h;
  const double attention = 12.0 * Sizes::layers * rows * static_cast<double>(tokens) * h;
  std::vector<double> exact_rate, fast_rate, bare_rate, reached, price;
  for (index_t step = 0; step < sizes.steps + 2; ++step) {
    double bare_s = 0.0, exact_s = 0.0, fast_s = 0.0;
    // In turns, so that the machine's moods meet all alike.
    const auto run_bare = [&] {
      bare_s = seconds_of([&] {
        for (index_t m = 0; m < sizes.microbatches; ++m) bare.run(Sizes::layers);
      });
    };
    const auto run_exact = [&] { exact_s = seconds_of([&] { exact.step(); }); };
    const auto run_fast = [&] { fast_s = seconds_of([&] { fast.step(); }); };
    if (step % 2 == 0) {
      run_exact();
      run_bare();
      run_fast();
    } else {
      run_fast();
      run_bare();
      run_exact();
    }
    if (step < 2) continue;  // first touch of the memory
    const double operations = linear + attention;
    exact_rate.push_back(operations / exact_s * 1e-9);
    fast_rate.push_back(operations / fast_s * 1e-9);
    bare_rate.push_back(linear / bare_s * 1e-9);
    reached.push_back(exact_rate.back() / bare_rate.back());
    price.push_back(exact_s / fast_s - 1.0);
  }
  fmt::print(
      "{}; ViT {} layers, hidden {}, {} heads, patch 4, {} microbatches of {}, AdamW, clipping; "
      "{} steps, one rank, one core\n"
      "bare products {:.1f} GFLOP/s; exact S={} {:.1f} ({:.1f} % of bare); fast {:.1f}; price of "
      "exact {:.1f} %\n",
      kernels::blas_text(), Sizes::layers, sizes.hidden, Sizes::heads, sizes.microbatches,
      Sizes::micro, sizes.steps, median(bare_rate), sizes.shards, median(exact_rate),
      100.0 * median(reached), median(fast_rate), 100.0 * median(price));
  const Trace& trace = exact.context().trace;
  for (int activity = 0; activity < num_activities; ++activity) {
    const auto which = static_cast<Activity>(activity);
    fmt::print("  {:14} {:9.1f} ms\n", name_of(which),
               static_cast<double>(trace.own_ns(which)) * 1e-6);
  }
  return 0;
}
