// Which checkpoint a run goes on from, and which plans may: decided by one rank, the same on all.
#include <catch2/catch.hpp>

#include <filesystem>
#include <functional>
#include <tuple>

#include "io/checkpoint/checkpoint_folder.hpp"
#include "tests/apps/resume_run.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;
using Catch::Contains;

namespace fs = std::filesystem;

namespace {

constexpr int usage = static_cast<int>(ExitCode::usage);
constexpr int damaged = static_cast<int>(ExitCode::data);

const ResumeData& data() {
  static const ResumeData small;
  return small;
}

Plan base_plan() {
  Plan plan = small_plan(4);
  plan.layout.dp = 2;
  plan.checkpoint.keep = 10;
  return plan;
}

ResumeOptions from(const std::string& step) { return {step, false, false}; }

// A run's folder with checkpoints of the steps 2, 4 and 6 of a plan.
class SavedRun {
 public:
  explicit SavedRun(const Plan& plan) {
    run_part(plan, data(), {.run_folder = folder_.path(), .until = 6, .saves = {2, 4, 6}});
  }
  // Another such folder, for one test to change.
  std::string copy_to(const TemporaryFolder& folder) const {
    fs::copy(folder_.path(), folder.path(), fs::copy_options::recursive);
    return folder.path();
  }

 private:
  TemporaryFolder folder_;
};

const SavedRun& saved_run() {
  static const SavedRun saved(base_plan());
  return saved;
}

// Restores and does nothing more.
PartResult restore(const std::string& folder, const Plan& plan, const ResumeOptions& options) {
  return run_part(plan, data(), {.run_folder = folder, .resume = options});
}
PartResult restore_copy(const Plan& plan, const ResumeOptions& options = {}) {
  const TemporaryFolder folder;
  return restore(saved_run().copy_to(folder), plan, options);
}

std::vector<index_t> steps_in(const std::string& run) {
  std::vector<index_t> steps;
  for (const CheckpointPlace& place : list_checkpoints(run + "/checkpoints"))
    steps.push_back(place.step);
  return steps;
}

std::string file_of(const std::string& run, index_t step, const std::string& name) {
  return run + "/checkpoints/" + step_folder_name(step) + "/" + name;
}

void alter(const std::string& path) {
  std::string bytes = read_all(path);
  bytes[bytes.size() / 2] ^= 1;
  write_all(path, bytes);
}

}  // namespace

TEST_CASE("another plan is refused by its keys", "[resume][rules]") {
  struct Change {
    std::string key, before, now;
    std::function<void(Plan&)> make;
  };
  const std::vector<Change> changes{
      {"optimizer.lr", "0.001", "0.002", [](Plan& p) { p.optimizer.lr = 0.002; }},
      {"numerics.shards", "4", "2", [](Plan& p) { p.numerics.shards = 2; }},
      {"numerics.lanes", "4", "2", [](Plan& p) { p.numerics.lanes = 2; }},
      {"numerics.seed", "1", "5", [](Plan& p) { p.numerics.seed = 5; }},
      {"batch.micro", "4", "2", [](Plan& p) { p.batch.micro = 2, p.numerics.shards = 2; }},
      {"batch.global", "16", "32", [](Plan& p) { p.batch.global = 32; }},
      {"batch.last", "\"pad\"", "\"drop\"", [](Plan& p) { p.batch.last = LastBatch::drop; }},
      {"model.dropout", "0.0", "0.1", [](Plan& p) { p.model.dropout = 0.1; }},
      {"task.augment", "true", "false", [](Plan& p) { p.task.augment = false; }},
  };
  for (const Change& change : changes) {
    INFO(change.key);
    Plan plan = base_plan();
    change.make(plan);
    const PartResult refused = restore_copy(plan);
    CHECK(refused.exit_code == usage);
    CHECK_THAT(refused.error, Contains(change.key + ": " + change.before + " when it was saved, " +
                                       change.now + " now"));
    CHECK_THAT(refused.error, Contains("--allow-plan-change"));
    const PartResult forced = restore_copy(plan, {"auto", false, true});
    CHECK(forced.exit_code == 0);
    CHECK(forced.first_step == 6);
    CHECK_THAT(forced.text, Contains("WARNING") && Contains(change.key));
  }
  // Layout and evaluation are no other plan.
  Plan same = base_plan();
  same.layout.tp = 2, same.layout.dp = 1, same.layout.pp = 2;
  same.eval.every_epochs = 3;
  same.checkpoint.every_steps = 1;
  CHECK(restore_copy(same).first_step == 6);
}

TEST_CASE("another model is refused even where another plan is allowed", "[resume][rules]") {
  Plan plan = base_plan();
  plan.model.hidden = 96;
  const PartResult refused = restore_copy(plan, {"auto", false, true});
  CHECK(refused.exit_code == usage);
  CHECK_THAT(refused.error, Contains("with shape"));
}

TEST_CASE("a checkpoint that has more than the model is another model's, not a damaged one",
          "[resume][rules]") {
  // What only one stage can miss, and what all of them do.
  Plan shallow = base_plan();
  shallow.layout.pp = 2;
  Plan deep = shallow;
  deep.model.layers = 3;
  Plan plain = shallow;
  plain.optimizer.kind = "sgd";
  plain.optimizer.momentum = 0.0;
  for (const auto& [saved, now, missing] :
       {std::tuple(deep, shallow, "(exp_avg)"), std::tuple(shallow, plain, "(exp_avg)")}) {
    for (const ResumeOptions& options : {ResumeOptions{"auto", false, true}, {"6", true, true}}) {
      const TemporaryFolder folder;
      const std::string run = SavedRun(saved).copy_to(folder);
      const PartResult refused = restore(run, now, options);
      CHECK(refused.exit_code == usage);
      CHECK_THAT(refused.error, Contains(step_folder_name(6)) && Contains(missing) &&
                                    Contains("another model or optimizer"));
      CHECK_THAT(refused.text, !Contains("passed over"));
      CHECK(steps_in(run) == std::vector<index_t>{6, 4, 2});
    }
  }
}

TEST_CASE("other images are another run", "[resume][rules]") {
  const TemporaryFolder folder;
  const std::string run = saved_run().copy_to(folder);
  const ResumeData others(4);
  const PartResult refused =
      run_part(base_plan(), others, {.run_folder = run, .resume = from("auto")});
  CHECK(refused.exit_code == usage);
  CHECK_THAT(refused.error, Contains("the data set's bytes"));
}

TEST_CASE("a run may become longer unless its learning rates follow its length",
          "[resume][rules]") {
  Plan longer = base_plan();
  longer.run.steps = 30;
  const TemporaryFolder undisturbed, folder, other;
  const PartResult whole = run_part(longer, data(), {.run_folder = undisturbed.path(), .until = 9});
  const PartResult resumed =
      run_part(longer, data(),
               {.run_folder = saved_run().copy_to(folder), .resume = from("auto"), .until = 9});
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.first_step == 6);
  CHECK(resumed.state_hash == whole.state_hash);
  CHECK(resumed.loss_hash == whole.loss_hash);

  Plan cosine = base_plan();
  cosine.optimizer.schedule.kind = "cosine";
  const SavedRun saved(cosine);
  cosine.run.steps = 30;
  const PartResult refused = restore(saved.copy_to(other), cosine, from("auto"));
  CHECK(refused.exit_code == usage);
  CHECK_THAT(refused.error, Contains("run.steps: 20 when it was saved, 30 now"));
}

TEST_CASE("a plan that ends before the checkpoint cannot go on from it", "[resume][rules]") {
  Plan plan = base_plan();
  plan.run.steps = 5;
  for (const bool allow : {false, true}) {
    const PartResult refused = restore_copy(plan, {"auto", false, allow});
    CHECK(refused.exit_code == usage);
    CHECK_THAT(refused.error, Contains("is of step 6, but the plan ends at step 5"));
  }
  CHECK(restore_copy(plan, from("4")).first_step == 4);
  plan.run.steps = 6;
  CHECK(restore_copy(plan).first_step == 6);
}

TEST_CASE("a step by its number; later ones are set aside", "[resume][rules]") {
  const TemporaryFolder folder;
  const std::string run = saved_run().copy_to(folder);
  const PartResult missing = restore(run, base_plan(), from("3"));
  CHECK(missing.exit_code == damaged);
  CHECK_THAT(missing.error, Contains("has no checkpoint of that step; it has 2 4 6"));
  CHECK(steps_in(run) == std::vector<index_t>{6, 4, 2});

  const PartResult resumed = restore(run, base_plan(), from("2"));
  CHECK(resumed.first_step == 2);
  CHECK(steps_in(run) == std::vector<index_t>{2});
  CHECK_THAT(resumed.text, Contains("step-000000004 is of a later step") &&
                               Contains("step-000000006 is of a later step"));
  int num_aside = 0;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints"))
    num_aside += entry.path().filename().string().starts_with("aside-step-") ? 1 : 0;
  CHECK(num_aside == 2);
}

TEST_CASE("damaged checkpoints are passed over, unless asked for", "[resume][rules]") {
  for (const char* name : {"MANIFEST", "index.h5", "shard-00000.h5", "shard-00001.h5"}) {
    INFO(name);
    const TemporaryFolder folder;
    const std::string run = saved_run().copy_to(folder);
    alter(file_of(run, 6, name));
    for (const ResumeOptions& options : {ResumeOptions{"auto", true, false}, from("6")}) {
      const PartResult stopped = restore(run, base_plan(), options);
      CHECK(stopped.exit_code == damaged);
      CHECK_THAT(stopped.error, Contains(file_of(run, 6, name)));
      CHECK(steps_in(run) == std::vector<index_t>{6, 4, 2});
    }
    const PartResult older = restore(run, base_plan(), from("auto"));
    CHECK(older.exit_code == 0);
    CHECK(older.first_step == 4);
    CHECK_THAT(older.text, Contains("WARNING") && Contains("step-000000006 is damaged"));
  }
}

TEST_CASE("pins that cannot be read do not stop a run that resumes", "[resume][rules]") {
  const TemporaryFolder folder;
  const std::string run = saved_run().copy_to(folder);
  write_all(run + "/checkpoints/PINS", "2\nfour\n");
  Plan plan = base_plan();
  plan.checkpoint.keep = 1;
  const PartResult resumed = restore(run, plan, from("auto"));
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.first_step == 6);
  CHECK_THAT(resumed.text,
             Contains("weft: WARNING: ") && Contains("PINS:2: expected the number of a step"));
  CHECK(steps_in(run) == std::vector<index_t>{6, 4, 2});
  write_all(run + "/checkpoints/PINS", "2\n");
  CHECK(restore(run, plan, from("auto")).exit_code == 0);
  CHECK(steps_in(run) == std::vector<index_t>{6, 2});
}

TEST_CASE("where every checkpoint is damaged, nothing begins", "[resume][rules]") {
  const TemporaryFolder folder;
  const std::string run = saved_run().copy_to(folder);
  alter(file_of(run, 2, "shard-00001.h5"));
  alter(file_of(run, 4, "MANIFEST"));
  fs::remove(file_of(run, 6, "index.h5"));
  const PartResult none = restore(run, base_plan(), from("auto"));
  CHECK(none.exit_code == damaged);
  CHECK(damaged == 5);
  CHECK_THAT(none.error, Contains("none of the 3 checkpoints") && Contains(run));
  CHECK(steps_in(run) == std::vector<index_t>{6, 4, 2});
}

TEST_CASE("without a checkpoint a run begins, unless a step is asked for", "[resume][rules]") {
  const TemporaryFolder folder, undisturbed;
  const PartResult begun = run_part(
      base_plan(), data(), {.run_folder = folder.path(), .resume = from("auto"), .until = 2});
  CHECK(begun.first_step == 0);
  CHECK_THAT(begun.text, Contains("starting at the first step"));
  CHECK(begun.state_hash ==
        run_part(base_plan(), data(), {.run_folder = undisturbed.path(), .until = 2}).state_hash);
  const PartResult refused = restore(folder.path(), base_plan(), from("2"));
  CHECK(refused.exit_code == damaged);
  CHECK_THAT(refused.error, Contains("it has none"));
  for (const char* text : {"2x", "-1", "0", "newest"}) {
    INFO(text);
    CHECK(says(error_of([&] { parse_resume(text); }), "expected auto or the number of a step"));
  }
}
