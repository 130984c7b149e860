#include "apps/run_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <utility>

#include "apps/agreement.hpp"
#include "apps/kept_checkpoints.hpp"
#include "apps/layout_json.hpp"
#include "apps/version_command.hpp"
#include "core/drill_point.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

bool saves(const Plan& plan) {
  return hdf5::is_built_in() && (plan.saves_on_the_way() || plan.checkpoint.at_end);
}

// Adds the time it lives.
class Timer {
 public:
  Timer(const Trace& trace, double& seconds)
      : trace_(trace), seconds_(seconds), begin_ns_(trace.now_ns()) {}
  ~Timer() { seconds_ += static_cast<double>(trace_.now_ns() - begin_ns_) * 1e-9; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  const Trace& trace_;
  double& seconds_;
  std::int64_t begin_ns_;
};

// Where stages are split again, a checkpoint takes the place of the state in memory.
bool reads_back(const Plan& plan) {
  return plan.checkpoint.read_back || (plan.layout.measures_stages && plan.layout.pp > 1);
}

}  // namespace

RunCheckpoints::RunCheckpoints(Communicator& world, const Plan& plan, const TrainingData& data,
                               const std::string& run_folder, const RunHistory& history,
                               std::ostream& text)
    : world_(world),
      plan_(plan),
      data_(data),
      folder_(world.broadcast_string("checkpoint.folder", 0, run_folder + "/checkpoints")),
      history_(history),
      text_(text),
      pace_(plan.checkpoint) {}

void RunCheckpoints::check_build(const Plan& plan, bool resumes) {
  require(hdf5::is_built_in() || (!resumes && !plan.saves_on_the_way()), ExitCode::usage,
          "this build of weft has no HDF5 and so no checkpoints: leave out --resume and set "
          "checkpoint.every_steps = 0, checkpoint.every = \"0s\" and checkpoint.overhead = 0.0, or "
          "build with -DWEFT_HDF5=ON");
  require(
      hdf5::is_built_in() || !plan.layout.measures_stages || plan.layout.pp == 1, ExitCode::usage,
      "layout.stages = \"measured\": stages are split again through a checkpoint, and this build "
      "of weft has no HDF5: expected \"even\" or a list, or a build with -DWEFT_HDF5=ON");
}

std::unique_ptr<Lease> RunCheckpoints::take_lease(const Plan& plan, bool resumes,
                                                  const std::string& run_folder,
                                                  std::ostream& text) {
  // A resume renames and removes checkpoints, also where the plan saves none.
  if (!resumes && !saves(plan)) return nullptr;
  const std::string folder = run_folder + "/checkpoints";
  auto lease = std::make_unique<Lease>(folder);
  if (!lease->warning().empty()) text << "weft: WARNING: " << lease->warning() << std::endl;
  sweep(folder);
  return lease;
}

void RunCheckpoints::identify(const Trainer& trainer) {
  if (world_.rank() != 0 || !identity_.plan.empty()) return;
  identity_ = {.plan = to_toml(plan_),
               .plan_hash = plan_fingerprint(plan_),
               .split = split_record(data_.split),
               .data = data_.samples->fingerprint(),
               .numerics = trainer.fingerprint()};
}

index_t RunCheckpoints::restore(Trainer& trainer, const ResumeOptions& options) {
  identify(trainer);
  steps_saved_ = Resume(world_, folder_, options, plan_, identity_, text_).restore(trainer);
  steps_intact_ = steps_saved_;
  return steps_saved_;
}

// What a run that was killed had not come to: the one just loaded is sound.
void RunCheckpoints::retire() {
  agree(world_, "retire", [&] {
    if (world_.rank() != 0) return;
    try {
      retire_older(folder_, steps_saved_, retention_of(plan_, history_));
    } catch (const Error& error) {
      // PINS cannot be read: no reason to stop a run that has its state.
      if (error.code() != ExitCode::data) throw;
      text_ << "weft: WARNING: " << error.what() << std::endl;
    }
  });
}

bool RunCheckpoints::saves_any() const { return saves(plan_); }

bool RunCheckpoints::is_due(const Trainer& trainer, Next next, bool is_asked_for) const {
  const index_t steps_done = trainer.steps_done();
  if (!saves(plan_) || steps_done == steps_saved_) return false;
  if (next == Next::step && trainer.num_skipped_in_a_row() > 0) return false;
  return next == Next::stop || is_asked_for || plan_.is_checkpoint_due(steps_done);
}

double RunCheckpoints::longest_save_s() const {
  if (!is_saving()) return longest_save_s_;
  // As in remember(), for what the one under way is known to take where nobody rests.
  const std::chrono::duration<double> so_far = SavePace::Clock::now() - pace_.last_begin();
  return std::max(longest_save_s_, 2.0 * (so_far.count() - writer_->rested_s()));
}

void RunCheckpoints::make_writer(const Trainer& trainer) {
  identify(trainer);
  if (writer_) return;
  const CheckpointOptions options{.folder = folder_,
                                  .retention = retention_of(plan_, history_),
                                  .read_back = reads_back(plan_),
                                  .num_threads = static_cast<int>(plan_.layout.threads),
                                  .program = version_number(),
                                  .plan_name = plan_.name,
                                  .layout = layout_text(plan_)};
  writer_.emplace(world_, options, identity_);
}

// All evaluations up to the step to be saved are done: one that falls on it comes before it.
void RunCheckpoints::rank_checkpoints() {
  if (world_.rank() == 0) writer_->set_ranked(retention_of(plan_, history_).ranked);
}

bool RunCheckpoints::is_time_for_one(const Trainer& trainer) const {
  return !is_saving() && pace_.is_due(trainer.steps_done() + 1 - first_step_);
}

void RunCheckpoints::prepare(Trainer& trainer) {
  pace_.begin_training();
  first_step_ = trainer.steps_done();
  make_staging(trainer);
}

void RunCheckpoints::make_staging(Trainer& trainer) {
  if (!saves(plan_) || !plan_.stages_checkpoints()) return;
  make_writer(trainer);
  writer_->make_staging(trainer.context().arena, trainer.state(), trainer.share_to_write());
}

std::vector<SaveResult> RunCheckpoints::after_step(Trainer& trainer, Next next, bool is_asked_for) {
  const bool is_end = next != Next::step;
  const bool is_next_due = is_due(trainer, next, is_asked_for);
  if (is_end) pace_.end_training();
  if (!is_next_due && !is_saving()) return {};
  const Trace& trace = trainer.context().trace;
  const Timer blocked(trace, blocked_s_);
  const Trace::Span span(&trainer.context().trace, Activity::checkpoint, "checkpoint");
  std::vector<SaveResult> over;
  const auto add = [&](std::optional<SaveResult> saved) {
    if (saved) over.push_back(remember(std::move(*saved), trainer));
  };
  const auto steps_wait = [&](const auto& body) {
    const auto begin = SavePace::Clock::now();
    body();
    if (!is_end) pace_.add_wait(SavePace::Clock::now() - begin);
  };
  if (is_saving() && (is_next_due || is_end)) {
    const Timer waited(trace, waited_s_);
    steps_wait([&] { add(writer_->wait()); });
  } else if (is_saving()) {
    steps_wait([&] { add(writer_->poll()); });
  }
  if (!is_next_due) return over;
  pace_.begin_save();
  // At the end there is nothing to be done meanwhile.
  if (is_end || !plan_.stages_checkpoints()) {
    steps_wait([&] { over.push_back(save(trainer)); });
  } else {
    const Timer staged(trace, staged_s_);
    rank_checkpoints();
    steps_wait([&] { add(writer_->start(trainer.state(), trainer.progress())); });
  }
  return over;
}

std::vector<SaveResult> RunCheckpoints::finish(Trainer& trainer) {
  if (!is_saving()) return {};
  const Timer blocked(trainer.context().trace, blocked_s_);
  return {remember(writer_->wait(), trainer)};
}

std::vector<SaveResult> RunCheckpoints::save_now(Trainer& trainer) {
  std::vector<SaveResult> over = finish(trainer);
  if (!has_saved(trainer.steps_done())) over.push_back(save(trainer));
  return over;
}

void RunCheckpoints::split_again(Trainer& trainer, const std::vector<index_t>& stages) {
  const Trace::Span span(&trainer.context().trace, Activity::checkpoint, "checkpoint.split_again");
  writer_.reset();  // it knows the old stages' state
  drill::reach("split");
  trainer.split_again(stages);
  const ResumeOptions this_one{.from = std::to_string(steps_saved_)};
  std::ostringstream nobody_resumed;
  Resume(world_, folder_, this_one, plan_, identity_, nobody_resumed).restore(trainer);
  make_staging(trainer);
}

SaveResult RunCheckpoints::save(Trainer& trainer) {
  const Trace::Span span(&trainer.context().trace, Activity::checkpoint, "checkpoint.save");
  make_writer(trainer);
  rank_checkpoints();
  return remember(writer_->save(trainer.state(), trainer.share_to_write(), trainer.progress()),
                  trainer);
}

SaveResult RunCheckpoints::remember(SaveResult saved, Trainer& trainer) {
  last_save_failed_ = !saved.is_saved;
  (saved.is_saved ? num_saved_ : num_failed_) += 1;
  if (saved.is_saved) {
    steps_saved_ = saved.step;
    last_path_ = saved.path;
  }
  if (saved.is_saved && saved.fault.empty() && reads_back(plan_)) steps_intact_ = saved.step;
  // At the end the one under way comes first, then another one. In the background the rest of the
  // time went by in steps.
  const double seconds = saved.is_in_background ? saved.work_s() : saved.write_s + saved.verify_s;
  longest_save_s_ = std::max(longest_save_s_, plan_.stages_checkpoints() ? 2.0 * seconds : seconds);
  write_s_ += saved.write_s;
  verify_s_ += saved.verify_s;
  num_bytes_ = saved.num_bytes;
  Trace& trace = trainer.context().trace;
  for (const SaveResult::Work& work : saved.work) {
    if (!saved.is_in_background) break;
    trace.add_interval({.row = "writer", .name = work.name, .index = saved.step},
                       trace.ns_of(work.begin), trace.ns_of(work.end));
    background_s_ += work.seconds();
  }
  return saved;
}

std::string RunCheckpoints::describe(const SaveResult& saved) const {
  const double mib = static_cast<double>(saved.num_bytes) / (1 << 20);
  if (!saved.is_saved)
    return fmt::format(
        "weft: ALARM: the checkpoint {} was not saved; older ones stay as they are, and the run "
        "goes on as it would. Reason: {}",
        saved.path, saved.fault);
  if (!saved.fault.empty())
    return fmt::format("weft: ALARM: checkpoint {}: {}", saved.path, saved.fault);
  if (saved.is_in_background)
    return fmt::format("checkpoint {}, {:.1f} MiB, {:.2f} s of work beside the steps", saved.path,
                       mib, saved.work_s());
  return fmt::format("checkpoint {}, {:.1f} MiB in {:.2f} s, {:.0f} MiB/s", saved.path, mib,
                     saved.write_s, mib / saved.write_s);
}

nlohmann::ordered_json RunCheckpoints::json() const {
  const std::optional<double> interval = pace_.interval_s();
  return {{"saved", num_saved_},
          {"failed", num_failed_},
          {"last_step", steps_saved_ > 0 ? nlohmann::ordered_json(steps_saved_) : nullptr},
          {"bytes", num_bytes_},
          {"write_s", write_s_},
          {"verify_s", verify_s_},
          {"async", plan_.stages_checkpoints()},
          {"blocked_s", blocked_s_},
          {"overhead", pace_.measured_overhead()},
          {"interval_s", interval ? nlohmann::ordered_json(*interval) : nullptr},
          {"staged_s", staged_s_},
          {"waited_s", waited_s_},
          {"background_s", background_s_}};
}

}  // namespace weft
