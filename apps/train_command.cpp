#include "apps/train_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/agreement.hpp"
#include "apps/layout_json.hpp"
#include "apps/progress_line.hpp"
#include "apps/run_checkpoints.hpp"
#include "apps/step_statistics.hpp"
#include "apps/stop_text.hpp"
#include "apps/stop_vote.hpp"
#include "apps/trainer.hpp"
#include "core/kokkos_session.hpp"
#include "io/plan_file.hpp"
#include "io/run_log.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

double ms_since(std::int64_t begin_ns, const Trace& trace) {
  return static_cast<double>(trace.now_ns() - begin_ns) * 1e-6;
}

// The numbers of one rank that the summary needs from all.
struct RankFigures {
  std::uint64_t peak_bytes;
  std::uint64_t parameters;
  std::uint64_t bytes_sent;
};

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
    plan_ = start_.read_plan(options_.inputs, session_.size());
    transport_ = start_.open_transport(plan_);
    data_ = start_.open_data(options_.inputs, plan_);
    agree(start_.world(), "run folder", [&] { open_run_folder(); });
    const KokkosSession kokkos(static_cast<int>(plan_.layout.threads));
    Trainer trainer(plan_, *data_.images, data_.split, *transport_,
                    options_.resume ? Trainer::Start::restored : Trainer::Start::at_first_step);
    if (is_first()) say_start(trainer);
    checkpoints_ =
        std::make_unique<RunCheckpoints>(start_.world(), plan_, data_, run_folder_, text_);
    if (options_.resume) {
      first_step_ = checkpoints_->restore(trainer, *options_.resume);
      agree(start_.world(), "run log", [&] { reopen_run_log(); });
    }
    train(trainer);
    return finish(trainer);
  }

 private:
  bool is_first() const { return session_.rank() == 0; }
  bool is_stopped() const { return stopped_ != StopReason::none; }

  // Rank 0: nothing of a run that is there already is changed here.
  void open_run_folder() {
    require(!options_.resume || !options_.run_folder.empty(), ExitCode::usage,
            "--resume: which run? Name its folder with --run");
    if (options_.resume) parse_resume(options_.resume->from);
    RunCheckpoints::check_build(plan_, options_.resume.has_value());
    if (!is_first()) return;
    run_folder_ =
        options_.run_folder.empty() ? default_run_folder(plan_.name) : options_.run_folder;
    if (!options_.resume) {
      log_ = std::make_unique<RunLog>(run_folder_, to_toml(plan_));
      log_->write_split(split_record(data_.split));
    }
    lease_ = RunCheckpoints::take_lease(plan_, options_.resume.has_value(), run_folder_, text_);
  }

  void reopen_run_log() {
    if (!is_first()) return;
    log_ = std::make_unique<RunLog>(RunLog::resume(run_folder_, to_toml(plan_), first_step_));
    log_->write_split(split_record(data_.split));
    log_->add_event(
        Json{{"resumed_from_step", first_step_}, {"layout", layout_json(plan_)}}.dump());
  }

  void say_start(Trainer& trainer) {
    text_ << fmt::format(
        "weft train {}: {} ranks (tp {} x dp {} x pp {}) over {}, {}, {} steps of {} samples\n",
        plan_.name, session_.size(), plan_.layout.tp, plan_.layout.dp, plan_.layout.pp,
        transport_->name(), trainer.context().device.text(), trainer.num_steps(),
        plan_.batch.global);
    text_ << fmt::format("run folder {}, data {}\n", run_folder_, data_.images->folder())
          << std::flush;
  }

  void train(Trainer& trainer) {
    const Trace& trace = trainer.context().trace;
    const index_t last = trainer.num_steps() - 1;
    StopVote vote(trainer.mesh().world(), signals_,
                  static_cast<double>(plan_.run.time_limit.seconds));
    for (index_t step = first_step_; step <= last && !is_stopped(); ++step) {
      vote.start(checkpoints_->longest_save_s());
      const std::int64_t begin_ns = trace.now_ns();
      const std::int64_t wait_ns = trace.own_ns(Activity::data_wait);
      const StepResult result = trainer.step();
      const StopReason stop = vote.wait();
      if (step < last) stopped_ = stop;
      const double step_ms = ms_since(begin_ns, trace);
      if (step == first_step_) first_step_ms_ = ms_since(0, trace);
      times_.add(step_ms, static_cast<double>(result.num_real));
      if (is_first()) {
        const Trace::Span span(&trainer.context().trace, Activity::output, "run_log");
        log_->add_step({.step = result.step + 1,
                        .epoch = result.epoch,
                        .loss = result.loss,
                        .lr = result.learning_rate,
                        .grad_norm = result.gradient_norm,
                        .step_ms = step_ms,
                        .data_wait_ms =
                            static_cast<double>(trace.own_ns(Activity::data_wait) - wait_ns) * 1e-6,
                        .num_real = result.num_real,
                        .more = {{"accuracy", result.accuracy}}});
        progress_.show([&] { return progress_text(result, trainer); });
      }
      maybe_evaluate(trainer, step, step == last);
      maybe_save(trainer);
    }
    // A run that was complete when it was resumed.
    if (first_step_ > last) maybe_evaluate(trainer, last, true);
  }

  void maybe_save(Trainer& trainer) {
    if (!checkpoints_->is_due(trainer.steps_done(), is_stopped())) return;
    // A checkpoint's steps are in the log wherever the checkpoint is.
    if (is_first()) log_->sync();
    const SaveResult saved = checkpoints_->save(trainer);
    if (is_first()) progress_.keep(checkpoints_->describe(saved));
  }

  std::string progress_text(const StepResult& result, const Trainer& trainer) const {
    const double left_s =
        times_.median_ms() * 1e-3 * static_cast<double>(trainer.num_steps() - result.step - 1);
    return fmt::format(
        "step {}/{}  epoch {}  loss {:.4f}  accuracy {:.3f}  {:.1f} ms/step  {:.0f} samples/s  "
        "{:.0f} s left",
        result.step + 1, trainer.num_steps(), result.epoch, result.loss, result.accuracy,
        times_.median_ms(), times_.samples_per_second(), left_s);
  }

  void maybe_evaluate(Trainer& trainer, index_t step, bool is_last) {
    const index_t every = plan_.eval.every_epochs * trainer.steps_per_epoch();
    if (!is_last && (every == 0 || (step + 1) % every != 0)) return;
    const std::int64_t begin_ns = trainer.context().trace.now_ns();
    evaluation_ = trainer.evaluate();
    const double ms = ms_since(begin_ns, trainer.context().trace);
    evaluation_ms_ += ms;
    if (!is_first()) return;
    log_->add_evaluation(Json{
        {"step", step + 1},
        {"split", "validation"},
        {"loss", evaluation_.loss},
        {"accuracy", evaluation_.accuracy},
        {"samples", evaluation_.samples},
        {"ms", ms}}.dump());
    progress_.keep(fmt::format("step {}: validation loss {:.4f}, accuracy {:.4f} on {} images",
                               step + 1, evaluation_.loss, evaluation_.accuracy,
                               evaluation_.samples));
  }

  int finish(Trainer& trainer) {
    const Hash128 state = trainer.state_hash();
    const RankFigures mine{trainer.context().arena.peak().total,
                           static_cast<std::uint64_t>(trainer.parameters().held_elements()),
                           trainer.bytes_sent()};
    const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof(mine));
    const std::vector<std::string> all = start_.world().all_gather_strings("summary", bytes);
    if (is_first()) {
      const Json summary = summary_of(trainer, state, all);
      if (is_stopped()) {
        log_->add_event(
            Json{{"stopped_at_step", trainer.steps_done()}, {"reason", name_of(stopped_)}}.dump());
      }
      log_->write_summary(summary.dump(2));
      say_summary(trainer, summary);
      if (options_.json) out_ << summary.dump() << std::endl;
    }
    if (is_stopped()) {
      const bool is_saved = checkpoints_->has_saved(trainer.steps_done());
      return static_cast<int>(is_saved ? ExitCode::stopped : ExitCode::failed);
    }
    // The run is done, but its last state is nowhere: its user must know.
    if (!checkpoints_->last_save_failed()) return 0;
    if (is_first()) text_ << "weft: the last checkpoint could not be saved (see above)\n";
    return static_cast<int>(ExitCode::failed);
  }

  // How the run ended, in a line or a few.
  std::string end_text(const Trainer& trainer) const {
    if (is_stopped()) {
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
    return fmt::format("done: {} steps, final loss {:.4f}, validation accuracy {:.4f}\n",
                       trainer.steps_done(), trainer.last_loss(), evaluation_.accuracy);
  }

  Json summary_of(Trainer& trainer, const Hash128& state, const std::vector<std::string>& figures) {
    std::uint64_t peak = 0, fewest = ~std::uint64_t{0}, most = 0, sent = 0;
    Json by_rank = Json::array();
    for (const std::string& text : figures) {
      RankFigures rank{};
      std::memcpy(&rank, text.data(), sizeof(rank));
      peak = std::max(peak, rank.peak_bytes);
      fewest = std::min(fewest, rank.parameters);
      most = std::max(most, rank.parameters);
      sent += rank.bytes_sent;
      by_rank.push_back({{"peak_bytes", rank.peak_bytes}, {"parameters", rank.parameters}});
    }
    const Arena::Peak& own_peak = trainer.context().arena.peak();
    Json kinds;
    for (int kind = 0; kind < num_memory_kinds; ++kind) {
      kinds[std::string(name_of(static_cast<MemoryKind>(kind)))] =
          own_peak.by_kind[static_cast<std::size_t>(kind)];
    }
    Json account;
    for (int activity = 0; activity < num_activities; ++activity) {
      const auto which = static_cast<Activity>(activity);
      account[std::string(name_of(which))] =
          static_cast<double>(trainer.context().trace.own_ns(which)) * 1e-6;
    }
    return Json{
        {"plan", plan_.name},
        {"state_hash", state.text()},
        {"loss_hash", trainer.loss_hash().text()},
        {"plan_hash", plan_fingerprint(plan_)},
        {"steps", trainer.steps_done()},
        {"stopped", is_stopped() ? Json(name_of(stopped_)) : Json()},
        {"resumed_from_step", first_step_},
        {"final_loss", trainer.last_loss()},
        {"step_ms", {{"median", times_.median_ms()}, {"p95", times_.p95_ms()}}},
        {"samples_per_s", times_.samples_per_second()},
        {"peak_bytes", peak},
        {"parameters_per_rank", {{"min", fewest}, {"max", most}}},
        {"comm_bytes_per_step", sent / steps_here(trainer)},
        {"layout", layout_json(plan_)},
        {"metrics",
         {{"validation_loss", evaluated(evaluation_.loss)},
          {"validation_accuracy", evaluated(evaluation_.accuracy)}}},
        {"ranks", by_rank},
        {"rank0",
         {{"peak_phase", name_of(own_peak.phase)}, {"peak_bytes_by_kind", kinds}, {"ms", account}}},
        {"start_ms", first_step_ms_},
        {"evaluation_ms", evaluation_ms_},
        {"checkpoints", checkpoints_->json()},
        {"fingerprint", trainer.fingerprint()}};
  }

  // A stopped run may have none to tell of.
  Json evaluated(double value) const { return evaluation_.samples > 0 ? Json(value) : Json(); }

  // Steps of this process, at least one.
  std::uint64_t steps_here(const Trainer& trainer) const {
    return static_cast<std::uint64_t>(std::max<index_t>(1, trainer.steps_done() - first_step_));
  }

  void say_summary(const Trainer& trainer, const Json& summary) {
    text_ << end_text(trainer)
          << fmt::format(
                 "  step {:.2f} ms median, {:.2f} ms P95, {:.0f} samples/s; peak {:.1f} MiB on the "
                 "largest rank\n"
                 "  parameters per rank {} to {}; {:.2f} MiB sent a step by all ranks\n"
                 "  state_hash {}\n  loss_hash  {}\n  {}\n",
                 times_.median_ms(), times_.p95_ms(), times_.samples_per_second(),
                 summary["peak_bytes"].get<double>() / (1 << 20),
                 summary["parameters_per_rank"]["min"].get<index_t>(),
                 summary["parameters_per_rank"]["max"].get<index_t>(),
                 summary["comm_bytes_per_step"].get<double>() / (1 << 20),
                 summary["state_hash"].get<std::string>(), summary["loss_hash"].get<std::string>(),
                 log_->folder() + "/summary.json")
          << std::flush;
  }

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
  std::string run_folder_;  // rank 0 only, as the following two
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<RunCheckpoints> checkpoints_;
  StopReason stopped_ = StopReason::none;
  index_t first_step_ = 0;  // steps done when this process began
  StepStatistics times_;
  Evaluation evaluation_;
  double evaluation_ms_ = 0.0;
  double first_step_ms_ = 0.0;
};

}  // namespace

int train(const TrainOptions& options, Session& session, const StopSignals& signals,
          std::ostream& text, std::ostream& out) {
  return TrainJob(options, session, signals, text, out).run();
}

}  // namespace weft
