// What a plan trains on and is judged by: its data set, opened, and which samples are which part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/skipped_rows.hpp"
#include "io/class_balance.hpp"
#include "io/length_buckets.hpp"
#include "io/sample_set.hpp"
#include "io/sampler.hpp"
#include "io/split.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

struct TrainingData {
  std::shared_ptr<const SampleSet> samples;
  Split split;
  ClassBalance balance = {};
  std::vector<SkippedRows> skipped = {};  // of each file; empty where the plan leaves out none
  LengthBuckets buckets = {};             // of samples for training
};

// Throws Error(data) where the folder does not hold what the plan names, Error(usage) where it
// holds too little for the plan's split.
TrainingData open_training_data(const TaskPlan& task, const std::string& folder);

// Which samples a plan's steps take.
Sampler training_sampler(const Plan& plan, const TrainingData& data);

}  // namespace weft
