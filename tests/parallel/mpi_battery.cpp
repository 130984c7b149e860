// The battery on MPI, started by apps/launch.sh: the exit code is the verdict. No test framework:
// its assertions say nothing about the other ranks.
#include <cstdio>
#include <exception>

#include "parallel/comm/transport_registry.hpp"
#include "tests/parallel/battery.hpp"

int main(int argc, char** argv) {
  const auto transport = weft::make_transport("mpi", &argc, &argv);
  try {
    weft::run_battery(*transport, false);
  } catch (const std::exception& error) {
    transport->abort(weft::ExitCode::failed, error.what());
  }
  if (transport->rank() == 0) std::printf("battery passed on %d ranks\n", transport->size());
  return 0;
}
