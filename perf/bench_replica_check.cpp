// What a comparison of replicas costs beside a training step: steps and checks by turns, data
// parallel ranks as threads. bench_replica_check [RANKS] [HIDDEN] [PAIRS].
#include <fmt/format.h>

#include "parallel/data/replica_check.hpp"
#include "perf/one_rank.hpp"

using namespace weft;
using namespace weft::perf;

namespace {

Plan vit(index_t num_ranks, index_t hidden, index_t num_pairs) {
  Plan plan;
  plan.task.train = 4000;
  plan.task.validation = 1000;
  plan.model.kind = "vit";
  plan.model.layers = 6;
  plan.model.hidden = hidden;
  plan.model.heads = 8;
  plan.batch.global = 64;
  plan.batch.micro = 16;
  plan.optimizer.lr = 1e-3;
  plan.layout.dp = num_ranks;
  plan.run.steps = num_pairs + 2;
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  index_t num_ranks = 2, hidden = 192, num_pairs = 15;
  read_arguments(argc, argv, {&num_ranks, &hidden, &num_pairs});
  const KokkosSession kokkos(1);
  const TrainingData data = open_data();
  const Plan plan = vit(num_ranks, hidden, num_pairs);
  run_ranks(static_cast<int>(num_ranks), [&](Transport& transport) {
    Trainer trainer(plan, data, transport);
    std::vector<double> steps, checks, ratios;
    for (index_t i = 0; i < 2; ++i) trainer.step();
    for (index_t i = 0; i < num_pairs; ++i) {
      steps.push_back(seconds_of([&] { trainer.step(); }));
      trainer.mesh().world().barrier();
      checks.push_back(seconds_of([&] {
        require(replica_fault(trainer.context().device, trainer.parameters(), trainer.optimizer(),
                              trainer.mesh())
                    .empty(),
                ExitCode::failed, "replicas differ");
      }));
      ratios.push_back(checks.back() / steps.back());
    }
    if (transport.rank() != 0) return;
    const double bytes =
        3.0 * sizeof(float) * static_cast<double>(trainer.parameters().held_elements());
    fmt::print(
        "{} ranks, {:.1f} MB of state each: step {:.1f} ms, check {:.2f} ms ({:.1f} GB/s), {:.3f} "
        "% of a step; every 100 steps {:.4f} %\n",
        num_ranks, 1e-6 * bytes, 1e3 * median(steps), 1e3 * median(checks),
        1e-9 * bytes / median(checks), 100 * median(ratios), median(ratios));
  });
}
