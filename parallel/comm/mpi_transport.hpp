// Messages by MPI, and MPI's start and end. Only point-to-point calls: MPI's reductions promise no
// order of sums. mpi.h and MPI_COMM_WORLD appear in the .cpp alone.
#pragma once

#include <memory>

#include "parallel/comm/transport.hpp"

namespace weft {

// Collective over the run. Initialises MPI, unless that has been done; the transport's destructor,
// collective too, ends it then. All calls from the thread that called this. Throws Error(peer)
// where MPI reports an error. `argc` and `argv` may be null.
std::unique_ptr<Transport> make_mpi_transport(int* argc, char*** argv);

}  // namespace weft
