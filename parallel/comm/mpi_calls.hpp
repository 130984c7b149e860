// What the two files that call MPI share. Nobody else includes it.
#pragma once

#include <mpi.h>

#include "parallel/comm/session.hpp"

namespace weft {

// Throws Error(peer) with MPI's own text unless `status` is MPI_SUCCESS.
void check_mpi(int status, const char* call);

// Collective over `comm`: a copy that reports errors, which are ours to name, instead of ending the
// program.
MPI_Comm duplicate(MPI_Comm comm);

// The communicator of a session that make_mpi_session made; Error(usage) for another.
MPI_Comm communicator_of(Session& session);

}  // namespace weft
