// A run's records as the charts of TensorBoard (io/tensorboard_log.hpp): which number has which
// tag.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "io/run_log.hpp"
#include "io/tensorboard_log.hpp"

namespace weft {

// The numbers of a line of run.jsonl, by their names there: times as time/step_ms, the others as
// train/loss.
std::vector<TaggedValue> tagged(const StepRecord& record);

// The metrics of a line of eval.jsonl: validation/loss, and of classes validation_f1/CLASS. What is
// undefined there (null) has no value; an allowed leak is 1, as in run.jsonl.
std::vector<TaggedValue> tagged(const nlohmann::ordered_json& evaluation);

}  // namespace weft
