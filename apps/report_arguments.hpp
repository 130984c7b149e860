// The command lines of `weft ideal` and `weft report`: options and help.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/ideal_command.hpp"
#include "apps/report_command.hpp"

namespace weft {

// `options` are filled in when the line is parsed.
void add_ideal(CLI::App& app, IdealOptions& options);
void add_report(CLI::App& app, ReportOptions& options);

}  // namespace weft
