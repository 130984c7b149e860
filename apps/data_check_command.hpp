// `weft data check`: damaged rows, equal images and leaks between splits of a data folder.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "core/range.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// Reads every byte of the folder. The training images are split as `task` says; without one, as a
// plan's default does where the set is large enough, else nine of ten to train. Text for people to
// `text`, with `json` one line to `out` in its place. Returns the exit code: 5 for a damaged row,
// else 1 for an image that is in two splits, else 0. Throws Error(data) where the files are not
// there or of wrong sizes, Error(usage) where the split is not legal.
int data_check(const std::string& path, const std::optional<TaskPlan>& task, bool json,
               std::ostream& text, std::ostream& out);

}  // namespace weft
