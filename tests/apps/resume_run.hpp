// Runs in this process (ranks as threads) that save, end, and go on from what was saved on another
// layout.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/resume.hpp"
#include "apps/run_start.hpp"
#include "tests/apps/training_run.hpp"

namespace weft::testing {

// As SmallData, for those who read a run's checkpoints. Other seeds are other images.
class ResumeData {
 public:
  explicit ResumeData(std::uint64_t seed = 3);
  const TrainingData& training() const { return training_; }
  operator const TrainingData&() const { return training_; }

 private:
  weft::test::TemporaryFolder folder_;
  TrainingData training_;
};

// One process's part of a run: restores (or begins), does steps up to `until`, saves where told.
struct RunPart {
  std::string run_folder;
  std::optional<ResumeOptions> resume = std::nullopt;
  index_t until = 0;                              // steps done at its end
  std::vector<index_t> saves = {};                // after so many steps, beside the plan's
  std::function<void(Trainer&)> after_step = {};  // on every rank's thread
  // After so many steps the pipeline is split again: blocks of each stage.
  std::map<index_t, std::vector<index_t>> splits = {};
};

struct PartResult {
  int exit_code = 0;       // 0, or that of the error which all ranks have
  std::string error;       // its text
  std::string text;        // what rank 0 said
  std::string saving;      // RunCheckpoints::json() of rank 0
  index_t first_step = 0;  // steps done when it began
  std::vector<StepResult> steps;
  Hash128 state_hash;
  Hash128 loss_hash;
};

// Throws where ranks do not end alike, or a checkpoint is not saved.
PartResult run_part(const Plan& plan, const TrainingData& data, const RunPart& part);

}  // namespace weft::testing
