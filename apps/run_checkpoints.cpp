#include "apps/run_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/agreement.hpp"
#include "apps/layout_json.hpp"
#include "apps/version_command.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

bool saves(const Plan& plan) {
  return hdf5::is_built_in() && (plan.checkpoint.every_steps > 0 || plan.checkpoint.at_end);
}

}  // namespace

RunCheckpoints::RunCheckpoints(Communicator& world, const Plan& plan, const TrainingData& data,
                               const std::string& run_folder, std::ostream& text)
    : world_(world),
      plan_(plan),
      data_(data),
      folder_(world.broadcast_string("checkpoint.folder", 0, run_folder + "/checkpoints")),
      text_(text) {}

void RunCheckpoints::check_build(const Plan& plan, bool resumes) {
  require(hdf5::is_built_in() || (!resumes && plan.checkpoint.every_steps == 0), ExitCode::usage,
          "this build of weft has no HDF5 and so no checkpoints: leave out --resume and set "
          "checkpoint.every_steps = 0, or build with -DWEFT_HDF5=ON");
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
               .data = data_.images->fingerprint(),
               .numerics = trainer.fingerprint()};
}

index_t RunCheckpoints::restore(Trainer& trainer, const ResumeOptions& options) {
  identify(trainer);
  steps_saved_ = Resume(world_, folder_, options, plan_, identity_, text_).restore(trainer);
  // What a run that was killed had not come to: the one just loaded is sound.
  agree(world_, "retire", [&] {
    if (world_.rank() == 0) retire_older(folder_, steps_saved_, plan_.checkpoint.keep);
  });
  return steps_saved_;
}

bool RunCheckpoints::saves_any() const { return saves(plan_); }

bool RunCheckpoints::is_due(index_t steps_done, bool is_stop) const {
  return saves(plan_) && steps_done != steps_saved_ &&
         (is_stop || plan_.is_checkpoint_due(steps_done));
}

SaveResult RunCheckpoints::save(Trainer& trainer) {
  const Trace& trace = trainer.context().trace;
  const std::int64_t begin_ns = trace.now_ns();
  const Trace::Span span(&trainer.context().trace, Activity::checkpoint, "checkpoint.save");
  identify(trainer);
  if (!writer_) {
    const CheckpointOptions options{.folder = folder_,
                                    .keep = plan_.checkpoint.keep,
                                    .read_back = plan_.checkpoint.read_back,
                                    .program = version_number(),
                                    .plan_name = plan_.name,
                                    .layout = layout_text(plan_)};
    writer_.emplace(world_, options, identity_);
  }
  const SaveResult saved =
      writer_->save(trainer.state(), trainer.share_to_write(), trainer.progress());
  last_save_failed_ = !saved.is_saved;
  (saved.is_saved ? num_saved_ : num_failed_) += 1;
  if (saved.is_saved) {
    steps_saved_ = trainer.steps_done();
    last_path_ = saved.path;
  }
  longest_save_s_ =
      std::max(longest_save_s_, static_cast<double>(trace.now_ns() - begin_ns) * 1e-9);
  write_s_ += saved.write_s;
  verify_s_ += saved.verify_s;
  num_bytes_ = saved.num_bytes;
  return saved;
}

std::string RunCheckpoints::describe(const SaveResult& saved) const {
  const double mib = static_cast<double>(saved.num_bytes) / (1 << 20);
  if (!saved.is_saved)
    return fmt::format(
        "weft: ALARM: the checkpoint {} was not saved; training goes on, and older "
        "ones stay as they are. Reason: {}",
        saved.path, saved.fault);
  if (!saved.fault.empty())
    return fmt::format("weft: ALARM: checkpoint {}: {}", saved.path, saved.fault);
  return fmt::format("checkpoint {}, {:.1f} MiB in {:.2f} s, {:.0f} MiB/s", saved.path, mib,
                     saved.write_s, mib / saved.write_s);
}

nlohmann::ordered_json RunCheckpoints::json() const {
  return {{"saved", num_saved_},
          {"failed", num_failed_},
          {"last_step", steps_saved_ > 0 ? nlohmann::ordered_json(steps_saved_) : nullptr},
          {"bytes", num_bytes_},
          {"write_s", write_s_},
          {"verify_s", verify_s_}};
}

}  // namespace weft
