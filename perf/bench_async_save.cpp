// What steps wait for where checkpoints are written meanwhile: the time of
// CheckpointWriter::start() and of all polls of a save, beside a plain copy of as many bytes in the
// same run; and the time of steps while a save is under way, beside that of steps without. Rounds
// of `STEPS` steps alone, then a save and the steps until it is over, then as many and a save whose
// threads never rest. Medians, and the largest blocking time.
//
//   apps/launch.sh N build/release/perf/bench_async_save FOLDER MIB ROUNDS STEPS TP DP ZERO
//
// FOLDER takes MIB three times. With a rank a core the writers' threads compete with the steps;
// with a core to spare they never rest, and both kinds are one.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer.hpp"
#include "io/checkpoint/checkpoint_writer.hpp"
#include "perf/mpi_ranks.hpp"

namespace {

using namespace weft;

struct Sizes {
  std::string folder = ".";
  index_t mib = 488, rounds = 5, steps = 8, tp = 1, dp = 1, zero = 0;
};

Plan plan_of(const Sizes& sizes) {
  Plan plan = perf::plan_of_state("async_save", sizes.mib, sizes.tp, sizes.dp, sizes.zero);
  plan.run.steps = 1 << 20;
  return plan;
}

// One way to save, and what was measured of it.
struct Saving {
  std::string name;
  CheckpointWriter writer;
  std::vector<double> alone = {}, start = {}, blocked = {}, until_safe = {}, during = {};
};

class Bench {
 public:
  Bench(const Sizes& sizes, Transport& transport, const TrainingData& data)
      : sizes_(sizes),
        world_(transport, nullptr, "bench", 60, all_ranks(transport)),
        trainer_(plan_of(sizes), data, transport),
        paced_{"threads that rest", {world_, options(true), {}}},
        unpaced_{"threads that never rest", {world_, options(false), {}}} {
    for (Saving* saving : {&paced_, &unpaced_})
      saving->writer.make_staging(trainer_.context().arena, trainer_.state(),
                                  trainer_.share_to_write());
    const auto elements = static_cast<std::size_t>(trainer_.share_to_write().num_elements());
    from_.assign(elements * trainer_.state().kinds.size(), 1.0f);
    to_.assign(from_.size(), 0.0f);
  }

  void run() {
    for (index_t round = 0; round <= sizes_.rounds; ++round) {
      add(round, copy_,
          together([&] { std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float)); }));
      for (Saving* saving : {&paced_, &unpaced_}) {
        for (index_t step = 0; step < sizes_.steps; ++step) add(round, saving->alone, step_once());
        save_once(round, *saving);
      }
    }
    if (world_.rank() == 0) print();
  }

 private:
  CheckpointOptions options(bool paces) const {
    return {.folder = sizes_.folder,
            .retention = {.keep = 1},
            .read_back = true,
            .paces = paces,
            .program = "bench",
            .plan_name = "async_save",
            .layout = ""};
  }

  // The first round touches memory and the disk's blocks.
  static void add(index_t round, std::vector<double>& times, double seconds) {
    if (round > 0) times.push_back(seconds);
  }

  double together(const auto& work) {
    world_.barrier();
    return perf::seconds_of([&] {
      work();
      world_.barrier();
    });
  }

  double step_once() {
    return together([&] { trainer_.step(); });
  }

  void save_once(index_t round, Saving& saving) {
    std::optional<SaveResult> result;
    double blocked =
        together([&] { result = saving.writer.start(trainer_.state(), trainer_.progress()); });
    add(round, saving.start, blocked);
    while (!result) {
      add(round, saving.during, step_once());
      blocked += together([&] { result = saving.writer.poll(); });
    }
    require(result->is_saved && result->fault.empty(), ExitCode::failed, result->fault);
    num_bytes_ = result->num_bytes;
    add(round, saving.blocked, blocked);
    add(round, saving.until_safe, result->write_s);
  }

  static double ms(const std::vector<double>& seconds) { return 1e3 * perf::median(seconds); }

  void print() const {
    fmt::print("{} MiB on tp {} x dp {}{}, {} rounds\n  plain copy of a share {:8.1f} ms\n",
               num_bytes_ >> 20, sizes_.tp, sizes_.dp, sizes_.zero > 0 ? ", ZeRO" : "",
               sizes_.rounds, ms(copy_));
    print(paced_);
    print(unpaced_);
  }

  void print(const Saving& saving) const {
    const double worst = 1e3 * *std::max_element(saving.blocked.begin(), saving.blocked.end());
    fmt::print(
        "{}\n"
        "  start()               {:8.1f} ms\n"
        "  all that steps wait   {:8.1f} ms a save, {:.1f} at most: the copy + {:.1f}\n"
        "  until it is committed {:8.1f} ms, {} steps in all\n"
        "  a step alone          {:8.1f} ms\n"
        "  a step during a save  {:8.1f} ms, {:.2f} x\n",
        saving.name, ms(saving.start), ms(saving.blocked), worst, ms(saving.blocked) - ms(copy_),
        ms(saving.until_safe), saving.during.size(), ms(saving.alone), ms(saving.during),
        ms(saving.during) / ms(saving.alone));
  }

  Sizes sizes_;
  Communicator world_;
  Trainer trainer_;
  std::vector<float> from_, to_;
  Saving paced_, unpaced_;  // end before the trainer
  std::uint64_t num_bytes_ = 0;
  std::vector<double> copy_;
};

Sizes read_sizes(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.folder = argv[1];
  perf::read_arguments(
      argc - 1, argv + 1,
      {&sizes.mib, &sizes.rounds, &sizes.steps, &sizes.tp, &sizes.dp, &sizes.zero});
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run_on_mpi_ranks(
      argc, argv, [](int left, char** words, Transport& transport, const TrainingData& data) {
        Bench(read_sizes(left, words), transport, data).run();
      });
}
