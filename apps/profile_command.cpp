#include "apps/profile_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "apps/agreement.hpp"
#include "apps/injected_delay.hpp"
#include "apps/profile_report.hpp"
#include "apps/progress_line.hpp"
#include "apps/run_trace.hpp"
#include "apps/step_statistics.hpp"
#include "apps/trainer.hpp"
#include "core/kokkos_session.hpp"
#include "parallel/comm/gather_values.hpp"
#include "parallel/comm/rank_clock.hpp"

namespace weft {

namespace {

// Two readings of how far this rank's clock is ahead of rank 0's, before and after: between them it
// is taken to drift evenly.
class CommonClock {
 public:
  void read(Communicator& world, const Trace& trace) {
    const std::int64_t origin_ns = trace.begin().time_since_epoch() / std::chrono::nanoseconds(1);
    readings_.push_back({trace.now_ns(), read_clock(world).ahead_ns - origin_ns});
  }
  // What to take from a time of the trace to have it on rank 0's clock.
  std::int64_t ahead_ns(std::int64_t at_ns) const {
    const auto [first_at, first] = readings_.front();
    const auto [last_at, last] = readings_.back();
    if (last_at == first_at) return first;
    const double part =
        static_cast<double>(at_ns - first_at) / static_cast<double>(last_at - first_at);
    return first + static_cast<std::int64_t>(part * static_cast<double>(last - first));
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> readings_;  // when, ahead
};

class ProfileJob {
 public:
  ProfileJob(const ProfileOptions& options, Session& session, std::ostream& text, std::ostream& out)
      : options_(options),
        text_(text),
        out_(out),
        session_(session),
        start_(session),
        progress_(text, isatty(STDERR_FILENO) != 0) {}

  int run() {
    read_plan();
    using Place = InjectedDelay::Place;
    const index_t rank = session_.rank();
    const std::unique_ptr<Transport> transport =
        with_delay(start_.open_transport(plan_), delay_of(delays_, rank, Place::link));
    TrainingData data = start_.open_data(options_.inputs, plan_);
    skipped_rows_ = data.skipped;
    const index_t read_a_step = std::max<index_t>(1, plan_.batch.global / plan_.layout.dp);
    data.samples = with_delay(data.samples, delay_of(delays_, rank, Place::data), read_a_step);
    const KokkosSession kokkos(static_cast<int>(plan_.layout.threads));
    Trainer trainer(plan_, data, *transport);
    trainer.slow_down(delay_of(delays_, rank, Place::compute));
    run_steps(trainer);
    report(trainer, std::string(transport->name()));
    return 0;
  }

 private:
  bool is_first() const { return session_.rank() == 0; }

  void read_plan() {
    agree(start_.world(), "arguments", [&] { check_options(); });
    RunInputs inputs = options_.inputs;
    inputs.overrides.push_back(fmt::format("run.steps={}", options_.warm_up + options_.steps));
    plan_ = start_.read_plan(inputs, session_.size());
    const bool measures = std::exchange(plan_.layout.measures_stages, false);
    if (measures && plan_.layout.pp > 1 && is_first())
      text_ << "layout.stages = \"measured\": the even split is looked at; name another as a list\n";
    agree(start_.world(), "delays",
          [&] { delays_ = parse_delays(options_.delays, session_.size()); });
  }

  void check_options() const {
    require(options_.steps >= 1, ExitCode::usage,
            fmt::format("--steps: expected 1 or more; found {}", options_.steps));
    require(options_.warm_up >= 0, ExitCode::usage,
            fmt::format("--warmup: expected 0 or more; found {}", options_.warm_up));
    if (!options_.trace_path.empty()) check_trace_options({.path = options_.trace_path});
  }

  void run_steps(Trainer& trainer) {
    Trace& trace = trainer.context().trace;
    const index_t num_steps = options_.warm_up + options_.steps;
    for (index_t i = 0; i < num_steps; ++i) {
      if (i == options_.warm_up) {
        // Clocks are read rank by rank: without the barrier the first step waits for the last one.
        clock_.read(trainer.mesh().world(), trace);
        trainer.mesh().world().barrier();
        trace.record_events(true);
      }
      const std::int64_t begin_ns = trace.now_ns();
      trainer.step();
      const std::int64_t end_ns = trace.now_ns();
      times_.add(static_cast<double>(end_ns - begin_ns) * 1e-6, 0.0);
      if (is_first())
        progress_.show([&] {
          return fmt::format("step {}/{}{}  {:.1f} ms", i + 1, num_steps,
                             i < options_.warm_up ? " (warm-up)" : "", times_.median_ms());
        });
      if (i < options_.warm_up) continue;
      steps_.push_back({begin_ns, end_ns});
      trace.add_interval({.row = "steps", .name = "step", .index = i + 1}, begin_ns, end_ns);
    }
    trace.record_events(false);
    clock_.read(trainer.mesh().world(), trace);
  }

  // Collective over each group: all members' arrivals, of which each keeps the last one's.
  std::vector<GroupArrivals> meet(Trainer& trainer, const std::vector<OwnTime>& times) {
    const Trace& trace = trainer.context().trace;
    Mesh& mesh = trainer.mesh();
    std::vector<GroupArrivals> groups;
    for (std::size_t g = 0; g < profile_groups.size(); ++g) {
      Communicator& group =
          profile_groups[g] == "world" ? mesh.world() : mesh.axis(profile_groups[g]);
      std::vector<Arrival> mine = arrivals_of(trace, times, profile_groups[g], 0);
      for (Arrival& arrival : mine) arrival.at_ns -= clock_.ahead_ns(arrival.at_ns);
      groups.push_back({static_cast<int>(g), group.members(),
                        last_arrivals(all_gather_values(group, "profile.arrivals", mine))});
      for (LastArrival& last : groups.back().last)
        last.at_ns += clock_.ahead_ns(own_ns(last.at_ns));
    }
    return groups;
  }

  // Near enough to look the difference of the clocks up.
  std::int64_t own_ns(std::int64_t common_ns) const {
    return common_ns + clock_.ahead_ns(steps_.front().begin);
  }

  std::vector<BucketTimes> buckets_of(const Trace& trace) const {
    std::vector<BucketTimes> buckets;
    std::map<std::string_view, std::size_t> index;
    for (const Trace::Interval& interval : trace.intervals()) {
      const std::string_view row = trace.names()[interval.row];
      const std::string_view name = trace.names()[interval.name];
      const auto step = std::find_if(steps_.begin(), steps_.end(), [&](Range one) {
        return one.begin <= interval.begin_ns && interval.begin_ns < one.end;
      });
      if (step == steps_.end()) continue;
      if (row == "ready") {
        const auto [entry, is_new] = index.try_emplace(name, buckets.size());
        if (is_new) buckets.push_back({.name = std::string(name)});
        BucketTimes& bucket = buckets[entry->second];
        bucket.ready_ns += static_cast<double>(interval.begin_ns - step->begin);
        bucket.launched_ns += static_cast<double>(interval.end_ns - step->begin);
        ++bucket.num_steps;
      } else if (const auto entry = index.find(name); row == "dp" && entry != index.end()) {
        buckets[entry->second].completed_ns += static_cast<double>(interval.end_ns - step->begin);
      }
    }
    for (BucketTimes& bucket : buckets) {
      const auto count = static_cast<double>(bucket.num_steps);
      bucket.ready_ns /= count, bucket.launched_ns /= count, bucket.completed_ns /= count;
    }
    return buckets;
  }

  double backward_end_ns(const std::vector<OwnTime>& times) const {
    double sum = 0.0;
    auto time = times.begin();
    for (const Range step : steps_) {
      std::int64_t end_ns = step.begin;
      for (; time != times.end() && time->begin_ns < step.end; ++time)
        if (time->activity == Activity::backward) end_ns = time->end_ns;
      sum += static_cast<double>(end_ns - step.begin);
    }
    return sum / static_cast<double>(steps_.size());
  }

  ProfiledRank profile_of(Trainer& trainer) {
    const Trace& trace = trainer.context().trace;
    const std::vector<OwnTime> times = own_times(trace.events());
    const std::vector<GroupArrivals> groups = meet(trainer, times);
    const Arena& arena = trainer.context().arena;
    ProfiledRank rank{.tp = trainer.mesh().rank("tp"),
                      .dp = trainer.mesh().rank("dp"),
                      .pp = trainer.mesh().rank("pp"),
                      .account = account_of(trace, times, steps_, groups),
                      .buckets = buckets_of(trace),
                      .backward_end_ns = backward_end_ns(times),
                      .peak = arena.peak(),
                      .dropped_events = trace.num_dropped()};
    for (std::size_t i = 0; i < rank.peak_by_phase.size(); ++i)
      rank.peak_by_phase[i] = arena.peak_of(static_cast<Phase>(i));
    return rank;
  }

  void report(Trainer& trainer, const std::string& transport) {
    const std::string mine = to_bytes(profile_of(trainer));
    const std::vector<std::string> all =
        trainer.mesh().world().gather_strings("profile.ranks", 0, mine);
    const Hash128 state_hash = trainer.state_hash();
    std::string fault;
    if (!options_.trace_path.empty()) {
      const TraceOptions trace_options{.path = options_.trace_path};
      RunTrace trace(trace_options, trainer.context().trace, 0);
      fault = trace.write(start_.world(), trainer.mesh(), options_.trace_path);
    }
    agree(start_.world(), "profile", [&] {
      require(fault.empty(), ExitCode::failed, "the trace could not be written: " + fault);
      if (!is_first()) return;
      Profile profile{.plan = plan_,
                      .transport = transport,
                      .warm_up = options_.warm_up,
                      .delays = options_.delays,
                      .state_hash = state_hash,
                      .loss_hash = trainer.loss_hash(),
                      .skipped_rows = skipped_rows_,
                      .ranks = {}};
      for (const std::string& bytes : all) profile.ranks.push_back(from_bytes(bytes));
      print(profile, text_);
      if (!options_.trace_path.empty()) text_ << "trace " << options_.trace_path << '\n';
      text_ << std::flush;
      if (options_.json) out_ << json_of(profile).dump() << std::endl;
    });
  }

  ProfileOptions options_;
  std::ostream& text_;
  std::ostream& out_;
  Session& session_;
  RunStart start_;
  ProgressLine progress_;
  Plan plan_;
  std::vector<InjectedDelay> delays_;
  std::vector<SkippedRows> skipped_rows_;
  CommonClock clock_;
  StepStatistics times_;
  std::vector<Range> steps_;  // the measured ones, on the trace's clock
};

}  // namespace

int profile(const ProfileOptions& options, Session& session, std::ostream& text,
            std::ostream& out) {
  ProfileJob(options, session, text, out).run();
  return 0;
}

}  // namespace weft
