// Asynchronous data parallel: worker w of a group computes gradients, each of a batch of its own,
// and member 0 applies them one by one, in the order in which they come, as far as the bound on
// staleness lets it. Nobody waits for the others, except where the bound says so. Another
// optimization than the synchronous one: its result depends on who comes when.
//
//   worker w  compute(values of version b, batch)  --- note, gradient --->   member 0: apply,
//             compute(values of version v, batch') <-- task, newest values --          version v
//
// Member 0 works, too: it serves the others whenever its own computing calls poll().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/data/staleness_bound.hpp"

namespace weft {

// What a worker is to compute next.
struct WorkerTask {
  static constexpr index_t none = -1;
  index_t batch = none;  // no more, where it is none
  index_t version = 0;   // of the values that it computes on: updates made before
};

// What goes with a gradient.
struct GradientNote {
  WorkerTask task;
  double loss = 0.0;
  double accuracy = 0.0;
  index_t epoch = 0;
  index_t num_real = 0;         // samples
  std::int64_t compute_ns = 0;  // of data, forward and backward, without serving others
  std::int64_t wait_ns = 0;     // for the task before
};

// The task that worker `worker` begins with, before anyone has heard of anyone.
WorkerTask first_task(int worker, index_t num_batches);

class UpdateServer {
 public:
  struct Update {
    int worker = 0;
    GradientNote note;
    index_t staleness = 0;
  };
  // Applies `gradient` (host memory, which it may change) to the values.
  using Apply = std::function<void(const Update&, float* gradient)>;
  // Writes the newest values to host memory.
  using Values = std::function<void(float* to)>;

  // At member 0 of `workers`, which must outlive it. Values and gradients are `count` floats.
  // Batches 0 .. num_batches-1 are handed out in order. Throws Error(usage) as StalenessBound does.
  UpdateServer(Communicator& workers, index_t count, index_t num_batches, index_t max_staleness,
               Apply apply, Values values);

  // Takes what has come, applies what may be, answers. Never waits. True where messages moved.
  bool poll();
  // Of member 0's own worker: hands the gradient in, serves until it is applied, and brings the
  // newest values.
  WorkerTask exchange(const GradientNote& note, const float* gradient, float* values);
  // Serves until no worker computes any more.
  void finish();

 private:
  struct Worker {
    bool is_computing = false;  // or on its way here
    GradientNote note;
    std::vector<float> gradient;
    std::vector<Request> receiving;  // note and gradient
    WorkerTask task;                 // the answer
    std::vector<float> values;
    std::vector<Request> sending;
  };

  // Starts to receive its next gradient.
  void expect(int worker);
  void take_arrivals();
  void apply_one(int worker);
  void answer(int worker);
  // Until `is_done`: polls, and sleeps in between where nothing comes.
  void serve_until(const std::function<bool()>& is_done);
  WorkerTask next_task();
  std::string late_message() const;

  Communicator& group_;
  index_t count_;
  index_t num_batches_;
  index_t next_batch_;
  StalenessBound bound_;
  Apply apply_;
  Values values_;
  std::vector<Worker> workers_;
  float* own_values_ = nullptr;  // where member 0's own worker wants them
  std::vector<int> arrived_;     // in that order, not applied yet
};

// At the other members.
class UpdateClient {
 public:
  UpdateClient(Communicator& workers, index_t count) : group_(workers), count_(count) {}
  // Hands the gradient in, waits, and brings the newest values.
  WorkerTask exchange(const GradientNote& note, const float* gradient, float* values);

 private:
  Communicator& group_;
  index_t count_;
};

}  // namespace weft
