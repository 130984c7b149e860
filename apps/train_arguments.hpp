// The command line of `weft train`: what else it is to record.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/train_command.hpp"

namespace weft {

// --trace, --trace-steps, --tensorboard, filled in when the line is parsed.
void add_records(CLI::App& train, TrainOptions& options, TraceOptions& trace);

}  // namespace weft
