// `weft --version`: what this build is made of.
#pragma once

#include <string>

namespace weft {

// Several lines: version, compiler and flags, Kokkos, BLAS, transports.
std::string version_text();
std::string version_number();  // "0.1.0"

}  // namespace weft
