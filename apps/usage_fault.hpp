// What is said of a command line that cannot be read: one message, from one process, with the word
// that was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace weft {

// `app` has thrown `error` from its parse(). Names the word that nothing expected and the nearest
// command or option that stands at its place; else what CLI11 says.
std::string usage_fault(const CLI::App& app, const CLI::ParseError& error);

// Whether this process is to say what all ranks of a job see alike before MPI is up: rank 0 by the
// launcher's own variables (Open MPI, PMI, PMIx, Slurm), or a process alone.
bool is_first_process();

}  // namespace weft
