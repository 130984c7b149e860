#include "apps/layout_run.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "apps/metrics_json.hpp"
#include "apps/time_account.hpp"
#include "apps/trainer.hpp"
#include "core/error.hpp"

namespace weft {

namespace {

// What a trainer has counted up to some moment.
struct Account {
  explicit Account(Trainer& trainer)
      : time(TimeAccount::at(trainer.context().trace)), bytes_sent(trainer.bytes_sent()) {}

  TimeAccount time;
  std::uint64_t bytes_sent;
};

// The figures of one rank, as bytes.
struct RankFigures {
  Hash128 state_hash, loss_hash;
  std::uint64_t peak_bytes;
  double bytes_per_step;
  std::array<double, num_activities> activities;  // part of the rank's measured time
  std::int64_t buckets_ns, exposed_ns;            // TransferStatistics, over the measured steps
};

void add_account(const Account& begin, const Account& end, index_t num_steps,
                 RankFigures& figures) {
  figures.bytes_per_step =
      static_cast<double>(end.bytes_sent - begin.bytes_sent) / static_cast<double>(num_steps);
  const TimeAccount time = end.time - begin.time;
  for (std::size_t i = 0; i < figures.activities.size(); ++i) {
    figures.activities[i] = static_cast<double>(time.own_ns[i]) / static_cast<double>(time.wall_ns);
  }
}

}  // namespace

RankRun run_layout(const Plan& plan, const TrainingData& data, Transport& transport,
                   index_t num_warm_up, bool evaluates,
                   const std::function<void(index_t step)>& on_step) {
  assert(num_warm_up < plan.num_steps());
  Trainer trainer(plan, data, transport);
  RankRun run;
  run.transport = transport.name();
  RankFigures figures{};
  const auto step = [&] {
    const std::int64_t begin_ns = trainer.context().trace.now_ns();
    const StepResult result = trainer.step();
    const auto step_ns = static_cast<double>(trainer.context().trace.now_ns() - begin_ns);
    {
      const Trace::Span span(&trainer.context().trace, Activity::output, "progress");
      on_step(result.step);
    }
    if (result.step < num_warm_up) return;
    run.steps.add(1e-6 * step_ns, static_cast<double>(result.num_real));
    figures.buckets_ns += trainer.grad_sync().statistics().under_way_ns;
    figures.exposed_ns += trainer.grad_sync().statistics().exposed_ns;
  };
  for (index_t i = 0; i < num_warm_up; ++i) step();
  const Account begin(trainer);
  const index_t num_measured = plan.num_steps() - num_warm_up;
  for (index_t i = 0; i < num_measured; ++i) step();
  add_account(begin, Account(trainer), num_measured, figures);
  figures.peak_bytes = trainer.context().arena.peak().total;
  if (evaluates) {
    const Evaluation evaluation = trainer.evaluate(EvalSplit::validation);
    run.metrics =
        metrics_json(evaluation, data.samples->class_names(), best_threshold(evaluation));
  }
  figures.loss_hash = trainer.loss_hash();
  figures.state_hash = trainer.state_hash();
  run.figures.assign(reinterpret_cast<const char*>(&figures), sizeof(figures));
  return run;
}

LayoutRun combine(const std::vector<std::string_view>& figures, RankRun mine) {
  LayoutRun run;
  run.steps = std::move(mine.steps);
  run.transport = std::move(mine.transport);
  run.metrics = std::move(mine.metrics);
  std::int64_t buckets_ns = 0, exposed_ns = 0;
  for (std::size_t rank = 0; rank < figures.size(); ++rank) {
    RankFigures one{};
    require(figures[rank].size() == sizeof(one), ExitCode::failed,
            "rank " + std::to_string(rank) + " sent " + std::to_string(figures[rank].size()) +
                " bytes of figures where " + std::to_string(sizeof(one)) +
                " are expected: start all ranks with the same program");
    std::memcpy(&one, figures[rank].data(), sizeof(one));
    if (rank == 0) {  // the same on all
      run.state_hash = one.state_hash;
      run.loss_hash = one.loss_hash;
    }
    run.peak_bytes = std::max(run.peak_bytes, one.peak_bytes);
    run.bytes_per_step += one.bytes_per_step;
    for (std::size_t i = 0; i < run.activities.size(); ++i) {
      run.activities[i] += one.activities[i] / static_cast<double>(figures.size());
    }
    buckets_ns += one.buckets_ns;
    exposed_ns += one.exposed_ns;
  }
  if (buckets_ns > 0) {
    run.hidden_share = 1.0 - static_cast<double>(exposed_ns) / static_cast<double>(buckets_ns);
  }
  return run;
}

}  // namespace weft
