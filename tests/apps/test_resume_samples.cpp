// Which samples a run trains on that was killed twice in mid-epoch and went on with another dp and
// pp: every sample once an epoch. Samples are known by the pixels and labels that the trainers
// computed with, not by what the sampler says.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>

#include "io/augment.hpp"
#include "io/cifar10.hpp"
#include "tests/apps/resume_run.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

constexpr index_t num_steps = 20, steps_per_epoch = 10;

const ResumeData& data() {
  static const ResumeData small;
  return small;
}

// Images by what the model sees of them.
using Pixels = std::vector<float>;
const std::map<Pixels, index_t>& images_by_pixels() {
  static const std::map<Pixels, index_t> all = [] {
    const SampleSet& samples = *data().training().samples;
    std::map<Pixels, index_t> known;
    for (index_t i = 0; i < samples.num_samples(); ++i) {
      Pixels x(Cifar10::image_bytes);
      samples.read(i, std::nullopt, {.features = x.data()});
      known.emplace(std::move(x), i);
    }
    return known;
  }();
  return all;
}

index_t label_of(index_t sample) {
  std::int32_t label = -1;
  data().training().samples->read(sample, std::nullopt, {.labels = &label});
  return label;
}

// Of one step, in the order of the replicas: the image in each row that counts.
using Samples = std::vector<index_t>;

// What ranks computed with, told by each of them after each step.
class SeenSamples {
 public:
  void add(Trainer& trainer) {
    const HostBatch& batch = trainer.batch();
    Mesh& mesh = trainer.mesh();
    const bool has_pixels = mesh.rank("pp") == 0, has_loss = mesh.rank("pp") + 1 == mesh.size("pp");
    Rows rows;
    for (index_t row = 0; row < batch.num_rows(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      if (batch.weight[at] != 1.0f) continue;
      if (has_pixels)
        rows.images.push_back(image_of(batch.features.data() + row * Cifar10::image_bytes));
      if (has_loss) rows.labels.push_back(batch.labels[at]);
    }
    const std::lock_guard lock(mutex_);
    rows_[{trainer.steps_done() - 1, mesh.rank("dp"), mesh.rank("tp"), mesh.rank("pp")}] = rows;
  }

  // By step; throws where stages or tp ranks computed with different samples.
  std::map<index_t, Samples> take() {
    std::map<index_t, Samples> samples;
    std::map<std::tuple<index_t, int>, Rows> replicas;
    for (const auto& [place, rows] : rows_) {
      const auto& [step, dp, tp, pp] = place;
      Rows& replica = replicas[{step, dp}];
      for (auto [mine, all] :
           {std::pair(&rows.images, &replica.images), std::pair(&rows.labels, &replica.labels)}) {
        if (mine->empty()) continue;
        if (all->empty()) *all = *mine;
        if (*all != *mine) throw std::runtime_error("tp ranks of a replica have other samples");
      }
    }
    for (const auto& [place, replica] : replicas) {
      Samples labels;
      for (const index_t image : replica.images) labels.push_back(label_of(image));
      if (labels != replica.labels) throw std::runtime_error("the last stage has other samples");
      Samples& step = samples[std::get<0>(place)];
      step.insert(step.end(), replica.images.begin(), replica.images.end());
    }
    return samples;
  }

 private:
  // Of one rank: images where it has pixels, labels where it computes losses.
  struct Rows {
    Samples images, labels;
  };

  static index_t image_of(const float* x) {
    const auto found = images_by_pixels().find(Pixels(x, x + Cifar10::image_bytes));
    return found == images_by_pixels().end() ? -1 : found->second;
  }

  std::mutex mutex_;
  std::map<std::tuple<index_t, int, int, int>, Rows> rows_;
};

Plan on_layout(Plan plan, index_t tp, index_t dp, index_t pp, index_t zero = 0) {
  plan.layout.tp = tp;
  plan.layout.dp = dp;
  plan.layout.pp = pp;
  plan.layout.zero = zero;
  return plan;
}

std::map<index_t, Samples> samples_of(const Plan& plan, RunPart part) {
  SeenSamples seen;
  part.after_step = [&](Trainer& trainer) { seen.add(trainer); };
  const PartResult result = run_part(plan, data(), part);
  if (result.exit_code != 0) throw std::runtime_error(result.error);
  return seen.take();
}

// Of a run that is saved after 4 and 13 steps, and killed some steps later.
std::map<index_t, Samples> samples_over_kills(const Plan& a, const Plan& b, const Plan& c) {
  const ResumeOptions automatic{"auto", false, false};
  const TemporaryFolder folder;
  std::map<index_t, Samples> all =
      samples_of(a, {.run_folder = folder.path(), .until = 6, .saves = {4}});
  REQUIRE(all.size() == 6);
  // What was computed after the save went with the process.
  std::erase_if(all, [](const auto& step) { return step.first >= 4; });
  auto second =
      samples_of(b, {.run_folder = folder.path(), .resume = automatic, .until = 16, .saves = {13}});
  REQUIRE(second.size() == 12);
  std::erase_if(second, [](const auto& step) { return step.first >= 13; });
  auto third =
      samples_of(c, {.run_folder = folder.path(), .resume = automatic, .until = num_steps});
  for (auto* part : {&second, &third}) {
    for (const auto& [step, samples] : *part) {
      INFO("step " << step);
      CHECK(all.emplace(step, samples).second);
    }
  }
  return all;
}

void check_chain(const Plan& a, const Plan& b, const Plan& c) {
  const std::map<index_t, Samples> steps = samples_over_kills(a, b, c);
  REQUIRE(steps.size() == num_steps);
  const std::vector<index_t>& train = data().training().split.train;
  std::vector<Samples> epochs(2);
  for (const auto& [step, samples] : steps) {
    Samples& epoch = epochs[static_cast<std::size_t>(step / steps_per_epoch)];
    epoch.insert(epoch.end(), samples.begin(), samples.end());
  }
  CHECK(epochs[0] != epochs[1]);
  for (Samples& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    CHECK(epoch == train);
  }
  // And the undisturbed run's in each step.
  const TemporaryFolder undisturbed;
  CHECK(steps ==
        samples_of(on_layout(a, 1, 1, 1), {.run_folder = undisturbed.path(), .until = num_steps}));
}

Plan plain_plan() {
  Plan plan = small_plan(4);
  plan.task.augment = false;  // so that pixels tell the image
  plan.run.steps = num_steps;
  return plan;
}

}  // namespace

TEST_CASE("each sample once an epoch over kills and another dp and pp", "[resume][samples]") {
  REQUIRE(images_by_pixels().size() == 240);  // 40 of them the test part
  const Plan plan = plain_plan();
  REQUIRE(plan.steps_per_epoch() == steps_per_epoch);
  check_chain(on_layout(plan, 1, 4, 1), on_layout(plan, 1, 2, 2), on_layout(plan, 2, 1, 2));
  check_chain(on_layout(plan, 1, 1, 2), on_layout(plan, 1, 3, 1, 1), on_layout(plan, 1, 4, 2, 1));
}
