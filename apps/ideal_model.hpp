// The idealized model of a training step: how long one takes on N devices if what can be shared out
// is shared out evenly and the rest stays. Arithmetic alone; it forecasts no machine. The page of
// `weft report` does the same in JavaScript (report/ideal.js), operation by operation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

// Strong: the global batch is fixed. Weak: the batch of each replica is, so the global one grows.
enum class Scaling { strong, weak };
std::string name_of(Scaling scaling);
// Of --scaling. Throws Error(usage) for another word.
Scaling parse_scaling(const std::string& text);

// Times in milliseconds; as they stand here they are those of the model that the defaults of
// `weft ideal` show.
struct IdealModel {
  double compute_ms = 72.0;        // forward and backward of `batch` on one device
  double fixed_ms = 12.0;          // data wait and update: what each device does whole
  double communication_ms = 18.0;  // of each step, from two devices on
  double hidden_ms = 0.0;          // of that, behind computing that goes on meanwhile
  double split_ms = 0.0;           // that a part of the computing takes longer than its share
  double batch = 128.0;            // effective samples of a step on one device
  index_t stages = 1;              // of the pipeline: N / stages replicas
  index_t microbatches = 1;        // that a replica sends through it
  Scaling scaling = Scaling::strong;

  friend bool operator==(const IdealModel&, const IdealModel&) = default;
};

// m / (m + p - 1): the part of its time that each of p equally long stages works, where m
// microbatches run through them.
double ideal_busy_share(index_t num_stages, index_t num_microbatches);

// A step on some number of devices. Its milliseconds add up to step_ms.
struct IdealStep {
  index_t devices;
  double batch;       // effective samples
  double compute_ms;  // of one device, with what splitting costs
  double bubble_ms;
  double fixed_ms;
  double exposed_ms;  // communication that is not hidden
  double step_ms;
  double samples_per_s;
  double speed_up;    // of samples per second, against one device: with a fixed batch, of step time
  double efficiency;  // speed-up by devices
  double device_s;    // devices x seconds
  double updates;     // of an epoch, as a share of those on one device
};

// What is wrong with it on `devices` devices, and what would be right; empty: nothing.
std::string fault_of(const IdealModel& model, index_t devices);
// On one device there is no pipeline and no communication. Needs a model without fault there.
IdealStep ideal_step(const IdealModel& model, index_t devices);

// A synchronous update of devices that compute so long: each waits for the slowest.
struct SlowestRank {
  std::size_t rank;           // the first of the slowest
  double step_ms;             // its time
  std::vector<double> waits;  // of each for it
  double mean_ms;             // of the times: what a step of even devices would take
};
SlowestRank slowest_of(const std::vector<double>& local_ms);

}  // namespace weft
