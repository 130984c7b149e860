// The checkpoints of one run of `weft train`: when one is due, saving and restoring, and what is
// said about them.
#pragma once

#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "apps/resume.hpp"
#include "apps/run_start.hpp"
#include "apps/trainer.hpp"
#include "io/checkpoint/checkpoint_writer.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

class RunCheckpoints {
 public:
  // Collective. `run_folder` matters on rank 0 alone. `text` is for people, written to by rank 0.
  // Everything must outlive it.
  RunCheckpoints(Communicator& world, const Plan& plan, const TrainingData& data,
                 const std::string& run_folder, std::ostream& text);

  // Throws Error(usage) where the plan or the command line needs checkpoints and this build has no
  // HDF5.
  static void check_build(const Plan& plan, bool resumes);
  // Rank 0, before anything of the run's checkpoints is read: null where none will be written or
  // read. Throws Error(usage) where another process writes there.
  static std::unique_ptr<Lease> take_lease(const Plan& plan, bool resumes,
                                           const std::string& run_folder, std::ostream& text);

  // Collective. Returns the steps done.
  index_t restore(Trainer& trainer, const ResumeOptions& options);

  // Whether this plan and build save any.
  bool saves_any() const;
  // Whether one is to be saved after so many steps; `is_stop`: the process ends after them. The
  // same on all ranks.
  bool is_due(index_t steps_done, bool is_stop = false) const;
  // Collective. A fault is in the result, and remembered.
  SaveResult save(Trainer& trainer);
  bool last_save_failed() const { return last_save_failed_; }
  // Whether the newest one is of so many steps, and where it lies if this process saved it.
  bool has_saved(index_t steps_done) const { return steps_done == steps_saved_; }
  const std::string& last_path() const { return last_path_; }
  double longest_save_s() const { return longest_save_s_; }

  std::string describe(const SaveResult& saved) const;
  nlohmann::ordered_json json() const;

 private:
  // Rank 0, once: what the checkpoints belong to. Reads all of the data set.
  void identify(const Trainer& trainer);

  Communicator& world_;
  const Plan& plan_;
  const TrainingData& data_;
  std::string folder_;
  std::ostream& text_;
  RunIdentity identity_;
  std::optional<CheckpointWriter> writer_;  // from the first save on
  index_t steps_saved_ = -1;                // steps done of the checkpoint that is there
  bool last_save_failed_ = false;
  index_t num_saved_ = 0;
  index_t num_failed_ = 0;
  std::string last_path_;  // of the last one saved
  double longest_save_s_ = 0.0;
  double write_s_ = 0.0;
  double verify_s_ = 0.0;
  std::uint64_t num_bytes_ = 0;  // of the last one
};

}  // namespace weft
