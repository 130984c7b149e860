// The check of replicas in a training run: when it is due, that it changes nothing and raises no
// false alarm, and that a flipped bit of a real model ends the run by name before anything is
// saved.
#include <catch2/catch.hpp>

#include <bit>
#include <mutex>
#include <utility>

#include <nlohmann/json.hpp>

#include "apps/agreement.hpp"
#include "apps/replica_watch.hpp"
#include "tests/apps/training_run.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

Plan watched_on(Plan plan, const SmallLayout& layout) {
  plan.integrity.replicas_every_steps = 1;
  return on_layout(std::move(plan), layout);
}

struct Outcome {
  std::string error;  // the same on all ranks, or "ranks differ"
  std::string told;
  Hash128 state;
  index_t num_checks = 0;
};

// Three steps with a check after each; `change` comes after the second.
Outcome watched_run(const Plan& plan, const std::function<void(Trainer&)>& change = {}) {
  Outcome outcome;
  std::mutex mutex;
  bool is_first = true;
  on_ranks(plan, data_of(plan), [&](Trainer& trainer) {
    ReplicaWatch watch(plan);
    std::string error, told;
    try {
      for (int i = 0; i < 3; ++i) {
        trainer.step();
        if (i == 1 && change) change(trainer);
        watch.after_step(trainer, false, [&](const std::string& fault) { told = fault; });
      }
    } catch (const AgreedError& fault) {
      error = fault.code() == ExitCode::failed ? fault.what() : "wrong code";
    }
    const Hash128 state = error.empty() ? trainer.state_hash() : Hash128{};
    const std::lock_guard lock(mutex);
    if (!is_first && error != outcome.error) error = "ranks differ";
    outcome = {error, told, state, watch.json().at("replica_checks").get<index_t>()};
    is_first = false;
  });
  return outcome;
}

const Parameter* find(Trainer& trainer, const std::string& name) {
  for (const auto& p : trainer.parameters().all()) {
    if (p->name == name) return p.get();
  }
  return nullptr;
}

void flip(float& x, int bit) {
  x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ (std::uint32_t{1} << bit));
}

}  // namespace

TEST_CASE("checks change no bit and raise no alarm", "[integrity][replicas]") {
  for (const Plan& plan : {small_plan(4), small_vit(4), small_gpt(4)}) {
    const Hash128 unwatched = train(plan, data_of(plan), {.num_steps = 3}).state_hash;
    for (const SmallLayout& layout :
         {SmallLayout{1, 1}, SmallLayout{1, 2}, SmallLayout{1, 3, 1, 1}, SmallLayout{1, 4},
          SmallLayout{2, 1}, SmallLayout{2, 2, 1, 1, true}, SmallLayout{2, 2, 2},
          SmallLayout{3, 2, 1, 1}, SmallLayout{1, 2, 2, 1}}) {
      INFO(plan.model.kind << ", tp " << layout.tp << ", dp " << layout.dp << ", pp " << layout.pp);
      const Outcome outcome = watched_run(watched_on(plan, layout));
      CHECK(outcome.error == "");
      CHECK(outcome.state == unwatched);
      const bool is_alone = layout.tp * layout.dp * layout.pp == 1;
      CHECK(outcome.num_checks == (is_alone ? 0 : 3));  // one rank has nothing to compare
    }
  }
}

TEST_CASE("a flipped bit of a parameter or a moment ends the run", "[integrity][replicas]") {
  struct Case {
    SmallLayout layout;
    int world_rank;
    const char* parameter;
    int moment;  // -1: the value
    std::string says;
  };
  // Element 48 x 4 of block.1.qkv.weight: 12 heads of 4 rows of q, 4 of k, 4 of v in turns, so row
  // 4 is row 0 of k. On tp rank 1 of 2, which has heads 6 to 11, that is row 24 of k.
  const Case cases[] = {
      {{1, 2}, 1, "block.1.qkv.weight", -1, "first in block.1.k.weight [0, 0]:"},
      {{1, 3, 1, 1}, 2, "block.1.qkv.weight", -1, "1 of 3 copies: rank 2. Suspect"},
      {{2, 2}, 3, "block.1.qkv.weight", 0, "first in exp_avg of block.1.k.weight [24, 0]:"},
      {{2, 2, 2}, 5, "block.1.norm1.gain", -1, "1 of 4 copies: rank 5. Suspect"},
      {{1, 4}, 0, "head.bias", 1, "1 of 4 copies: rank 0. Suspect"},
      {{3, 1, 1, 0, true}, 1, "position", -1, "copies of position differ"},
  };
  for (const Case& one : cases) {
    INFO(one.parameter << " on rank " << one.world_rank);
    bool is_done = false;
    const Outcome outcome =
        watched_run(watched_on(small_vit(12), one.layout), [&](Trainer& trainer) {
          if (trainer.mesh().world_rank() != one.world_rank) return;
          const Parameter* p = find(trainer, one.parameter);
          if (p == nullptr) return;
          const bool is_qkv = p->name == "block.1.qkv.weight";
          const index_t at = p->offset + (is_qkv ? 4 * 48 : 0);
          float* data = trainer.parameters().values();
          if (one.moment >= 0)
            data = trainer.optimizer().states()[static_cast<std::size_t>(one.moment)].data;
          flip(data[at], 12);
          is_done = true;
        });
    REQUIRE(is_done);
    INFO(outcome.error);
    CHECK(outcome.error.starts_with("step 2: copies of "));
    CHECK(outcome.error.find(one.says) != std::string::npos);
    CHECK(outcome.error.find("--resume auto") != std::string::npos);
    CHECK(outcome.error.find(outcome.told) != std::string::npos);
    CHECK(!outcome.told.empty());
    CHECK(outcome.num_checks == 2);
  }
}

TEST_CASE("a last stage's copy of the table that differs ends the run", "[integrity][replicas]") {
  for (const SmallLayout& layout : {SmallLayout{1, 1, 2}, SmallLayout{2, 2, 2, 1}}) {
    const Plan plan = watched_on(small_gpt(4), layout);
    const Outcome outcome = watched_run(plan, [&](Trainer& trainer) {
      const TiedParameter& tied = *trainer.tied();
      const bool is_last_rank = trainer.mesh().world_rank() == plan.num_ranks() - 1;
      if (is_last_rank) flip(*tied.copy()->value_of(3), 12);
    });
    INFO(outcome.error);
    // Word 192 is the first of the last of four pieces.
    CHECK(outcome.error.starts_with(
        "step 2: copies of embedding.weight differ, first in embedding.weight [192, 0]:"));
    CHECK(outcome.error.find(layout.dp == 2 ? "1 of 4 copies: rank 7. Suspect"
                                            : "No majority among 2 copies") != std::string::npos);
  }
}

TEST_CASE("checks are due every so many steps and before each checkpoint",
          "[integrity][replicas]") {
  // When a check comes, by what it counts after each of four steps.
  const auto counts = [](index_t every, const std::vector<index_t>& saves) {
    Plan plan = watched_on(small_plan(4), {1, 2});
    plan.integrity.replicas_every_steps = every;
    std::vector<index_t> all(8);
    on_ranks(plan, small_data(), [&](Trainer& trainer) {
      ReplicaWatch watch(plan);
      for (int i = 0; i < 4; ++i) {
        trainer.step();
        watch.after_step(trainer, std::count(saves.begin(), saves.end(), i + 1) > 0);
        all[static_cast<std::size_t>(4 * trainer.mesh().world_rank() + i)] =
            watch.json().at("replica_checks").get<index_t>();
      }
    });
    CHECK(std::equal(all.begin(), all.begin() + 4, all.begin() + 4));
    all.resize(4);
    return all;
  };
  CHECK(counts(2, {}) == std::vector<index_t>{0, 1, 1, 2});
  CHECK(counts(3, {4}) == std::vector<index_t>{0, 0, 1, 2});
  CHECK(counts(100, {1}) == std::vector<index_t>{1, 1, 1, 1});
  CHECK(counts(1, {1, 2}) == std::vector<index_t>{1, 2, 3, 4});  // once a step at most
  CHECK(counts(0, {1, 2, 3, 4}) == std::vector<index_t>{0, 0, 0, 0});
}
