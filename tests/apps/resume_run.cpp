#include "tests/apps/resume_run.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "apps/agreement.hpp"
#include "apps/run_checkpoints.hpp"
#include "io/synthetic_cifar10.hpp"
#include "parallel/comm/local_transport.hpp"

namespace weft::testing {

namespace {

void require_saved(const SaveResult& saved) {
  if (!saved.is_saved || !saved.fault.empty())
    throw std::runtime_error("not saved: " + saved.fault);
}

PartResult run_rank(const Plan& plan, const TrainingData& training, const RunPart& part,
                    Transport& transport) {
  PartResult result;
  std::ostringstream text;
  Trainer trainer(plan, training, transport,
                  part.resume ? Trainer::Start::restored : Trainer::Start::at_first_step);
  const RunHistory history;
  RunCheckpoints checkpoints(trainer.mesh().world(), plan, training, part.run_folder, history,
                             text);
  try {
    if (part.resume) {
      result.first_step = checkpoints.restore(trainer, *part.resume);
      checkpoints.retire();
    }
    const bool saves_by_plan = plan.checkpoint.every_steps > 0;
    if (saves_by_plan) checkpoints.prepare(trainer);
    while (trainer.steps_done() < part.until) {
      result.steps.push_back(trainer.step());
      if (part.after_step) part.after_step(trainer);
      if (saves_by_plan) {
        const Next next = trainer.steps_done() == part.until ? Next::stop : Next::step;
        for (const SaveResult& saved : checkpoints.after_step(trainer, next)) require_saved(saved);
      }
      if (std::count(part.saves.begin(), part.saves.end(), trainer.steps_done()) > 0)
        require_saved(checkpoints.save(trainer));
      if (const auto split = part.splits.find(trainer.steps_done()); split != part.splits.end()) {
        for (const SaveResult& saved : checkpoints.save_now(trainer)) require_saved(saved);
        checkpoints.split_again(trainer, split->second);
      }
    }
    result.saving = checkpoints.json().dump();
    result.state_hash = trainer.state_hash();
    result.loss_hash = trainer.loss_hash();
  } catch (const AgreedError& error) {
    result.exit_code = static_cast<int>(error.code());
    result.error = error.what();
  }
  result.text = text.str();
  return result;
}

bool are_alike(const PartResult& a, const PartResult& b) {
  return a.exit_code == b.exit_code && a.error == b.error && a.first_step == b.first_step &&
         a.steps.size() == b.steps.size() && a.state_hash == b.state_hash &&
         a.loss_hash == b.loss_hash;
}

}  // namespace

ResumeData::ResumeData(std::uint64_t seed) {
  make_synthetic_cifar10(folder_.path(), {.rows_per_file = 40, .seed = seed});
  training_ = open_training_data(small_plan(4).task, folder_.path());
}

PartResult run_part(const Plan& plan, const TrainingData& data, const RunPart& part) {
  const auto faults = validate(plan, plan.num_ranks());
  if (!faults.empty()) throw std::runtime_error(faults[0].key + ": " + faults[0].message);
  std::filesystem::create_directories(part.run_folder + "/checkpoints");
  std::mutex mutex;
  std::vector<PartResult> results;
  std::string text;
  run_ranks(static_cast<int>(plan.num_ranks()), [&](Transport& transport) {
    PartResult mine = run_rank(plan, data, part, transport);
    const std::lock_guard lock(mutex);
    if (transport.rank() == 0) text = mine.text;
    results.push_back(std::move(mine));
  });
  for (const PartResult& one : results) {
    if (!are_alike(one, results[0]))
      throw std::runtime_error("ranks differ: " + one.error + " / " + results[0].error);
  }
  results[0].text = text;
  return results[0];
}

}  // namespace weft::testing
