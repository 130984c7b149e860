#include "core/kokkos_session.hpp"

#include <Kokkos_Core.hpp>

namespace weft {

KokkosSession::KokkosSession(int num_threads) {
  // 3.7 replaced the arguments' type; both are in the range of versions that weft builds against.
#if KOKKOS_VERSION < 30700
  Kokkos::InitArguments settings;
  settings.num_threads = num_threads;
  settings.disable_warnings = true;
#else
  Kokkos::InitializationSettings settings;
  settings.set_num_threads(num_threads);
  settings.set_disable_warnings(true);
#endif
  Kokkos::initialize(settings);
}

KokkosSession::~KokkosSession() { Kokkos::finalize(); }

}  // namespace weft
