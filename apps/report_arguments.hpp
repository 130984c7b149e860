// The command line of `weft ideal`: options and help.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/ideal_command.hpp"

namespace weft {

// `options` are filled in when the line is parsed.
void add_ideal(CLI::App& app, IdealOptions& options);

}  // namespace weft
