// The bubble of a pipeline against theory: stages whose work is to sleep, so that it is balanced
// and any number of them fits on any number of cores. Ranks are stages:
//
//   apps/launch.sh 4 build/release/perf/bench_bubble [WORK_MS [STEPS [KIB [PARTS]]]]
//
// WORK_MS: a forward, and a backward. KIB: size of what goes between stages. PARTS: of each
// computation; between two of them it moves what is under way, as a stage can between its layers.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/kokkos_session.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"
#include "parallel/pipeline/runner.hpp"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Sizes {
  double work_ms = 20;
  int num_steps = 7;
  index_t kib = 64;
  int num_parts = 1;

  Shape boundary() const { return {kib, 256}; }  // f32: 1 KiB a row
};

// Sleeps, and adds up for how long it really did.
class SleepingStage final : public pipeline::StageWork {
 public:
  SleepingStage(Context& context, Communicator& pp, const Sizes& sizes)
      : context_(context), pp_(pp), sizes_(sizes) {}

  Tensor forward(index_t, Tensor) override { return work(pp_.rank() < pp_.size() - 1); }
  Tensor backward(index_t, Tensor) override { return work(pp_.rank() > 0); }
  double busy_s() const { return busy_s_; }
  Shape boundary() const { return sizes_.boundary(); }

 private:
  Tensor work(bool has_result) {
    const auto begin = Clock::now();
    const std::chrono::duration<double, std::milli> part(sizes_.work_ms / sizes_.num_parts);
    for (int i = 0; i < sizes_.num_parts; ++i) {
      if (i > 0) pp_.progress()->step_all();
      std::this_thread::sleep_for(part);
    }
    busy_s_ += seconds_since(begin);
    return has_result ? Tensor(context_.arena, MemoryKind::activations, sizes_.boundary())
                      : Tensor();
  }

  Context& context_;
  Communicator& pp_;
  Sizes sizes_;
  double busy_s_ = 0;
};

struct Fractions {  // of the stages' whole time
  double idle = 0;
  double traced = 0;  // as Activity::bubble: the waits before a stage's last action
};

// Collective. One step of all stages, from a common start to the end of the last one.
Fractions step(Context& context, Communicator& pp, pipeline::Runner& runner, SleepingStage& work) {
  pp.barrier();
  const auto begin = Clock::now();
  const double busy_before = work.busy_s();
  const std::int64_t traced_before = context.trace.own_ns(Activity::bubble);
  runner.run(work, work.boundary());
  const double busy = work.busy_s() - busy_before;
  const double traced =
      static_cast<double>(context.trace.own_ns(Activity::bubble) - traced_before) * 1e-9;
  pp.barrier();
  double sums[3] = {busy, traced, seconds_since(begin)};
  pp.start({"bench.sums", AllReduce{Precision::f64, Order::any, 0, 3, {sums}, sums}}).wait();
  return {1.0 - sums[0] / sums[2], sums[1] / sums[2]};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_row(const char* name, index_t m, int p, const std::vector<Fractions>& steps) {
  std::vector<double> idle, traced;
  for (const Fractions& fractions : steps) {
    idle.push_back(100 * fractions.idle);
    traced.push_back(100 * fractions.traced);
  }
  const double ideal = 100.0 * (p - 1) / static_cast<double>(m + p - 1);
  const auto [least, most] = std::minmax_element(idle.begin(), idle.end());
  fmt::print("{:>6} {:>4} {:>8.2f}% {:>8.2f}% {:>+8.2f} {:>7.2f} - {:.2f}% {:>9.2f}%\n", name, m,
             ideal, median(idle), median(idle) - ideal, *least, *most, median(traced));
  std::fflush(stdout);
}

void run(Transport& transport, const Sizes& sizes) {
  const int p = transport.size();
  Context context(1, {});
  Mesh mesh(transport, &context.trace, {{"pp", p}}, "pp");
  Communicator& pp = mesh.axis("pp");
  if (pp.rank() == 0) {
    fmt::print(
        "{} stages over {}, {:.0f} ms a forward and a backward in {} parts, {} KiB between stages, "
        "{} steps\n{:>6} {:>4} {:>9} {:>9} {:>8} {:>16} {:>10}\n",
        p, transport.name(), sizes.work_ms, sizes.num_parts, sizes.kib, sizes.num_steps, "", "m",
        "theory", "measured", "points", "spread", "in waits");
  }
  for (const index_t m : {index_t{1}, index_t{4}, index_t{8}, index_t{16}}) {
    SleepingStage work(context, pp, sizes);
    pipeline::Runner gpipe(context, pp, pipeline::lower(pipeline::gpipe(p, m)));
    pipeline::Runner one_f_one_b(context, pp, pipeline::lower(pipeline::one_f_one_b(p, m)));
    std::vector<Fractions> of_gpipe, of_1f1b;
    for (int i = 0; i < sizes.num_steps + 1;
         ++i) {  // by turns: the machine's moods meet both alike
      const Fractions first = step(context, pp, gpipe, work);
      const Fractions second = step(context, pp, one_f_one_b, work);
      if (i == 0) continue;  // first touch of the memory
      of_gpipe.push_back(first);
      of_1f1b.push_back(second);
    }
    if (pp.rank() > 0) continue;
    print_row("gpipe", m, p, of_gpipe);
    print_row("1f1b", m, p, of_1f1b);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.work_ms = std::atof(argv[1]);
  if (argc > 2) sizes.num_steps = std::atoi(argv[2]);
  if (argc > 3) sizes.kib = std::atol(argv[3]);
  if (argc > 4) sizes.num_parts = std::atoi(argv[4]);
  const auto session = make_session(&argc, &argv);
  const auto transport = make_transport("mpi", *session);
  const KokkosSession kokkos(1);
  try {
    run(*transport, sizes);
  } catch (const std::exception& error) {
    session->abort(ExitCode::failed, error.what());
  }
  return 0;
}
