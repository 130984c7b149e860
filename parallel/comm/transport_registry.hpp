// Transports by name: the only place that knows which ones this build has.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/transport.hpp"

namespace weft {

// The names that make_transport takes in this build; "auto" is the first that fits the run.
std::vector<std::string> built_in_transports();

// Collective over the run: the transport of this process, which belongs to its main thread and is
// made once. "mpi": started by mpirun or srun, or a single process. "local": a single process.
// "auto": mpi where it is built in, else local. Throws Error(usage) for another name. `argc`,
// `argv`: main's. Whoever holds it keeps it outside of main's try block, and calls abort() for an
// error it catches.
std::unique_ptr<Transport> make_transport(std::string_view name, int* argc, char*** argv);

}  // namespace weft
