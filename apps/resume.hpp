// How a run goes on from a checkpoint: which one, whether it is this run's, and its numbers into
// the trainer, on all ranks alike. Also how an evaluation gets a checkpoint's numbers.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "apps/trainer.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

struct ResumeOptions {
  std::string from;                // "auto": the newest valid one, or the beginning; or a step
  bool strict = false;             // a damaged checkpoint stops, instead of the next older one
  bool allow_plan_change = false;  // go on with another plan than the one that wrote it
  bool to_evaluate = false;        // only the model, task and data must be those of the checkpoint
};

// Throws Error(usage) unless `text` is "auto" or a step. Empty: auto.
std::optional<index_t> parse_resume(const std::string& text);

class Resume {
 public:
  // `folder`: RUN/checkpoints. `identity`: of the run now; matters on rank 0 alone, as `text` does,
  // where it says what it does. Everything must outlive it.
  Resume(Communicator& world, std::string folder, const ResumeOptions& options, const Plan& plan,
         const RunIdentity& identity, std::ostream& text);

  // Collective. Loads a checkpoint into `trainer` and has it start there; with "auto" and none in
  // the folder it starts at its first step. Returns the steps done. Throws AgreedError: (usage)
  // where the checkpoint is another plan's or model's, (data) where there is none that is valid.
  index_t restore(Trainer& trainer);

  // Collective. Only the numbers: of the newest of `candidates` (rank 0's; newest last) that is
  // valid. Nothing on disk is touched, and the trainer starts nowhere. Throws as restore().
  Checkpoint read(Trainer& trainer, std::vector<CheckpointPlace> candidates);

 private:
  // Rank 0: the next candidate that opens and is this plan's; false: no more of them.
  bool open_next(std::string& path, CheckpointTexts& texts);
  void check_plan(const Checkpoint& checkpoint);
  // Collective: the same candidate on all ranks, or none.
  std::optional<Checkpoint> next_candidate();
  void load(Trainer& trainer, const Checkpoint& checkpoint);
  // Collective. Loads the newest candidate that is valid; none where there is none.
  std::optional<Checkpoint> load_newest(Trainer& trainer);
  void skip(const std::string& path, const std::string& fault);
  void set_newer_aside(index_t step);
  bool is_first() const { return world_.rank() == 0; }

  Communicator& world_;
  std::string folder_;
  ResumeOptions options_;
  std::optional<index_t> step_;
  const Plan& plan_;
  const RunIdentity& identity_;
  std::ostream& text_;
  std::vector<CheckpointPlace> candidates_;  // rank 0; newest last
};

}  // namespace weft
