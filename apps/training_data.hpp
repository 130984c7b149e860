// What a plan trains on and is judged by: its data set, opened, and which samples are which part.
#pragma once

#include <memory>
#include <string>

#include "io/class_balance.hpp"
#include "io/sample_set.hpp"
#include "io/split.hpp"
#include "io/tables/bank.hpp"
#include "io/text/ag_news.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

struct TrainingData {
  std::shared_ptr<const SampleSet> samples;
  Split split;
  ClassBalance balance = {};
};

// Which rows of a table, or of a set of texts (its own test rows behind the training rows), are
// which part. Throws Error(usage) where there are too few.
Split split_of(const TaskPlan& task, const Bank& bank);
Split split_of(const TaskPlan& task, const AgNews& news);

// The table that the plan names, in the folder or in its subfolder bank/; else Error(data).
std::string bank_table_in(const std::string& folder, const std::string& table);

// Throws Error(data) where the folder does not hold what the plan names, Error(usage) where it
// holds too little for the plan's split.
TrainingData open_training_data(const TaskPlan& task, const std::string& folder);

}  // namespace weft
