// Ranks killed at random moments, the run resumed on random other layouts until it is through: the
// bits of the run that nobody disturbed, and each step logged once. WEFT_KILL_TRIES: how many runs;
// WEFT_KILL_SEED: repeats what a failure printed.
#include <catch2/catch.hpp>

#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "tests/fault/checkpoint_run.hpp"
#include "tests/fault/job.hpp"

namespace {

using namespace std::chrono_literals;
using namespace weft::test;
using Clock = Job::Clock;
using Random = std::mt19937_64;

// From first to last, both included.
int draw(Random& random, int first, int last) {
  return std::uniform_int_distribution<int>(first, last)(random);
}

const Layout& draw_layout(Random& random) {
  return layouts()[static_cast<std::size_t>(
      draw(random, 0, static_cast<int>(layouts().size()) - 1))];
}

struct Story {
  std::string plan, run;
  int num_steps;
  std::string so_far;  // for people
};

// While the run starts, or once it has logged a step that it has still to do and a bit later; also
// when it is about to end, and after it. Not before rank 0 has said its first word: a death inside
// MPI_Init is for the launcher to notice, and this one is told not to.
void wait_for_a_moment(Random& random, const Story& story, Job& job) {
  while (!contains(job.output(), "weft train") && !job.launcher_ended_within(1ms)) {
  }
  const bool while_starting = draw(random, 0, 4) == 0;
  const auto pause = std::chrono::microseconds(draw(random, 0, while_starting ? 400'000 : 30'000));
  // Lines of steps that this start will cut back may stand there already: then the moment is early.
  const int step = while_starting ? 0 : draw(random, num_logged_steps(story.run), story.num_steps);
  while (num_logged_steps(story.run) < step && !job.launcher_ended_within(1ms)) {
  }
  std::this_thread::sleep_for(pause);
}

// Starts or resumes, and kills one rank or, as a node that fails would, all.
void start_and_kill(Random& random, Story& story) {
  const Layout& layout = draw_layout(random);
  Job job(layout.num_ranks, WEFT_PROGRAM,
          "train " + story.plan + layout.arguments() + " --run " + story.run + " --resume auto",
          story.run);
  if (job.find_ranks_within(layout.num_ranks, 30s) < layout.num_ranks) {
    INFO(story.so_far << "\n" << job.output());
    REQUIRE(job.launcher_ended_within(0s));  // a run that was through already
    return;
  }
  wait_for_a_moment(random, story, job);
  const int victim = draw(random, -1, layout.num_ranks - 1);
  for (int rank = 0; rank < layout.num_ranks; ++rank) {
    if (victim >= 0 && rank != victim) continue;
    job.kill_rank(rank);
  }
  story.so_far += "\n" + std::to_string(layout.num_ranks) + " ranks (" + layout.keys +
                  "), killed " + (victim < 0 ? "all" : "rank " + std::to_string(victim)) +
                  " after step " + std::to_string(num_logged_steps(story.run));
  for (int rank = 0; rank < layout.num_ranks; ++rank) {
    INFO(story.so_far << "\n" << job.output());
    CHECK(job.ended_within(rank, 10s));
  }
  CHECK(job.launcher_ended_within(10s));
}

void require_same_after_kills(std::uint64_t seed, Story& story, const Outcome& undisturbed) {
  Random random(seed);
  for (int kills = draw(random, 1, 3); kills > 0; --kills) start_and_kill(random, story);
  const Layout& layout = draw_layout(random);
  const ProcessResult last = train(story.plan, story.run, layout, "--resume auto");
  INFO("WEFT_KILL_SEED=" << seed << story.so_far << "\nthen " << layout.num_ranks << " ranks ("
                         << layout.keys << ")\n"
                         << last.text);
  REQUIRE(last.exit_code == 0);
  const Outcome outcome = outcome_of(story.run);
  CHECK(outcome.state_hash == undisturbed.state_hash);
  CHECK(outcome.loss_hash == undisturbed.loss_hash);
  CHECK(outcome.loss_bits == undisturbed.loss_bits);
  CHECK(valid_step_folders(story.run) == step_folders(story.run));
}

// A share of the tries for each model.
void kill_and_resume(const std::string& model, bool async = false) {
  const SmallPlan small{
      .model = model, .hidden = 32, .steps = 50, .every_steps = 4, .async = async};
  const std::string plan = write_plan(small, "kill-" + model);
  const std::string reference = fresh_run("kill-reference-" + model);
  const ProcessResult first = train(plan, reference);
  INFO(first.text);
  REQUIRE(first.exit_code == 0);
  const Outcome undisturbed = outcome_of(reference);
  REQUIRE(undisturbed.loss_bits.size() == 50);

  const long tries = number_from_environment("WEFT_KILL_TRIES", 6);
  const long given = number_from_environment("WEFT_KILL_SEED", -1);
  if (given >= 0) {
    Story story{plan, fresh_run("kill-" + model), small.steps, {}};
    require_same_after_kills(static_cast<std::uint64_t>(given), story, undisturbed);
    return;
  }
  std::random_device device;
  for (long i = 0; i < (tries + 1) / 2; ++i) {
    Story story{plan, fresh_run("kill-" + model), small.steps, {}};
    require_same_after_kills(device(), story, undisturbed);
  }
}

}  // namespace

TEST_CASE("killed at any moment, resumed on another layout: the same bits, MLP") {
  kill_and_resume("mlp");
}

TEST_CASE("killed at any moment, resumed on another layout: the same bits, ViT") {
  kill_and_resume("vit");
}

TEST_CASE("killed at any moment, saves going on meanwhile: the same bits") {
  kill_and_resume("vit", true);
}

TEST_CASE("resumed from each checkpoint on each layout: the same bits") {
  const SmallPlan small{.model = "vit", .hidden = 16, .steps = 6, .every_steps = 2, .keep = 4};
  const std::string plan = write_plan(small, "resume-each");
  const std::string reference = fresh_run("resume-reference");
  REQUIRE(train(plan, reference).exit_code == 0);
  const Outcome undisturbed = outcome_of(reference);
  for (const int step : {2, 4, 6}) {
    for (const Layout& layout : layouts()) {
      const std::string run = fresh_run("resume-each");
      std::filesystem::create_directories(run);
      std::filesystem::copy(reference, run, std::filesystem::copy_options::recursive);
      for (int later = step + 2; later <= 6; later += 2) {
        std::filesystem::remove_all(step_folder(run, later));
      }
      std::filesystem::remove(run + "/summary.json");
      const ProcessResult resumed = train(plan, run, layout, "--resume auto");
      INFO("from step " << step << " on " << layout.num_ranks << " ranks (" << layout.keys << ")\n"
                        << resumed.text);
      REQUIRE(resumed.exit_code == 0);
      CHECK(outcome_of(run) == undisturbed);
    }
  }
}
