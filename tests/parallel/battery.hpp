// What every transport must pass, as plain functions of one: ranks that are threads and ranks under
// mpirun run the same. A fault throws std::runtime_error that says what was being done.
#pragma once

#include "parallel/comm/transport.hpp"

namespace weft {

// Collective over the transport's ranks, any number of them. `full`: every leaf count from 1 to 69.
void run_battery(Transport& transport, bool full);

}  // namespace weft
