// The command line of `weft async`, beside the plan and the data.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/async_command.hpp"

namespace weft {

void add_async_arguments(CLI::App& command, AsyncOptions& options);

}  // namespace weft
