// A run that ends and goes on twice, each time on another layout, is the undisturbed run: the same
// losses, the same state, each sample once an epoch.
#include <catch2/catch.hpp>

#include <map>
#include <random>

#include "tests/apps/resume_run.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

constexpr std::uint64_t first_seed = 5200;
#ifdef WEFT_SANITIZED
constexpr std::uint64_t num_chains = 1;
#else
constexpr std::uint64_t num_chains = 8;
#endif

const ResumeData& data() {
  static const ResumeData small;
  return small;
}

class RandomLayouts {
 public:
  explicit RandomLayouts(std::uint64_t seed) : generator_(seed) {}

  index_t number(index_t low, index_t high) {
    return std::uniform_int_distribution<index_t>(low, high)(generator_);
  }

  // A legal layout of at most 8 ranks for the plan.
  Plan on_any(Plan plan) {
    do {
      LayoutPlan& layout = plan.layout;
      layout.tp = number(1, 4);
      layout.dp = number(1, 4);
      layout.pp = number(1, 2);
      layout.zero = number(0, 1);
      layout.sequence_parallel = number(0, 1) == 1;
      layout.schedule = number(0, 1) == 1 ? "gpipe" : "1f1b";
      constexpr const char* orders[] = {"tp,dp,pp", "dp,tp,pp", "pp,dp,tp"};
      layout.order = orders[number(0, 2)];
      plan.comm.bucket_bytes = number(0, 1) == 1 ? 5003 : index_t{4} << 20;
    } while (plan.num_ranks() > 8 || !validate(plan, plan.num_ranks()).empty());
    return plan;
  }

 private:
  std::mt19937_64 generator_;
};

// More than two epochs; the last batch of each is padded.
constexpr index_t num_steps = 23;

Plan everything_on(Plan plan) {
  plan.model.dropout = 0.1;
  plan.task.augment = true;
  plan.run.steps = num_steps;
  return plan;
}

void check_chain(const Plan& plan, std::uint64_t seed) {
  RandomLayouts random(seed);
  const Plan a = random.on_any(plan), b = random.on_any(plan), c = random.on_any(plan);
  const index_t first = random.number(1, 20), second = random.number(first + 1, num_steps - 1);
  INFO("seed " << seed << ", saved at " << first << " and " << second << "; " << text_of(a)
               << " -> " << text_of(b) << " -> " << text_of(c));
  const TemporaryFolder undisturbed, folder;
  const PartResult whole =
      run_part(plan, data(), {.run_folder = undisturbed.path(), .until = num_steps});
  const ResumeOptions automatic{"auto", false, false};
  // What comes after the last save is lost and done again.
  const PartResult one =
      run_part(a, data(), {.run_folder = folder.path(), .until = first + 1, .saves = {first}});
  const PartResult two = run_part(
      b, data(),
      {.run_folder = folder.path(), .resume = automatic, .until = second, .saves = {second}});
  const PartResult three =
      run_part(c, data(), {.run_folder = folder.path(), .resume = automatic, .until = num_steps});
  CHECK(one.first_step == 0);
  CHECK(two.first_step == first);
  CHECK(three.first_step == second);
  CHECK(three.text.find("resumed from") != std::string::npos);
  CHECK(three.state_hash == whole.state_hash);
  CHECK(three.loss_hash == whole.loss_hash);

  std::vector<StepResult> steps(one.steps.begin(), one.steps.begin() + first);
  steps.insert(steps.end(), two.steps.begin(), two.steps.end());
  steps.insert(steps.end(), three.steps.begin(), three.steps.end());
  REQUIRE(steps.size() == whole.steps.size());
  std::map<index_t, index_t> samples_of_epoch;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i].step == static_cast<index_t>(i));
    CHECK(steps[i].epoch == whole.steps[i].epoch);
    CHECK(bit_difference<double>(
              {steps[i].loss, steps[i].accuracy, steps[i].learning_rate, steps[i].gradient_norm},
              {whole.steps[i].loss, whole.steps[i].accuracy, whole.steps[i].learning_rate,
               whole.steps[i].gradient_norm}) == "");
    samples_of_epoch[steps[i].epoch] += steps[i].num_real;
  }
  CHECK(samples_of_epoch[0] == 150);
  CHECK(samples_of_epoch[1] == 150);
}

}  // namespace

TEST_CASE("perceptrons go on as if nothing had been", "[resume][layouts]") {
  for (std::uint64_t seed = first_seed; seed < first_seed + num_chains; ++seed)
    check_chain(everything_on(small_plan(4)), seed);
}

TEST_CASE("transformers go on as if nothing had been", "[resume][layouts]") {
  for (std::uint64_t seed = first_seed + 100; seed < first_seed + 100 + num_chains; ++seed)
    check_chain(everything_on(small_vit(4)), seed);
}

TEST_CASE("so do runs of twelve pieces and lanes", "[resume][layouts]") {
  Plan plan = everything_on(small_vit(12));
  check_chain(plan, first_seed + 300);
}

TEST_CASE("every optimizer and schedule goes on", "[resume][layouts]") {
  Plan plan = everything_on(small_plan(4));
  plan.optimizer.schedule = {.kind = "cosine", .warmup_steps = 5, .final_fraction = 0.1};
  check_chain(plan, first_seed + 200);
  plan.optimizer.kind = "sgd";
  plan.optimizer.lr = 0.05;
  plan.optimizer.momentum = 0.9;
  check_chain(plan, first_seed + 201);
  plan.optimizer.momentum = 0.0;
  check_chain(plan, first_seed + 202);
}
