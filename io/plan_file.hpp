// The plan as a TOML document: reading with line numbers in every message, --set, writing the
// resolved plan, and the hash by which ranks and checkpoints compare plans. Which keys exist and
// what they mean is in parallel/plan.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/plan.hpp"

namespace weft {

// Reads and validates a plan. Each of `overrides` is KEY=VALUE; VALUE is read as TOML, and what is
// not TOML is a string. A later override of a key wins; overriding a table replaces all of it, and
// overriding one of run.steps and run.epochs replaces the other one in the file.
// Throws one Error(ExitCode::usage) that lists every fault, one a line, with its place:
//   plan.toml:12:3: batch.globl: unknown key; did you mean batch.global?
//   --set layout.tp=3: layout.tp: expected ...
// `num_ranks`: ranks started, if they are to match the layout. Local; no device is touched.
Plan load_plan(const std::filesystem::path& path, const std::vector<std::string>& overrides = {},
               std::optional<index_t> num_ranks = std::nullopt);

// The same from text; `file` is the name in messages, and its stem the plan's name.
Plan parse_plan(std::string_view text, const std::string& file,
                const std::vector<std::string>& overrides = {},
                std::optional<index_t> num_ranks = std::nullopt);

// The resolved plan: every key that the plan uses, defaults included, readable to the equal plan.
std::string to_toml(const Plan& plan);

// Hash of the resolved plan in 32 hexadecimal digits. `result`: what decides the result, so not the
// name, the data's path, layout and transport; equal before and after a resume on another layout.
// `all`: everything; equal on all ranks of a run.
enum class FingerprintOf { result, all };
std::string plan_fingerprint(const Plan& plan, FingerprintOf part = FingerprintOf::result);

// A key that decides the result and that differs between two plans; what one of them does not use
// or set is empty.
struct PlanDifference {
  std::string key;
  std::string before;  // as TOML
  std::string now;
  // Whether steps that both plans take can differ. Not for evaluation, and not for the run's length
  // unless the learning rate follows it.
  bool changes_training = true;
};

// In the order of the table of keys. Empty where the fingerprints of `result` are equal. The layout
// is never among them; in fast mode, where it does change bits, no result is promised over it.
std::vector<PlanDifference> plan_differences(const Plan& before, const Plan& now);

}  // namespace weft
