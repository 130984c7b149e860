// Prepares the next steps' samples on one thread of its own while the current step computes. It
// reads only the rows of the lanes that its rank owns, and never calls Kokkos.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "io/batch_reader.hpp"
#include "io/host_batch.hpp"
#include "io/sampler.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

struct LoaderOptions {
  Range lanes;  // of this rank
  index_t micro = 1;
  index_t microbatches_per_lane = 1;
  bool augment = true;
  bool with_input = true;  // false: neither features nor tokens
  std::uint64_t seed = 0;  // numerics.seed
  std::vector<float> class_weights = {};  // of labels; empty: 1
  index_t first_step = 0;
  index_t end_step = std::numeric_limits<index_t>::max();  // nothing is read from here on
  index_t depth = 2;                                       // batches ready beside the one in use
};

// The lanes of replica `dp_rank` by the range rule, and the plan's other numbers.
LoaderOptions loader_options(const Plan& plan, index_t dp_rank);

//   loader's thread:  read 3 | read 4 |  waits for a free batch  | read 5 ...
//   trainer:          next() -> 1 ... compute ... next() -> 2 ... compute ... next() -> 3
class Loader {
 public:
  // Starts reading at once. `data` must outlive the loader.
  Loader(const SampleSet& data, Sampler sampler, const LoaderOptions& options);
  // Stops after the batch being read, if any; waits for the thread.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The batch of the next step, from options.first_step on; blocks until it is ready. The loader
  // owns it, and uses its memory again after the following call. An exception of the loader's
  // thread is rethrown here, after the batches that were ready before it. One thread may call it.
  const HostBatch& next();

 private:
  void run();
  void read_all();
  bool wait_for_free_batch();
  void publish();
  HostBatch& slot_of(index_t count) { return slots_[count % static_cast<index_t>(slots_.size())]; }

  BatchReader reader_;
  Sampler sampler_;
  LoaderOptions options_;
  Range rows_;
  // A ring: the thread owns slot filled_ mod n, the caller slot taken_ - 1 mod n, the ones between
  // wait. Counts only grow.
  std::vector<HostBatch> slots_;

  std::mutex mutex_;
  std::condition_variable changed_;
  index_t filled_ = 0;  // guarded by mutex_, as the following
  index_t taken_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace weft
