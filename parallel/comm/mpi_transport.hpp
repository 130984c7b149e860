// Messages by MPI. Only point-to-point calls: MPI's reductions promise no order of sums.
#pragma once

#include <memory>

#include "parallel/comm/session.hpp"
#include "parallel/comm/transport.hpp"

namespace weft {

// Collective over the session, which make_mpi_session made (or a part of it) and which outlives the
// transport. So is the transport's end. Throws Error(peer) where MPI reports an error.
std::unique_ptr<Transport> make_mpi_transport(Session& session);

}  // namespace weft
