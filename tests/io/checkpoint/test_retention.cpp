// Which checkpoints of a folder stay, by folders in which each rule matters for some.
#include <catch2/catch.hpp>

#include "io/checkpoint/pins.hpp"
#include "io/checkpoint/retention.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

using Steps = std::vector<index_t>;

// 2, 4, ... 20; the manifests of `damaged` are cut.
struct Saved {
  TemporaryFolder folder;

  explicit Saved(const Steps& damaged = {}) {
    static const SomeModel model{{"norm", whole({5})}};
    for (index_t step = 2; step <= 20; step += 2) save_state(model, {}, folder.path(), step, 1);
    for (const index_t step : damaged)
      write_all(folder / (step_folder_name(step) + "/MANIFEST"), "{}");
  }

  // What retire_older() leaves, newest first.
  Steps after(index_t newest, const Retention& retention) const {
    retire_older(folder.path(), newest, retention);
    Steps steps;
    for (const CheckpointPlace& place : list_checkpoints(folder.path()))
      steps.push_back(place.step);
    return steps;
  }
};

}  // namespace

TEST_CASE("the newest stay, and no other without a reason", "[checkpoint][retention]") {
  CHECK(Saved().after(20, {.keep = 3}) == Steps{20, 18, 16});
  CHECK(Saved({18}).after(20, {.keep = 2}) == Steps{20, 18, 16});
  // What is later than the one that is known to be sound is left and does not count.
  CHECK(Saved().after(16, {.keep = 1}) == Steps{20, 18, 16});
}

TEST_CASE("those of every M-th step stay", "[checkpoint][retention]") {
  CHECK(Saved().after(20, {.keep = 1, .keep_every = 6}) == Steps{20, 18, 12, 6});
  CHECK(Saved().after(20, {.keep = 2, .keep_every = 10}) == Steps{20, 18, 10});
  CHECK(Saved().after(20, {.keep = 1, .keep_every = 7}) == Steps{20, 14});
}

TEST_CASE("the best stay: the first of the order that are there and open",
          "[checkpoint][retention]") {
  const Steps ranked{7, 8, 30, 12, 20, 4};
  CHECK(Saved().after(20, {.keep = 1, .keep_best = 1, .ranked = ranked}) == Steps{20, 8});
  CHECK(Saved().after(20, {.keep = 1, .keep_best = 2, .ranked = ranked}) == Steps{20, 12, 8});
  CHECK(Saved({8}).after(20, {.keep = 1, .keep_best = 1, .ranked = ranked}) == Steps{20, 12});
  // The newest may be the best, and is then none beside it.
  CHECK(Saved().after(20, {.keep = 1, .keep_best = 1, .ranked = {20, 8}}) == Steps{20});
  // A better one that is later than the sound one is not counted on.
  CHECK(Saved().after(16, {.keep = 1, .keep_best = 1, .ranked = {18, 6}}) == Steps{20, 18, 16, 6});
  CHECK(Saved().after(20, {.keep = 1, .keep_best = 5, .ranked = {}}) == Steps{20});
  CHECK(Saved().after(20, {.keep = 1, .keep_best = 0, .ranked = ranked}) == Steps{20});
}

TEST_CASE("each reason by itself is enough", "[checkpoint][retention]") {
  const Saved saved;
  pin_steps(saved.folder.path(), {6});
  CHECK(saved.after(20, {.keep = 1, .keep_every = 8, .keep_best = 1, .ranked = {2, 8}}) ==
        Steps{20, 16, 8, 6, 2});
}
