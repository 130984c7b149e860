// What measuring costs a training step: spans that are accounted for in every run, and recorded
// ones, as with --trace. Recorded and other steps alternate in one run; a span is timed by itself.
// bench_measuring PLAN DATA [STEPS]: one rank.
#include <fmt/format.h>

#include <cstdio>

#include "io/plan_file.hpp"
#include "perf/one_rank.hpp"

using namespace weft;
using namespace weft::perf;

namespace {

// Nanoseconds of one span that is only accounted for, or recorded.
double span_ns(bool recorded) {
  constexpr index_t count = 200'000;
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    Trace trace;
    trace.record_events(recorded);
    times.push_back(1e9 / count * seconds_of([&] {
                      for (index_t k = 0; k < count; ++k)
                        const Trace::Span span(&trace, Activity::forward, "block.1.up.forward");
                    }));
  }
  return median(times);
}

void measure(const Plan& plan, const std::string& folder, index_t num_pairs) {
  const KokkosSession kokkos(1);
  const TrainingData data = open_training_data(plan.task, folder);
  const LocalWorld world(1);
  const auto transport = world.make_transport(0);
  Trainer trainer(plan, data, *transport);
  Trace& trace = trainer.context().trace;
  for (int i = 0; i < 20; ++i) trainer.step();
  std::vector<double> ratios, steps, waits;
  const auto step = [&](bool recorded) {
    trace.record_events(recorded);
    const std::int64_t wait_ns = trace.own_ns(Activity::data_wait);
    const double s = seconds_of([&] { trainer.step(); });
    waits.push_back(1e-9 * static_cast<double>(trace.own_ns(Activity::data_wait) - wait_ns) / s);
    return s;
  };
  for (index_t i = 0; i < num_pairs; ++i) {
    const bool recorded_first = i % 2 == 0;
    const double first = step(recorded_first), second = step(!recorded_first);
    ratios.push_back(recorded_first ? first / second : second / first);
    steps.push_back(recorded_first ? second : first);
  }
  const auto spans = static_cast<double>(trace.events().size() + trace.intervals().size()) /
                     static_cast<double>(num_pairs);
  const double ns = span_ns(false), recorded_ns = span_ns(true), step_ns = 1e9 * median(steps);
  std::sort(ratios.begin(), ratios.end());
  const auto n = ratios.size();
  fmt::print("{}: step {:.2f} ms, {:.0f} spans\n", plan.name, 1e-6 * step_ns, spans);
  fmt::print("  accounting: {:.0f} ns a span, {:.3f} % of a step\n", ns,
             100 * spans * ns / step_ns);
  fmt::print(
      "  recording:  {:.0f} ns a span, {:.3f} % of a step; {} pairs of steps: {:+.2f} % "
      "(middle half {:+.2f} to {:+.2f})\n",
      recorded_ns, 100 * spans * recorded_ns / step_ns, n, 100 * (median(ratios) - 1),
      100 * (ratios[n / 4] - 1), 100 * (ratios[3 * n / 4] - 1));
  fmt::print("  data wait:  {:.3f} % of a step, median\n", 100 * median(waits));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "bench_measuring PLAN DATA [STEPS]: how many pairs of steps\n");
    return 2;
  }
  index_t num_pairs = 100;
  if (argc > 3) num_pairs = std::atol(argv[3]);
  const Plan plan =
      load_plan(argv[1], {fmt::format("run.steps={}", 20 + 2 * num_pairs), "layout.tp=1"});
  measure(plan, argv[2], num_pairs);
}
