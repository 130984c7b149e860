// Compares the copies of a run's state while it trains (parallel/data/replica_check): every so many
// steps, and before each checkpoint, since a checkpoint has one of the copies and would hide that
// the other differed. A run whose copies differ ends before anything more is saved.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/trainer.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

class ReplicaWatch {
 public:
  // `plan` must outlive it.
  explicit ReplicaWatch(const Plan& plan) : plan_(plan) {}

  // Collective; after a step, on all ranks with the same `saves_now`: a checkpoint comes next.
  // Where copies differ: `tell` on each rank what is wrong, then throws AgreedError(failed). That
  // code is not one that batch scripts start again after: the next run might land on the same
  // memory.
  void after_step(Trainer& trainer, bool saves_now,
                  const std::function<void(const std::string& fault)>& tell = {});

  // For summary.json: how often, and what it took here.
  nlohmann::ordered_json json() const;

 private:
  bool is_due(index_t steps_done, bool saves_now) const;

  const Plan& plan_;
  index_t num_checks_ = 0;
  std::int64_t spent_ns_ = 0;
};

}  // namespace weft
