// A session of the processes that mpirun or srun started: MPI's start and end. mpi.h stays behind
// mpi_calls.hpp.
#pragma once

#include <memory>

#include "parallel/comm/session.hpp"

namespace weft {

// Collective over the run. Initialises MPI, unless that has been done; the session's end then ends
// it. `argc`, `argv`: main's, or null. Throws Error(peer) where MPI reports an error.
std::unique_ptr<Session> make_mpi_session(int* argc, char*** argv);

}  // namespace weft
