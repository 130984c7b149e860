// Writing a plan: TOML text and its hash. A file of its own because it needs no TOML library.
#include <fmt/format.h>
#include <xxhash.h>

#include "io/plan_file.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

std::string to_toml(const Plan& plan) {
  std::string text = "# Resolved plan: every key in use, defaults included.\n";
  std::string section;
  for (const PlanKey& key : plan_keys()) {
    const std::string value = value_text(key, plan);
    if (value.empty() || !is_used(key, plan)) continue;
    const std::size_t dot = key.name.find('.');
    const std::string table = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (table != section) text += fmt::format("\n[{}]\n", table);
    section = table;
    text += fmt::format("{} = {}\n", table.empty() ? key.name : key.name.substr(dot + 1), value);
  }
  return text;
}

std::string plan_fingerprint(const Plan& plan, FingerprintOf part) {
  std::string text;
  for (const PlanKey& key : plan_keys()) {
    const std::string value = value_text(key, plan);
    if (value.empty() || !is_used(key, plan)) continue;
    if (part == FingerprintOf::result && key.scope != KeyScope::result) continue;
    text += fmt::format("{} = {}\n", key.name, value);
  }
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace weft
