// Writing a plan: TOML text, its hash, and what differs between two. A file of its own because it
// needs no TOML library.
#include <fmt/format.h>
#include <xxhash.h>

#include "io/plan_file.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

namespace {

std::string used_text(const PlanKey& key, const Plan& plan) {
  return is_used(key, plan) ? value_text(key, plan) : std::string();
}

// A cosine ends with the run, so another length is another learning rate at every step.
bool length_changes_training(const Plan& a, const Plan& b) {
  const auto follows_length = [](const Plan& plan) {
    return plan.optimizer.schedule.kind != "constant";
  };
  return (follows_length(a) || follows_length(b)) && a.num_steps() != b.num_steps();
}

}  // namespace

std::string to_toml(const Plan& plan) {
  std::string text = "# Resolved plan: every key in use, defaults included.\n";
  std::string section;
  for (const PlanKey& key : plan_keys()) {
    const std::string value = used_text(key, plan);
    if (value.empty()) continue;
    const std::size_t dot = key.name.find('.');
    const std::string table = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (table != section) text += fmt::format("\n[{}]\n", table);
    section = table;
    text += fmt::format("{} = {}\n", table.empty() ? key.name : key.name.substr(dot + 1), value);
  }
  return text;
}

std::vector<PlanDifference> plan_differences(const Plan& before, const Plan& now) {
  std::vector<PlanDifference> differences;
  for (const PlanKey& key : plan_keys()) {
    if (key.scope != KeyScope::result) continue;
    PlanDifference difference{key.name, used_text(key, before), used_text(key, now)};
    if (difference.before == difference.now) continue;
    if (key.name.starts_with("eval.")) difference.changes_training = false;
    if (key.name.starts_with("run.")) {
      difference.changes_training = length_changes_training(before, now);
    }
    differences.push_back(std::move(difference));
  }
  return differences;
}

std::string plan_fingerprint(const Plan& plan, FingerprintOf part) {
  std::string text;
  for (const PlanKey& key : plan_keys()) {
    const std::string value = used_text(key, plan);
    if (value.empty()) continue;
    if (part == FingerprintOf::result && key.scope != KeyScope::result) continue;
    text += fmt::format("{} = {}\n", key.name, value);
  }
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace weft
