// Where a plan's table lies, and which rows of a set are which part of it: the same for training
// and for `weft data check`.
#pragma once

#include <string>
#include <vector>

#include "apps/skipped_rows.hpp"
#include "io/cifar10.hpp"
#include "io/split.hpp"
#include "io/tables/bank.hpp"
#include "io/text/ag_news.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// Which rows of a table, or of a set with a test part of its own (behind its training part), are
// which part. Throws Error(usage) where there are too few, which says so where some were left out.
Split split_of(const TaskPlan& task, const Cifar10& images);
Split split_of(const TaskPlan& task, const Bank& bank);
Split split_of(const TaskPlan& task, const AgNews& news);

// Of each file of a set its rows that were left out.
std::vector<SkippedRows> skipped_of(const Bank& bank);
std::vector<SkippedRows> skipped_of(const AgNews& news);

// The table that the plan names, in the folder or in its subfolder bank/; else Error(data).
std::string bank_table_in(const std::string& folder, const std::string& table);

}  // namespace weft
