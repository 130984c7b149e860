// The schedules that a plan can ask for, as lists of computations alone: lower() adds the messages.
// In all of them a stage takes microbatches in increasing order, forward and backward alike
// (EXACT 3.14), so that they add a stage's gradients up in the same order.
#pragma once

#include <string_view>

#include "parallel/pipeline/schedule.hpp"

namespace weft::pipeline {

// All forwards, then all backwards (Huang et al., "GPipe", 2019; there the backwards run last in,
// first out, which is another order of sums). A stage holds the activations of all microbatches.
Schedule gpipe(int num_stages, index_t num_microbatches);

// One forward, one backward ("PipeDream-Flush", Narayanan et al. 2021): stage s of
// p does p-1-s forwards to fill the pipeline, then takes turns, then the backwards that are left.
// It holds min(p-s, m) activations, and idles as long as gpipe does.
Schedule one_f_one_b(int num_stages, index_t num_microbatches);

// Evaluation: no backward, nothing held.
Schedule forward_only(int num_stages, index_t num_microbatches);

// By a plan's layout.schedule: "gpipe" or "1f1b"; another name is an Error(usage).
Schedule make_schedule(std::string_view name, int num_stages, index_t num_microbatches);

}  // namespace weft::pipeline
