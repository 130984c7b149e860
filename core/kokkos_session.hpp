// Kokkos from start to end of a program. The number of threads is the program's, never the
// environment's or the binding's.
#pragma once

namespace weft {

class KokkosSession {
 public:
  // `num_threads`: of the host's execution space, at most.
  explicit KokkosSession(int num_threads);
  ~KokkosSession();
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;
};

}  // namespace weft
