// The command line of `weft ckpt`: its subcommands, their options and help, and which function each
// one is.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/ckpt_command.hpp"
#include "apps/ckpt_exchange_command.hpp"
#include "apps/ckpt_prune_command.hpp"
#include "apps/ckpt_reshard_command.hpp"
#include "apps/ckpt_view_command.hpp"

namespace weft {

struct CkptArguments {
  CkptOptions look;
  CkptReshardOptions reshard;
  CkptPruneOptions prune;
  CkptViewOptions view;
  CkptExportOptions to_file;
  CkptImportOptions from_file;
};

// `arguments` are filled in when the line is parsed.
void add_ckpt(CLI::App& app, CkptArguments& arguments);
// What was parsed, on standard output and standard error; the exit code.
int run_ckpt(const CLI::App& ckpt, const CkptArguments& arguments);

}  // namespace weft
