#include "core/finite_check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor.hpp"

namespace weft {

bool all_finite(const float* device, index_t n) {
  constexpr index_t chunk = index_t{1} << 16;
  std::vector<float> host(static_cast<std::size_t>(std::min(n, chunk)));
  for (index_t done = 0; done < n; done += chunk) {
    const index_t here = std::min(chunk, n - done);
    copy_to_host(host.data(), device + done, here * index_t{sizeof(float)});
    if (!std::all_of(host.begin(), host.begin() + here, [](float x) { return std::isfinite(x); }))
      return false;
  }
  return true;
}

}  // namespace weft
