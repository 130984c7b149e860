// Messages by UCX: shared memory inside a host, the fastest network between hosts. UCX's headers
// appear in the .cpp alone.
#pragma once

#include <memory>

#include "parallel/comm/session.hpp"
#include "parallel/comm/transport.hpp"

namespace weft {

// Collective over the session, which outlives the transport. So is the transport's end, unless an
// exception is on its way. Where UCX does not work on some rank, all ranks throw the same
// Error(usage). Sets those UCX_* variables of the environment that weft needs and the user has not
// set.
std::unique_ptr<Transport> make_ucx_transport(Session& session);

}  // namespace weft
