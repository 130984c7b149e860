#include "parallel/comm/core_use.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/host_name.hpp"

namespace weft {

namespace {

std::ptrdiff_t num_cores(const std::string& cores) {
  return std::count(cores.begin(), cores.end(), '1');
}

bool shares_a_core(const CoreUse& a, const CoreUse& b) {
  if (a.host != b.host) return false;
  const std::size_t both = std::min(a.cores.size(), b.cores.size());
  for (std::size_t i = 0; i < both; ++i)
    if (a.cores[i] == '1' && b.cores[i] == '1') return true;
  return false;
}

}  // namespace

CoreUse CoreUse::mine(int num_threads) {
  CoreUse use{.host = {}, .cores = {}, .num_threads = num_threads};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, use.host)) use.host = host_name();
  // Where the system does not tell, there is none to spare.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return use;
  for (int core = 0; core < CPU_SETSIZE; ++core) use.cores += CPU_ISSET(core, &allowed) ? '1' : '0';
  use.cores.resize(use.cores.rfind('1') + 1);
  return use;
}

std::string CoreUse::text() const {
  return std::to_string(num_threads) + " " + (cores.empty() ? "0" : cores) + " " + host;
}

CoreUse CoreUse::from_text(const std::string& text) {
  CoreUse use;
  std::istringstream words(text);
  words >> use.num_threads >> use.cores >> std::ws;
  std::getline(words, use.host);
  return use;
}

bool has_idle_core(const std::vector<CoreUse>& ranks, std::size_t me) {
  // A new thread is bound as this process is.
  if (num_cores(ranks[me].cores) <= ranks[me].num_threads) return false;
  std::string cores;
  int num_threads = 0;
  for (const CoreUse& other : ranks) {
    if (!shares_a_core(ranks[me], other)) continue;
    num_threads += other.num_threads;
    cores.resize(std::max(cores.size(), other.cores.size()), '0');
    for (std::size_t i = 0; i < other.cores.size(); ++i)
      if (other.cores[i] == '1') cores[i] = '1';
  }
  return num_threads < num_cores(cores);
}

}  // namespace weft
