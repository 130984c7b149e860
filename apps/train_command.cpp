#include "apps/train_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/agreement.hpp"
#include "apps/async_record.hpp"
#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"
#include "apps/metrics_json.hpp"
#include "apps/progress_line.hpp"
#include "apps/rank_figures.hpp"
#include "apps/replica_watch.hpp"
#include "apps/run_checkpoints.hpp"
#include "apps/run_clock.hpp"
#include "apps/run_history.hpp"
#include "apps/run_summary.hpp"
#include "apps/stage_resplit.hpp"
#include "apps/step_statistics.hpp"
#include "apps/stop_text.hpp"
#include "apps/stop_vote.hpp"
#include "apps/tagged_values.hpp"
#include "apps/time_account.hpp"
#include "apps/trainer.hpp"
#include "core/drill_point.hpp"
#include "core/kokkos_session.hpp"
#include "io/plan_file.hpp"
#include "io/run_log.hpp"
#include "io/tensorboard_log.hpp"
#include "io/test_uses.hpp"
#include "parallel/comm/gather_values.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

class TrainJob {
 public:
  TrainJob(const TrainOptions& options, Session& session, const StopSignals& signals,
           std::ostream& text, std::ostream& out)
      : options_(options),
        signals_(signals),
        text_(text),
        out_(out),
        session_(session),
        start_(session),
        progress_(text, isatty(STDERR_FILENO) != 0) {}

  int run() {
    drill::arm(session_.rank());
    plan_ = start_.read_plan(options_.inputs, session_.size());
    transport_ = start_.open_transport(plan_);
    data_ = start_.open_data(options_.inputs, plan_);
    agree(start_.world(), "run folder", [&] { open_run_folder(); });
    const KokkosSession kokkos(static_cast<int>(plan_.layout.threads));
    Trainer trainer(plan_with_known_split(), data_, *transport_,
                    options_.resume ? Trainer::Start::restored : Trainer::Start::at_first_step);
    if (is_first()) say_start(trainer);
    // Ends before the trainer, whose state its thread may be reading.
    RunCheckpoints checkpoints(start_.world(), plan_, data_, run_folder_, history_, text_);
    checkpoints_ = &checkpoints;
    if (options_.resume) {
      first_step_ = checkpoints_->restore(trainer, *options_.resume);
      agree(start_.world(), "run log", [&] { reopen_run_log(); });
      checkpoints_->retire();
    }
    checkpoints.prepare(trainer);
    train(trainer);
    return finish(trainer);
  }

 private:
  bool is_first() const { return session_.rank() == 0; }
  bool is_stopped() const { return stopped_ != StopReason::none; }

  // Measured stages: a resumed run begins with the split that it had come to.
  Plan plan_with_known_split() {
    Plan plan = plan_;
    if (!plan.layout.measures_stages || !options_.resume) return plan;
    std::vector<index_t> known;
    agree(start_.world(), "split of stages", [&] {
      if (is_first()) known = split_of_events(RunLog::text_of(run_folder_, "events.jsonl"), plan_);
    });
    plan.layout.stages = values_of<index_t>(
        start_.world().broadcast_string("stages.known", 0, std::string(bytes_of(known))));
    return plan;
  }

  // Rank 0: nothing of a run that is there already is changed here.
  void open_run_folder() {
    require(!options_.resume || !options_.run_folder.empty(), ExitCode::usage,
            "--resume: which run? Name its folder with --run");
    if (options_.resume) {
      parse_resume(options_.resume->from);
      require(!is_async_run(options_.run_folder), ExitCode::usage,
              fmt::format("{} is an asynchronous run, which cannot be resumed; name another folder "
                          "with --run",
                          options_.run_folder));
    }
    if (options_.trace) check_trace_options(*options_.trace);
    RunCheckpoints::check_build(plan_, options_.resume.has_value());
    if (!is_first()) return;
    run_folder_ =
        options_.run_folder.empty() ? default_run_folder(plan_.name) : options_.run_folder;
    if (!options_.resume) {
      log_ = std::make_unique<RunLog>(run_folder_, to_toml(plan_));
      log_->write_split(split_record(data_.split));
      log_skipped_rows();
      open_tensorboard();
    }
    lease_ = RunCheckpoints::take_lease(plan_, options_.resume.has_value(), run_folder_, text_);
  }

  void reopen_run_log() {
    if (!is_first()) return;
    log_ = std::make_unique<RunLog>(RunLog::resume(run_folder_, to_toml(plan_), first_step_));
    log_->write_split(split_record(data_.split));
    history_.read(log_->text_of("run.jsonl"), log_->text_of("eval.jsonl"));
    log_->add_event(
        Json{{"resumed_from_step", first_step_}, {"layout", layout_json(plan_)}}.dump());
    log_skipped_rows();
    open_tensorboard();
  }

  // Also where an earlier part of the run began it.
  void open_tensorboard() {
    const std::string folder = run_folder_ + "/tensorboard";
    if (options_.tensorboard || TensorboardLog::is_in(folder))
      board_ = std::make_unique<TensorboardLog>(folder, first_step_);
  }

  void log_skipped_rows() {
    Json event = Json::object();
    mark_skipped(data_.skipped, event);
    if (!event.empty()) log_->add_event(event.dump());
  }

  void say_start(Trainer& trainer) {
    text_ << fmt::format(
        "weft train {}: {} ranks (tp {} x dp {} x pp {}) over {}, {}, {} steps of {} samples\n",
        plan_.name, session_.size(), plan_.layout.tp, plan_.layout.dp, plan_.layout.pp,
        transport_->name(), trainer.context().device.text(), trainer.num_steps(),
        plan_.batch.global);
    text_ << fmt::format("run folder {}, data {}\n", run_folder_, data_.samples->folder());
    say_leak(plan_.task, text_);
    say_skipped(data_.skipped, text_);
    text_ << std::flush;
  }

  void train(Trainer& trainer) {
    const Trace& trace = trainer.context().trace;
    const index_t last = trainer.num_steps() - 1;
    clock_.enter(RunPart::training);
    history_.begin();
    if (options_.trace)
      run_trace_.emplace(*options_.trace, trainer.context().trace, last + 1 - first_step_);
    StageResplit& resplit = resplit_.emplace(plan_, trainer);
    say_news();
    StopVote vote(trainer.mesh().world(), signals_,
                  static_cast<double>(plan_.run.time_limit.seconds));
    for (index_t step = first_step_; step <= last && !is_stopped(); ++step) {
      if (run_trace_) run_trace_->before_step(step - first_step_);
      const TimeAccount begin = TimeAccount::at(trace);
      vote.start(checkpoints_->longest_save_s(), checkpoints_->is_time_for_one(trainer));
      drill::reach_step(step + 1);
      const StepResult result = step_of(trainer, vote);
      const StopReason stop = vote.wait();
      if (step < last) stopped_ = stop;
      const TimeAccount spent = TimeAccount::at(trace) - begin;
      const double step_ms = ms_of(spent.wall_ns);
      if (step == first_step_) first_step_done_ms_ = ms_of(trace.now_ns());
      times_.add(step_ms, static_cast<double>(result.num_real));
      account_.add(spent);
      samples_.add(trainer.batch(), result.skipped.empty());
      history_.add_step(step_ms);
      if (is_first()) {
        const Trace::Span span(&trainer.context().trace, Activity::output, "run_log");
        StepRecord record = record_of(result, step_ms, ms_of(spent.of(Activity::data_wait)));
        if (!plan_.task.length_buckets.empty())
          record.more.emplace_back("tokens", trainer.batch().tokens_per_sample);
        log_step(record);
        say_skipped_step(result);
        progress_.show([&] { return progress_text(result, trainer); });
      }
      if (run_trace_) run_trace_->after_step(step - first_step_, step + 1);
      const Next next = is_stopped() ? Next::stop : step == last ? Next::end : Next::step;
      const bool is_asked_for = vote.is_save_asked_for();
      check_replicas(trainer, checkpoints_->is_due(trainer, next, is_asked_for));
      maybe_evaluate(trainer, step, step == last);
      maybe_save(trainer, next, is_asked_for);
      if (next == Next::step && resplit.after_step(step_ms)) split_again(trainer);
      say_news();
    }
    // A run that was complete when it was resumed.
    if (first_step_ > last) maybe_evaluate(trainer, last, true);
    clock_.enter(RunPart::finish);
  }

  StepRecord record_of(const StepResult& result, double step_ms, double data_wait_ms) const {
    StepRecord record{.step = result.step + 1,
                      .epoch = result.epoch,
                      .loss = result.loss,
                      .lr = result.learning_rate,
                      .grad_norm = result.gradient_norm,
                      .step_ms = step_ms,
                      .data_wait_ms = data_wait_ms,
                      .num_real = result.num_real,
                      .more = {{"accuracy", result.accuracy},
                               {"elapsed_s", history_.elapsed_s()},
                               {"skipped", result.skipped.empty() ? 0.0 : 1.0}}};
    if (!leak_mark(plan_.task).empty()) record.more.emplace_back(leak_key, 1.0);
    return record;
  }

  void log_step(const StepRecord& record) {
    log_->add_step(record);
    if (board_) board_->add(record.step, tagged(record));
  }

  // A fault that all ranks know of is no reason to lose the save under way, nor the vote's
  // messages.
  StepResult step_of(Trainer& trainer, StopVote& vote) {
    try {
      return trainer.step();
    } catch (const AgreedError&) {
      vote.wait();
      finish_saves(trainer);
      throw;
    }
  }

  void finish_saves(Trainer& trainer) {
    for (const SaveResult& saved : checkpoints_->finish(trainer)) say(saved);
  }

  void say_skipped_step(const StepResult& result) {
    if (result.skipped.empty()) return;
    log_->add_event(Json{{"skipped_step", result.step + 1}, {"why", result.skipped}}.dump());
    progress_.keep(
        fmt::format("weft: ALARM: step {} was skipped: {}", result.step + 1, result.skipped));
  }

  // Before a save copies or writes anything of the state.
  void check_replicas(Trainer& trainer, bool is_save_due) {
    const auto tell = [&](const std::string& fault) {
      if (is_first())
        log_->add_event(
            Json{{"replicas_differ_at_step", trainer.steps_done()}, {"fault", fault}}.dump());
    };
    try {
      replicas_.after_step(trainer, is_save_due, tell);
    } catch (const AgreedError&) {
      finish_saves(trainer);
      throw;
    }
  }

  void sync_logs() {
    if (!is_first()) return;
    log_->sync();
    if (board_) board_->sync();
  }

  void maybe_save(Trainer& trainer, Next next, bool is_asked_for) {
    const bool is_due = checkpoints_->is_due(trainer, next, is_asked_for);
    if (!is_due && !checkpoints_->is_saving()) return;
    const RunClock::Inside part(clock_, RunPart::checkpoint);
    // A checkpoint's steps are in the logs wherever the checkpoint is.
    if (is_due) sync_logs();
    const std::int64_t begin_ns = trainer.context().trace.now_ns();
    for (const SaveResult& saved : checkpoints_->after_step(trainer, next, is_asked_for))
      say(saved);
    if (run_trace_ && is_due) run_trace_->add("checkpoint", trainer.steps_done(), begin_ns);
  }

  // What a resume on another layout does, within the run: by way of a checkpoint, so that a kill
  // loses no step.
  void split_again(Trainer& trainer) {
    say_news();
    const RunClock::Inside part(clock_, RunPart::checkpoint);
    sync_logs();
    const Trace& trace = trainer.context().trace;
    const std::int64_t begin_ns = trace.now_ns();
    if (!checkpoints_->has_saved(trainer.steps_done())) check_replicas(trainer, true);
    for (const SaveResult& saved : checkpoints_->save_now(trainer)) say(saved);
    const bool is_saved = checkpoints_->has_intact(trainer.steps_done());
    if (is_saved) checkpoints_->split_again(trainer, resplit_->stages());
    resplit_->end(ms_of(trace.now_ns() - begin_ns),
                  is_saved ? "" : "the checkpoint that they need could not be saved and read back");
  }

  void say_news() {
    if (!is_first()) return;
    for (auto news = resplit_->take_news(); !news.event.empty(); news = resplit_->take_news()) {
      log_->add_event(news.event);
      progress_.keep(news.text);
    }
  }

  void say(const SaveResult& saved) {
    if (is_first()) progress_.keep(checkpoints_->describe(saved));
  }

  std::string progress_text(const StepResult& result, const Trainer& trainer) const {
    const double left_s =
        times_.median_ms() * 1e-3 * static_cast<double>(trainer.num_steps() - result.step - 1);
    return fmt::format(
        "step {}/{}  epoch {}  loss {:.4f}  accuracy {:.3f}{}  {:.1f} ms/step  {:.0f} samples/s  "
        "{:.0f} s left",
        result.step + 1, trainer.num_steps(), result.epoch, result.loss, result.accuracy,
        leak_remark(plan_.task), times_.median_ms(), times_.samples_per_second(), left_s);
  }

  void maybe_evaluate(Trainer& trainer, index_t step, bool is_last) {
    const index_t every = plan_.eval.every_epochs * trainer.steps_per_epoch();
    if (!is_last && (every == 0 || (step + 1) % every != 0)) return;
    const RunClock::Inside part(clock_, RunPart::evaluation);
    const std::int64_t begin_ns = trainer.context().trace.now_ns();
    evaluation_ = trainer.evaluate(EvalSplit::validation);
    const double ms = ms_of(trainer.context().trace.now_ns() - begin_ns);
    if (run_trace_) run_trace_->add("evaluation", step + 1, begin_ns);
    if (!is_first()) return;
    metrics_ = metrics_json(evaluation_, data_.samples->class_names(), best_threshold(evaluation_));
    Json line{{"step", step + 1}, {"split", name_of(EvalSplit::validation)}};
    line.update(metrics_);
    line.update(Json{{"samples", evaluation_.samples},
                     {"ms", ms},
                     {"epochs", static_cast<double>(step + 1) /
                                    static_cast<double>(trainer.steps_per_epoch())}});
    line.update(history_.stamp());
    mark_leak(plan_.task, line);
    log_->add_evaluation(line.dump());
    // A run that was complete when it was resumed has told of its last step.
    if (board_ && step + 1 > first_step_) board_->add(step + 1, tagged(line));
    history_.add_evaluation(line);
    progress_.keep(fmt::format(
        "step {}: validation loss {:.4f}, accuracy {}, macro F1 {} on {} samples{}", step + 1,
        evaluation_.loss, text_of(evaluation_.confusion.accuracy()),
        text_of(evaluation_.confusion.macro_f1()), evaluation_.samples, leak_remark(plan_.task)));
  }

  int finish(Trainer& trainer) {
    const Hash128 state = trainer.state_hash();
    const std::vector<RankFigures> ranks = gather_figures(
        start_.world(), trainer, account_.measured(times_.warm_up_steps()), samples_);
    const std::string trace_fault = write_trace(trainer);
    if (is_first()) {
      clock_.enter(RunPart::finish);
      const Json summary = summary_json({.plan = plan_,
                                         .trainer = trainer,
                                         .data = data_,
                                         .state = state,
                                         .ranks = ranks,
                                         .stopped = stopped_,
                                         .first_step = first_step_,
                                         .times = times_,
                                         .metrics = metrics_,
                                         .test_split_uses = count_test_uses(run_folder_),
                                         .history = history_,
                                         .clock = clock_,
                                         .first_step_done_ms = first_step_done_ms_,
                                         .checkpoints = checkpoints_->json(),
                                         .integrity = integrity_json(trainer),
                                         .stages = resplit_->json()});
      if (is_stopped()) {
        log_->add_event(
            Json{{"stopped_at_step", trainer.steps_done()}, {"reason", name_of(stopped_)}}.dump());
        text_ << stop_text_of(trainer);
      }
      log_->write_summary(summary.dump(2));
      print_summary(summary, log_->folder() + "/summary.json", text_);
      if (!trace_fault.empty())
        text_ << "weft: the trace could not be written: " << trace_fault << std::endl;
      if (options_.json) out_ << summary.dump() << std::endl;
    }
    if (is_stopped()) {
      const bool is_saved = checkpoints_->has_saved(trainer.steps_done());
      return static_cast<int>(is_saved ? ExitCode::stopped : ExitCode::failed);
    }
    if (!trace_fault.empty()) return static_cast<int>(ExitCode::failed);
    // The run is done, but its last state is nowhere: its user must know.
    if (!checkpoints_->last_save_failed()) return 0;
    if (is_first()) text_ << "weft: the last checkpoint could not be saved (see above)\n";
    return static_cast<int>(ExitCode::failed);
  }

  Json integrity_json(const Trainer& trainer) const {
    Json json = replicas_.json();
    json["skipped_steps"] = trainer.num_skipped();
    return json;
  }

  // Collective. Returns what went wrong.
  std::string write_trace(Trainer& trainer) {
    if (!run_trace_) return "";
    std::string path = options_.trace->path;
    if (path.empty()) path = run_folder_ + "/trace.json";
    const std::string fault = run_trace_->write(start_.world(), trainer.mesh(), path);
    if (is_first() && fault.empty()) text_ << "trace " << path << std::endl;
    return fault;
  }

  std::string stop_text_of(const Trainer& trainer) const {
    return stop_text(
        {.reason = stopped_,
         .step = trainer.steps_done(),
         .num_steps = trainer.num_steps(),
         .folder = run_folder_,
         .checkpoint = checkpoints_->has_saved(trainer.steps_done()) ? checkpoints_->last_path()
                                                                     : std::string(),
         .saves_none = !checkpoints_->saves_any()},
        options_.inputs);
  }

  RunClock clock_;  // first: it runs from here on
  TrainOptions options_;
  const StopSignals& signals_;
  std::ostream& text_;
  std::ostream& out_;
  Session& session_;
  RunStart start_;
  ProgressLine progress_;
  Plan plan_;
  std::unique_ptr<Transport> transport_;
  TrainingData data_;
  std::string run_folder_;  // rank 0 only, as the following three
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<TensorboardLog> board_;  // --tensorboard
  RunCheckpoints* checkpoints_ = nullptr;
  ReplicaWatch replicas_{plan_};
  StopReason stopped_ = StopReason::none;
  index_t first_step_ = 0;  // steps done when this process began
  StepStatistics times_;
  Evaluation evaluation_;
  Json metrics_;  // rank 0: the same
  StepAccount account_;
  SampleRecord samples_;
  RunHistory history_;  // rank 0's is whole
  std::optional<RunTrace> run_trace_;
  std::optional<StageResplit> resplit_;
  double first_step_done_ms_ = 0.0;  // since the trainer began
};

}  // namespace

int train(const TrainOptions& options, Session& session, const StopSignals& signals,
          std::ostream& text, std::ostream& out) {
  return TrainJob(options, session, signals, text, out).run();
}

}  // namespace weft
