// The checkpoints of one run of `weft train`: when one is due, saving and restoring, and what is
// said about them.
#pragma once

#include <chrono>
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/resume.hpp"
#include "apps/run_history.hpp"
#include "apps/run_start.hpp"
#include "apps/save_pace.hpp"
#include "apps/trainer.hpp"
#include "io/checkpoint/checkpoint_writer.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// What follows a step: another one, or the end of the run or of this process's part of it.
enum class Next : std::uint8_t { step, end, stop };

class RunCheckpoints {
 public:
  // Collective. `run_folder` and `history` (its evaluations: which checkpoints are the best) matter
  // on rank 0 alone. `text` is for people, written to by rank 0. Everything must outlive it.
  RunCheckpoints(Communicator& world, const Plan& plan, const TrainingData& data,
                 const std::string& run_folder, const RunHistory& history, std::ostream& text);

  // Throws Error(usage) where the plan or the command line needs checkpoints and this build has no
  // HDF5.
  static void check_build(const Plan& plan, bool resumes);
  // Rank 0, before anything of the run's checkpoints is read: null where none will be written or
  // read. Throws Error(usage) where another process writes there.
  static std::unique_ptr<Lease> take_lease(const Plan& plan, bool resumes,
                                           const std::string& run_folder, std::ostream& text);

  // Collective. Returns the steps done.
  index_t restore(Trainer& trainer, const ResumeOptions& options);
  // Collective, after restore(), once the history has what came before. Removes older ones than are
  // to stay; where PINS cannot be read rank 0 warns, and none goes.
  void retire();

  // Whether this plan and build save any.
  bool saves_any() const;
  // Whether one is to be saved after the trainer's last step; `is_asked_for`: rank 0's clock wanted
  // one before it. The same on all ranks. Not on the way while steps are skipped: with the state
  // that they failed with, sound older ones would be replaced one by one.
  bool is_due(const Trainer& trainer, Next next, bool is_asked_for) const;
  // Local, before a step: whether the clock wants a save after it (checkpoint.every, .overhead).
  // The last one is over.
  bool is_time_for_one(const Trainer& trainer) const;
  // Collective, before the first step of this process: where checkpoints are written while steps go
  // on, takes what they need, so that no step waits for it.
  void prepare(Trainer& trainer);
  // Collective, after each step. Saves what is due, or begins to (checkpoint.async), and goes on
  // with a save under way. That is waited for where the next one is due or no step follows: each
  // checkpoint that the plan asks for is written. `is_asked_for`: as is_due(). Returns the saves
  // that are over; faults are in there, and remembered.
  std::vector<SaveResult> after_step(Trainer& trainer, Next next, bool is_asked_for = false);
  // Collective. What is left of after_step() where a fault that all ranks know of ends the run
  // within a step: the save under way is worth having.
  std::vector<SaveResult> finish(Trainer& trainer);
  // Collective, between steps. The state of this step on the disk: what was under way is waited
  // for, then it is saved if it was not yet. Whether that went well says has_intact().
  std::vector<SaveResult> save_now(Trainer& trainer);
  // Collective, after that, has_intact() being true: the trainer is split into stages of so many
  // blocks and gets its state back, resharded.
  void split_again(Trainer& trainer, const std::vector<index_t>& stages);
  bool is_saving() const { return writer_ && writer_->is_under_way(); }
  // Collective, none being under way. A fault is in the result, and remembered.
  SaveResult save(Trainer& trainer);
  bool last_save_failed() const { return last_save_failed_; }
  // Whether the newest one is of so many steps, and where it lies if this process saved it.
  bool has_saved(index_t steps_done) const { return steps_done == steps_saved_; }
  // Whether it is also known to be sound: read back, or loaded from.
  bool has_intact(index_t steps_done) const { return steps_done == steps_intact_; }
  const std::string& last_path() const { return last_path_; }
  // The longest that saving after a step can take as far as is known: of one under way, too.
  double longest_save_s() const;

  std::string describe(const SaveResult& saved) const;
  nlohmann::ordered_json json() const;

 private:
  // Rank 0, once: what the checkpoints belong to. Reads all of the data set.
  void identify(const Trainer& trainer);
  void make_writer(const Trainer& trainer);
  void make_staging(Trainer& trainer);
  void rank_checkpoints();
  std::optional<SaveResult> start(Trainer& trainer);
  SaveResult remember(SaveResult saved, Trainer& trainer);

  Communicator& world_;
  const Plan& plan_;
  const TrainingData& data_;
  std::string folder_;
  const RunHistory& history_;
  std::ostream& text_;
  RunIdentity identity_;
  std::optional<CheckpointWriter> writer_;  // from the first save on
  index_t steps_saved_ = -1;                // steps done of the checkpoint that is there
  index_t steps_intact_ = -1;               // of the newest one that is known to be sound
  bool last_save_failed_ = false;
  SavePace pace_;
  index_t first_step_ = 0;  // steps done before those of this process
  index_t num_saved_ = 0;
  index_t num_failed_ = 0;
  std::string last_path_;  // of the last one saved
  double longest_save_s_ = 0.0;
  double write_s_ = 0.0;
  double verify_s_ = 0.0;
  double staged_s_ = 0.0;        // copying, with all that start() does
  double waited_s_ = 0.0;        // for a save under way, the next being due or the run at its end
  double blocked_s_ = 0.0;       // all that steps waited for saving
  double background_s_ = 0.0;    // this rank's thread at work
  std::uint64_t num_bytes_ = 0;  // of the last one
};

}  // namespace weft
