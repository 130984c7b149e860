// A legal plan for tests to spoil, and the means to follow the advice of a fault.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel/plan/plan_keys.hpp"

namespace weft::testing {

// hidden 48 x 4 = 192 wide, 4 shards, 4 lanes, 128 = 16 x 2 x 4.
inline Plan sample_plan() {
  Plan plan;
  plan.name = "sample";
  plan.model.layers = 2;
  plan.model.hidden = 48;
  plan.batch.global = 128;
  plan.batch.micro = 16;
  plan.optimizer.lr = 1e-3;
  plan.run.steps = 20;
  return plan;
}

// The same as a ViT: 64 tokens, 4 heads of 12.
inline Plan sample_vit() {
  Plan plan = sample_plan();
  plan.model.kind = "vit";
  plan.model.heads = 4;
  return plan;
}

// A generator of text whose head is its embedding: 8 tokens of 256.
inline Plan sample_gpt() {
  Plan plan = sample_plan();
  plan.task.dataset = "text";
  plan.task.tokens = 8;
  plan.task.test = 5000;
  plan.model.kind = "gpt";
  plan.model.heads = 4;
  return plan;
}

// The value of a fix, which is TOML, without a TOML library: strings, integers, numbers and lists.
inline KeyValue value_of(const std::string& text) {
  if (text.front() == '"') return text.substr(1, text.size() - 2);
  if (text.front() == '[') {
    std::vector<double> numbers;
    for (std::size_t at = 0; at != std::string::npos; at = text.find(',', at + 1)) {
      numbers.push_back(std::stod(text.substr(at + 1)));
    }
    if (text.find_first_of(".e") != std::string::npos) return numbers;
    return std::vector<index_t>(numbers.begin(), numbers.end());
  }
  if (text == "true" || text == "false") return text == "true";
  if (text.find_first_of(".e") != std::string::npos) return std::stod(text);
  return index_t{std::stoll(text)};
}

inline Plan with_fix(Plan plan, const PlanFix& fix) {
  for (const PlanChange& change : fix) {
    const PlanKey* key = find_key(change.key);
    if (key == nullptr || !assign(*key, plan, value_of(change.value))) {
      throw std::logic_error("fix that cannot be made: " + change.key + " = " + change.value);
    }
  }
  return plan;
}

using Spoil = std::function<void(Plan&)>;

// "key: message" of each fault of the sample plan with a change, a line each.
inline std::string faults_of(const Spoil& spoil, std::optional<index_t> num_ranks = std::nullopt) {
  Plan plan = sample_plan();
  spoil(plan);
  std::string text;
  for (const PlanFault& fault : validate(plan, num_ranks)) {
    text += (text.empty() ? "" : "\n") + fault.key + ": " + fault.message;
  }
  return text;
}

}  // namespace weft::testing
