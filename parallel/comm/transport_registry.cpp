#include "parallel/comm/transport_registry.hpp"

#include "parallel/comm/local_transport.hpp"
#ifdef WEFT_WITH_MPI
#include "parallel/comm/mpi_transport.hpp"
#endif

namespace weft {

namespace {

using Factory = std::unique_ptr<Transport> (*)(int* argc, char*** argv);

struct Entry {
  std::string name;
  Factory make;
};

std::unique_ptr<Transport> make_local_transport(int*, char***) {
  return LocalWorld(1).make_transport(0);
}

// What "auto" prefers comes first.
std::vector<Entry> entries() {
  return {
#ifdef WEFT_WITH_MPI
      {"mpi", make_mpi_transport},
#endif
      {"local", make_local_transport},
  };
}

}  // namespace

std::vector<std::string> built_in_transports() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Transport> make_transport(std::string_view name, int* argc, char*** argv) {
  std::string built_in = "auto";
  for (const Entry& entry : entries()) {
    if (name == entry.name || name == "auto") return entry.make(argc, argv);
    built_in += ", " + entry.name;
  }
  throw Error(ExitCode::usage, "comm.transport is '" + std::string(name) +
                                   "', which this build does not have; built in: " + built_in);
}

}  // namespace weft
