#include "parallel/comm/transport_registry.hpp"

#include <cstdio>

#include "parallel/comm/local_transport.hpp"
#ifdef WEFT_WITH_MPI
#include "parallel/comm/mpi_session.hpp"
#include "parallel/comm/mpi_transport.hpp"
#endif
#ifdef WEFT_WITH_UCX
#include "parallel/comm/ucx_transport.hpp"
#endif

namespace weft {

namespace {

using Factory = std::unique_ptr<Transport> (*)(Session&);

struct Entry {
  std::string name;
  Factory make;
};

std::unique_ptr<Transport> make_local_transport(Session& session) {
  require(session.size() == 1, ExitCode::usage,
          "comm.transport is 'local', which serves one rank, but " +
              std::to_string(session.size()) + " were started; use comm.transport = \"auto\"");
  return LocalWorld(1).make_transport(0);
}

std::vector<Entry> entries() {
  return {
#ifdef WEFT_WITH_UCX
      {"ucx", make_ucx_transport},
#endif
#ifdef WEFT_WITH_MPI
      {"mpi", make_mpi_transport},
#endif
      {"local", make_local_transport},
  };
}

// Once a run: `weft layouts` opens many transports.
[[maybe_unused]] void say_why_not_ucx(const Session& session, const char* why) {
  static bool is_said = false;
  if (is_said || session.rank() != 0) return;
  is_said = true;
  std::fprintf(stderr, "comm.transport \"auto\" takes \"%s\": %s\n",
               std::string(session.own_transport()).c_str(), why);
}

// A choice nobody asked for by name must not fail: where UCX does not work, what the session is
// made of does.
std::unique_ptr<Transport> make_automatic_transport(Session& session) {
  if (session.size() == 1) return make_local_transport(session);
#ifdef WEFT_WITH_UCX
  try {
    return make_ucx_transport(session);
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;  // a dead peer, not a missing interface
    say_why_not_ucx(session, error.what());
  }
#endif
  return make_transport(session.own_transport(), session);
}

}  // namespace

std::unique_ptr<Session> make_session([[maybe_unused]] int* argc, [[maybe_unused]] char*** argv) {
#ifdef WEFT_WITH_MPI
  return make_mpi_session(argc, argv);
#else
  return make_session_of_one();
#endif
}

std::vector<std::string> built_in_transports() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Transport> make_transport(std::string_view name, Session& session) {
  if (name == "auto") return make_automatic_transport(session);
  std::string built_in = "auto";
  for (const Entry& entry : entries()) {
    if (name == entry.name) return entry.make(session);
    built_in += ", " + entry.name;
  }
  std::string remedy = "use one of them";
  if (name == "ucx") remedy = "build with -DWEFT_UCX=ON, or set comm.transport = \"auto\"";
  if (name == "mpi") remedy = "build with -DWEFT_MPI=ON, or set comm.transport = \"auto\"";
  throw Error(ExitCode::usage, "comm.transport is '" + std::string(name) +
                                   "', which this build does not have; built in: " + built_in +
                                   ". Please " + remedy);
}

}  // namespace weft
