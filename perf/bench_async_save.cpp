// What steps wait for where checkpoints are written meanwhile: the time of
// CheckpointWriter::start() and of all polls of a save, beside a plain copy of as many bytes in the
// same run; and the time of steps while a save is under way, beside that of steps without. Rounds
// of `STEPS` steps alone, then a save and the steps until it is over. Medians, and the largest
// blocking time.
//
//   apps/launch.sh N build/release/perf/bench_async_save FOLDER MIB ROUNDS STEPS TP DP ZERO
//
// FOLDER takes MIB three times. With a rank a core the writers' threads compete with the steps.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer.hpp"
#include "core/kokkos_session.hpp"
#include "io/checkpoint/checkpoint_writer.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "perf/one_rank.hpp"

namespace {

using namespace weft;

struct Sizes {
  std::string folder = ".";
  index_t mib = 488, rounds = 5, steps = 8, tp = 1, dp = 1, zero = 0;
};

Plan plan_of(const Sizes& sizes) {
  Plan plan;
  plan.name = "async_save";
  plan.task.train = 4000;
  plan.task.validation = 1000;
  plan.model.hidden = 768;
  // A block: two matrices of 4 hidden^2 values; AdamW keeps two more numbers a value.
  const index_t block_bytes = 3 * 4 * 8 * plan.model.hidden * plan.model.hidden;
  plan.model.layers = std::max<index_t>(1, (sizes.mib << 20) / block_bytes);
  plan.batch.micro = 16;
  plan.batch.global = 64;
  plan.numerics.shards = 4;
  plan.numerics.lanes = 4;
  plan.run.steps = 1 << 20;
  plan.layout.tp = sizes.tp;
  plan.layout.dp = sizes.dp;
  plan.layout.zero = sizes.zero;
  return plan;
}

class Bench {
 public:
  Bench(const Sizes& sizes, Transport& transport, const Cifar10& data)
      : sizes_(sizes),
        world_(transport, nullptr, "bench", 60, all_ranks(transport)),
        split_(make_split(data.num_samples(Cifar10::Part::training), 4000, 1000, 7)),
        trainer_(plan_of(sizes), data, split_, transport),
        writer_(world_,
                {.folder = sizes.folder,
                 .retention = {.keep = 1},
                 .read_back = true,
                 .program = "bench",
                 .plan_name = "async_save",
                 .layout = ""},
                {}) {
    writer_.make_staging(trainer_.context().arena, trainer_.state(), trainer_.share_to_write());
    const auto elements = static_cast<std::size_t>(trainer_.share_to_write().num_elements());
    from_.assign(elements * trainer_.state().kinds.size(), 1.0f);
    to_.assign(from_.size(), 0.0f);
  }

  void run() {
    for (index_t round = 0; round <= sizes_.rounds; ++round) {
      for (index_t step = 0; step < sizes_.steps; ++step) add(round, alone_, step_once());
      add(round, copy_,
          together([&] { std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float)); }));
      save_once(round);
    }
    if (world_.rank() == 0) print();
  }

 private:
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

  void save_once(index_t round) {
    std::optional<SaveResult> result;
    double blocked =
        together([&] { result = writer_.start(trainer_.state(), trainer_.progress()); });
    add(round, start_, blocked);
    while (!result) {
      add(round, during_, step_once());
      blocked += together([&] { result = writer_.poll(); });
    }
    require(result->is_saved && result->fault.empty(), ExitCode::failed, result->fault);
    num_bytes_ = result->num_bytes;
    add(round, blocked_, blocked);
    add(round, until_safe_, result->write_s);
  }

  void print() const {
    const auto ms = [](const std::vector<double>& seconds) { return 1e3 * perf::median(seconds); };
    const double worst = 1e3 * *std::max_element(blocked_.begin(), blocked_.end());
    fmt::print(
        "{} MiB on tp {} x dp {}{}, {} rounds\n"
        "  plain copy of a share {:8.1f} ms\n"
        "  start()               {:8.1f} ms\n"
        "  all that steps wait   {:8.1f} ms a save, {:.1f} at most: the copy + {:.1f}\n"
        "  until it is committed {:8.1f} ms, {} steps in all\n"
        "  a step alone          {:8.1f} ms\n"
        "  a step during a save  {:8.1f} ms, {:.2f} x\n",
        num_bytes_ >> 20, sizes_.tp, sizes_.dp, sizes_.zero > 0 ? ", ZeRO" : "", sizes_.rounds,
        ms(copy_), ms(start_), ms(blocked_), worst, ms(blocked_) - ms(copy_), ms(until_safe_),
        during_.size(), ms(alone_), ms(during_), ms(during_) / ms(alone_));
  }

  Sizes sizes_;
  Communicator world_;
  Split split_;
  Trainer trainer_;
  std::vector<float> from_, to_;
  CheckpointWriter writer_;  // ends before the trainer
  std::uint64_t num_bytes_ = 0;
  std::vector<double> alone_, copy_, start_, blocked_, until_safe_, during_;
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
  const auto session = make_session(&argc, &argv);
  const Sizes sizes = read_sizes(argc, argv);
  try {
    const KokkosSession kokkos(1);
    const auto transport = make_transport("mpi", *session);
    if (session->rank() == 0) perf::data_folder();
    session->all_gather("the data set", "");
    const Cifar10 data(perf::data_folder());
    Bench(sizes, *transport, data).run();
  } catch (const std::exception& error) {
    session->abort(ExitCode::failed, error.what());
  }
  return 0;
}
