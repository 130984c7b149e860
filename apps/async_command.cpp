#include "apps/async_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "apps/agreement.hpp"
#include "apps/assemble.hpp"
#include "apps/async_record.hpp"
#include "apps/async_replay.hpp"
#include "apps/async_worker.hpp"
#include "apps/injected_delay.hpp"
#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"
#include "apps/metrics_json.hpp"
#include "apps/progress_line.hpp"
#include "apps/rank_figures.hpp"
#include "apps/skipped_rows.hpp"
#include "apps/step_statistics.hpp"
#include "core/kokkos_session.hpp"
#include "io/plan_file.hpp"
#include "io/run_log.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class AsyncJob {
 public:
  AsyncJob(const AsyncOptions& options, Session& session, std::ostream& text, std::ostream& out)
      : options_(options),
        text_(text),
        out_(out),
        session_(session),
        start_(session),
        progress_(text, isatty(STDERR_FILENO) != 0) {}

  int run() {
    using Place = InjectedDelay::Place;
    read_plan();
    const index_t rank = session_.rank();
    const std::unique_ptr<Transport> transport =
        with_delay(start_.open_transport(plan_), delay_of(delays_, rank, Place::link));
    data_ = start_.open_data(options_.inputs, plan_);
    data_.samples =
        with_delay(data_.samples, delay_of(delays_, rank, Place::data), worker_plan_.batch.global);
    agree(start_.world(), "run folder", [&] { open_run_folder(); });
    const KokkosSession kokkos(static_cast<int>(plan_.layout.threads));
    std::optional<AsyncWorker> worker;
    std::optional<LoneTrainer> owner;  // rank 0: of the values
    agree(start_.world(), "model", [&] {
      worker.emplace(worker_plan_, data_);
      if (is_first()) owner.emplace(worker_plan_, data_);
    });
    if (plan_.is_exact())
      require_equal(start_.world(), "the arithmetic fingerprint (libraries, CPU, build)",
                    (*worker).trainer()->fingerprint(),
                    "Exact mode needs equal machines and one build of weft");
    worker->trainer()->slow_down(delay_of(delays_, rank, Place::compute));
    say_start(*transport);
    Communicator workers(*transport, &worker->trace(), "workers", 0, all_ranks(*transport),
                         std::make_shared<Progress>(wait_options(plan_)));
    if (is_first())
      serve_and_work(workers, *worker, *owner);
    else
      work(workers, *worker);
    std::vector<RankFigures> ranks =
        gather_figures(start_.world(), *worker->trainer(), account_, samples_);
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].dp = static_cast<int>(i);
    agree(start_.world(), "report", [&] {
      if (is_first()) finish(*owner, ranks);
    });
    return 0;
  }

 private:
  bool is_first() const { return session_.rank() == 0; }

  void read_plan() {
    plan_ = start_.read_plan(options_.inputs, session_.size());
    agree(start_.world(), "arguments", [&] {
      worker_plan_ = worker_plan(plan_);
      const index_t n = plan_.layout.dp;
      max_staleness_ = options_.max_staleness.value_or(std::max<index_t>(2 * (n - 1), 0));
      StalenessBound(static_cast<int>(n), max_staleness_);  // its message, before any work
      delays_ = parse_delays(options_.delays, session_.size());
    });
  }

  void open_run_folder() {
    if (!is_first()) return;
    run_folder_ =
        options_.run_folder.empty() ? default_run_folder(plan_.name) : options_.run_folder;
    log_ = std::make_unique<RunLog>(run_folder_, to_toml(plan_));
    log_->write_split(split_record(data_.split));
    record_ = std::make_unique<AsyncRecord>(plan_.layout.dp, max_staleness_);
  }

  void say_start(const Transport& transport) {
    if (!is_first()) return;
    text_ << fmt::format(
        "weft async {}: {} workers over {}, {} updates of {} samples\n{}\nrun folder {}, data {}\n",
        plan_.name, plan_.layout.dp, transport.name(), worker_plan_.num_steps(),
        worker_plan_.batch.global, async_objective(max_staleness_), run_folder_,
        data_.samples->folder());
    say_leak(plan_.task, text_);
    say_skipped(data_.skipped, text_);
    text_ << std::flush;
  }

  // Computes task after task; `exchange` hands a gradient in and brings the next one.
  template <class Exchange>
  void work_on(AsyncWorker& worker, Exchange&& exchange) {
    std::vector<float> values(static_cast<std::size_t>(worker.trainer().num_values()));
    WorkerTask task = first_task(session_.rank(), worker_plan_.num_steps());
    std::int64_t waited_ns = 0;
    while (task.batch != WorkerTask::none) {
      const TimeAccount before = TimeAccount::at(worker.trace());
      GradientNote note = worker.compute(task);
      note.compute_ns -= std::exchange(served_ns_, 0);
      note.wait_ns = waited_ns;
      const std::int64_t begin_ns = worker.trace().now_ns();
      {
        const Trace::Span span(&worker.trace(), Activity::communication, "async.exchange");
        task = exchange(note, worker.gradient().data(), values.data());
      }
      waited_ns = worker.trace().now_ns() - begin_ns;
      worker.trainer().set_values(values.data());
      account_ += TimeAccount::at(worker.trace()) - before;
      samples_.add(worker.batch(), true);
    }
  }

  void work(Communicator& workers, AsyncWorker& worker) {
    UpdateClient client(workers, worker.trainer().num_values());
    work_on(worker, [&](const GradientNote& note, const float* gradient, float* values) {
      return client.exchange(note, gradient, values);
    });
  }

  void serve_and_work(Communicator& workers, AsyncWorker& worker, LoneTrainer& owner) {
    begin_ = last_ = Clock::now();
    UpdateServer server(
        workers, owner.num_values(), worker_plan_.num_steps(), max_staleness_,
        [&](const UpdateServer::Update& update, float* gradient) {
          const Trace::Span span(&worker.trace(), Activity::update, "async.update");
          log(update, owner.apply(update.note, gradient));
        },
        [&](float* to) { owner.get_values(to); });
    // The others are served while this rank computes, too.
    const auto serve = [&] {
      const std::int64_t begin_ns = worker.trace().now_ns();
      server.poll();
      served_ns_ += worker.trace().now_ns() - begin_ns;
    };
    worker.trainer()->watch_gradients(
        {.piece = [&](const Parameter&, index_t) { serve(); }, .token_blocks = serve});
    work_on(worker, [&](const GradientNote& note, const float* gradient, float* values) {
      return server.exchange(note, gradient, values);
    });
    server.finish();
    training_s_ = ms_since(begin_) * 1e-3;
  }

  void log(const UpdateServer::Update& update, const StepResult& result) {
    record_->add(update);
    const double since_last_ms = ms_since(last_);
    last_ = Clock::now();
    times_.add(since_last_ms, static_cast<double>(result.num_real));
    log_->add_step(update_record(update, result, since_last_ms, ms_since(begin_) * 1e-3));
    progress_.show([&] {
      return fmt::format("update {}/{}  loss {:.4f}  staleness {:.2f} on average, {} at most{}",
                         result.step + 1, worker_plan_.num_steps(), result.loss,
                         record_->mean_staleness(), record_->largest_staleness(),
                         leak_remark(plan_.task));
    });
  }

  void finish(LoneTrainer& owner, const std::vector<RankFigures>& ranks) {
    Json summary{{"plan", plan_.name},
                 {"objective", async_objective(max_staleness_)},
                 {"state_hash", owner->state_hash().text()},
                 {"loss_hash", owner->loss_hash().text()},
                 {"plan_hash", plan_fingerprint(plan_)},
                 {"steps", owner->steps_done()},
                 {"final_loss", owner->last_loss()},
                 {"training_s", training_s_},
                 {"step_ms", json_of(times_)},
                 {"samples_per_s", times_.samples_per_second()},
                 {"delays", options_.delays},
                 {"layout", layout_json(plan_)},
                 {"replicas", replicas_json(ranks)},
                 {"ranks", ranks_json(ranks)},
                 {"fingerprint", owner->fingerprint()}};
    mark_leak(plan_.task, summary);
    mark_skipped(data_.skipped, summary);
    summary.update(record_->json());
    log_->write_summary(summary.dump(2));  // an evaluation may take long
    if (!data_.split.validation.empty()) {
      const Evaluation evaluation = owner->evaluate(EvalSplit::validation);
      const Json metrics =
          metrics_json(evaluation, data_.samples->class_names(), best_threshold(evaluation));
      Json line{{"step", owner->steps_done()}, {"split", name_of(EvalSplit::validation)}};
      line.update(metrics);
      line["samples"] = evaluation.samples;
      mark_leak(plan_.task, line);
      log_->add_evaluation(line.dump());
      for (const auto& [name, value] : metrics.items())
        summary["metrics"]["validation_" + name] = value;
    }
    log_->write_summary(summary.dump(2));
    print(summary);
    if (options_.json) out_ << summary.dump() << std::endl;
  }

  void print(const Json& summary) {
    const Json& staleness = summary.at("staleness");
    text_ << fmt::format("{} updates in {:.2f} s, {:.0f} samples/s; {}\n",
                         summary.at("updates").get<index_t>(), training_s_,
                         summary.at("samples_per_s").get<double>(),
                         summary.at("objective").get<std::string>());
    text_ << fmt::format(
        "staleness {:.2f} on average, {} at most; updates with staleness 0, 1, ..: ",
        staleness.at("mean").get<double>(), staleness.at("largest").get<index_t>());
    text_ << staleness.at("updates").dump() << '\n';
    for (const Json& worker : summary.at("workers")) {
      text_ << fmt::format("worker {}: {} updates, {:.2f} ms to compute one, {:.2f} ms waiting\n",
                           worker.at("worker").get<index_t>(), worker.at("updates").get<index_t>(),
                           worker.at("compute_ms").get<double>(),
                           worker.at("wait_ms").get<double>());
    }
    if (summary.contains("metrics"))
      text_ << fmt::format("validation loss {:.4f}{}\n",
                           summary.at("metrics").at("validation_loss").get<double>(),
                           leak_remark(plan_.task));
    text_ << fmt::format("state {}\nsummary {}/summary.json\n",
                         summary.at("state_hash").get<std::string>(), run_folder_)
          << std::flush;
  }

  AsyncOptions options_;
  std::ostream& text_;
  std::ostream& out_;
  Session& session_;
  RunStart start_;
  ProgressLine progress_;
  Plan plan_, worker_plan_;
  index_t max_staleness_ = 0;
  std::vector<InjectedDelay> delays_;
  TrainingData data_;
  TimeAccount account_;  // of this worker's tasks
  SampleRecord samples_;
  std::string run_folder_;  // rank 0 only, as all that follows
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<AsyncRecord> record_;
  Clock::time_point begin_, last_;  // of the training, of the update before
  std::int64_t served_ns_ = 0;      // within the task under way
  double training_s_ = 0.0;
  StepStatistics times_{0};  // from one update to the next
};

}  // namespace

int train_async(const AsyncOptions& options, Session& session, std::ostream& text,
                std::ostream& out) {
  if (!options.replay.empty()) {
    require(options.run_folder.empty() && options.delays.empty() && !options.max_staleness,
            ExitCode::usage,
            "--replay: expected no --run, --delay or --max-staleness beside it: what was recorded "
            "is repeated, and nothing is written");
    return replay_async(options.inputs, options.replay, session, options.json, text, out);
  }
  return AsyncJob(options, session, text, out).run();
}

}  // namespace weft
