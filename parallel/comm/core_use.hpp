// Which cores the ranks of a host compute on, and so whether one of them is left for work beside
// the steps. A container's quota of time is not seen: it is no set of cores.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft {

struct CoreUse {
  std::string host;     // the running kernel's id
  std::string cores;    // one letter a core: '1' where the process may run there, else '0'
  int num_threads = 1;  // that compute

  static CoreUse mine(int num_threads);
  std::string text() const;  // for the way to another rank
  static CoreUse from_text(const std::string& text);
};

// Whether rank `me` has a core beside its own threads' and those of the ranks it shares cores with.
// `ranks`: of all ranks, in rank order.
bool has_idle_core(const std::vector<CoreUse>& ranks, std::size_t me);

}  // namespace weft
