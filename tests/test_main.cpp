// The Catch2 main of every test program, compiled once. Prints the random seed on failure (Catch2's
// own option --rng-seed repeats a run).
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "core/kokkos_session.hpp"

int main(int argc, char* argv[]) {
  const weft::KokkosSession kokkos(4);  // at most four threads; a Device takes fewer
  return Catch::Session().run(argc, argv);
}
