// Stages split by measured times against every split there is. Stages whose work is to sleep, so
// that any number of them fits on any number of cores; one has twice the even stages' work, another
// one's blocks take longer. Ranks are stages:
//
//   apps/launch.sh 4 build/release/perf/bench_stage_split [BLOCK_MS [BLOCKS [MICROBATCHES
//   [ROUNDS]]]]
//
// BLOCK_MS: a block's forward pass; its backward pass takes twice as long. The even split is
// measured first, by the clock that times passes; from these times alone one split is chosen.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "core/kokkos_session.hpp"
#include "parallel/comm/gather_values.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"
#include "parallel/pipeline/runner.hpp"
#include "parallel/pipeline/stage_split.hpp"

namespace {

using namespace weft;
using Blocks = std::vector<index_t>;
using Clock = std::chrono::steady_clock;

struct Sizes {
  double block_ms = 3;
  index_t num_blocks = 8;
  index_t num_microbatches = 8;
  int num_rounds = 5;
};

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What stage s of p sleeps for: as much again as the even split's blocks on the second, and blocks
// of 1.3 times the length on the last.
pipeline::StageCost true_cost(const Sizes& sizes, int stage, int p) {
  const double even = static_cast<double>(sizes.num_blocks) / p * sizes.block_ms;
  const double fixed = stage == 1 ? even : 0.0;
  const double block = stage == p - 1 ? 1.3 * sizes.block_ms : sizes.block_ms;
  return {.fixed = {fixed, 2 * fixed}, .block = {block, 2 * block}};
}

class SleepingStage final : public pipeline::StageWork {
 public:
  SleepingStage(Context& context, Communicator& pp, const Shape& boundary, const Sizes& sizes)
      : context_(context),
        pp_(pp),
        boundary_(boundary),
        cost_(true_cost(sizes, pp.rank(), pp.size())) {}

  void set_blocks(index_t num_blocks) { num_blocks_ = num_blocks; }
  Tensor forward(index_t, Tensor) override {
    sleep(cost_.fixed.forward, cost_.block.forward, fixed_ms_.forward, block_ms_.forward);
    return result(pp_.rank() < pp_.size() - 1);
  }
  Tensor backward(index_t, Tensor) override {
    sleep(cost_.fixed.backward, cost_.block.backward, fixed_ms_.backward, block_ms_.backward);
    return result(pp_.rank() > 0);
  }
  // Of the passes since the last call, a microbatch.
  pipeline::StageCost take_measured(index_t passes) {
    const auto n = static_cast<double>(passes);
    const double blocks = n * static_cast<double>(num_blocks_);
    const pipeline::StageCost cost{
        .fixed = {fixed_ms_.forward / n, fixed_ms_.backward / n},
        .block = {block_ms_.forward / blocks, block_ms_.backward / blocks}};
    fixed_ms_ = block_ms_ = {};
    return cost;
  }
  const Shape& boundary() const { return boundary_; }

 private:
  void sleep(double fixed_ms, double block_ms, double& fixed_sum, double& block_sum) {
    const auto sleep_for = [](double ms) {
      const auto begin = Clock::now();
      if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
      return ms_since(begin);
    };
    fixed_sum += sleep_for(fixed_ms);
    block_sum += sleep_for(block_ms * static_cast<double>(num_blocks_));
  }
  Tensor result(bool is_sent) {
    return is_sent ? Tensor(context_.arena, MemoryKind::activations, boundary_) : Tensor();
  }

  Context& context_;
  Communicator& pp_;
  Shape boundary_;
  pipeline::StageCost cost_;
  index_t num_blocks_ = 1;
  pipeline::PassTime fixed_ms_, block_ms_;
};

std::vector<Blocks> all_splits(index_t num_stages, index_t num_blocks) {
  if (num_stages == 1) return {{num_blocks}};
  std::vector<Blocks> all;
  for (index_t first = 1; first <= num_blocks - num_stages + 1; ++first) {
    for (Blocks rest : all_splits(num_stages - 1, num_blocks - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

// Collective. A step of the split, from a common start to the end of the last stage.
double step_ms(Communicator& pp, pipeline::Runner& runner, SleepingStage& work,
               const Blocks& split) {
  work.set_blocks(split[static_cast<std::size_t>(pp.rank())]);
  pp.barrier();
  const auto begin = Clock::now();
  runner.run(work, work.boundary());
  pp.barrier();
  return ms_since(begin);
}

void run(Transport& transport, const Sizes& sizes) {
  const int p = transport.size();
  Context context(1, {});
  Mesh mesh(transport, &context.trace, {{"pp", p}}, "pp");
  Communicator& pp = mesh.axis("pp");
  const Shape boundary{64, 256};
  SleepingStage work(context, pp, boundary, sizes);
  const pipeline::Schedule schedule = pipeline::one_f_one_b(p, sizes.num_microbatches);
  pipeline::Runner runner(context, pp, pipeline::lower(schedule));

  Blocks even;
  for (int stage = 0; stage < p; ++stage)
    even.push_back(part_of(stage, p, sizes.num_blocks).size());
  step_ms(pp, runner, work, even);  // first touch
  work.take_measured(sizes.num_microbatches);
  double even_ms = 0.0;
  for (int i = 0; i < 3; ++i) even_ms += step_ms(pp, runner, work, even) / 3;
  std::vector<pipeline::StageCost> costs;
  for (const auto& one : all_gather_values(
           pp, "bench.costs", std::vector{work.take_measured(3 * sizes.num_microbatches)}))
    costs.push_back(one.front());
  const Blocks chosen = pipeline::refine_split(
      schedule, costs, pipeline::best_split(costs, sizes.num_blocks, sizes.num_microbatches));

  const std::vector<Blocks> splits = all_splits(p, sizes.num_blocks);
  std::vector<std::vector<double>> times(splits.size());
  for (int round = 0; round < sizes.num_rounds; ++round) {  // by turns
    for (std::size_t i = 0; i < splits.size(); ++i)
      times[i].push_back(step_ms(pp, runner, work, splits[i]));
  }
  if (pp.rank() > 0) return;
  std::size_t best = 0, mine = 0, at_even = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (median(times[i]) < median(times[best])) best = i;
    if (splits[i] == chosen) mine = i;
    if (splits[i] == even) at_even = i;
  }
  const auto text = [&](std::size_t i) {
    return fmt::format("[{}] {:.1f} ms", fmt::join(splits[i], ", "), median(times[i]));
  };
  const double length = pipeline::length_of(schedule, pipeline::times_of(costs, chosen));
  const double before = pipeline::length_of(schedule, pipeline::times_of(costs, even));
  fmt::print(
      "{} stages, {} blocks of {:.1f} + {:.1f} ms, {} microbatches, {} splits over {}\n"
      "even {}; measured {}; best of all {}\n"
      "measured over best {:.3f}; gain predicted {:.1f} %, achieved {:.1f} %\n",
      p, sizes.num_blocks, sizes.block_ms, 2 * sizes.block_ms, sizes.num_microbatches,
      splits.size(), transport.name(), text(at_even), text(mine), text(best),
      median(times[mine]) / median(times[best]), 100 * (1 - (even_ms - before + length) / even_ms),
      100 * (1 - median(times[mine]) / median(times[at_even])));
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.block_ms = std::atof(argv[1]);
  if (argc > 2) sizes.num_blocks = std::atol(argv[2]);
  if (argc > 3) sizes.num_microbatches = std::atol(argv[3]);
  if (argc > 4) sizes.num_rounds = std::atoi(argv[4]);
  const auto session = make_session(&argc, &argv);
  const KokkosSession kokkos(1);
  try {
    require(
        sizes.num_blocks >= session->size() && sizes.num_microbatches > 0 && sizes.num_rounds > 0,
        ExitCode::usage,
        "bench_stage_split: expected as many blocks as ranks, and 1 microbatch and round or more");
    run(*make_transport("mpi", *session), sizes);
  } catch (const std::exception& error) {
    session->abort(ExitCode::failed, error.what());
  }
  return 0;
}
