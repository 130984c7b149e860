// The command line of `weft drill`, beside the plan and the data.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/drill_command.hpp"

namespace weft {

void add_drill_arguments(CLI::App& drill, DrillOptions& options);

}  // namespace weft
