// Sessions and transports by name: the only place that knows which ones this build has.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/session.hpp"
#include "parallel/comm/transport.hpp"

namespace weft {

// Collective over the run: this process' session, made once. Processes that mpirun or srun started
// find each other by MPI; without MPI in the build it has one process. `argc`, `argv`: main's.
// Whoever holds it keeps it outside of main's try block, and calls abort() for an error it catches
// that the other ranks do not know of.
std::unique_ptr<Session> make_session(int* argc, char*** argv);

// The names that make_transport takes in this build, besides "auto".
std::vector<std::string> built_in_transports();

// Collective over the session, which outlives the transport. "auto": for one rank "local"; else
// "ucx" where it is built in and works on all ranks; else the session's own. Throws Error(usage),
// on all ranks alike, for a name that is not built in or cannot serve this session.
std::unique_ptr<Transport> make_transport(std::string_view name, Session& session);

}  // namespace weft
