#include "apps/replica_watch.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/agreement.hpp"
#include "parallel/data/replica_check.hpp"

namespace weft {

bool ReplicaWatch::is_due(index_t steps_done, bool saves_now) const {
  const index_t every = plan_.integrity.replicas_every_steps;
  if (every == 0 || plan_.num_ranks() == 1) return false;
  return saves_now || steps_done % every == 0;
}

void ReplicaWatch::after_step(Trainer& trainer, bool saves_now,
                              const std::function<void(const std::string& fault)>& tell) {
  if (!is_due(trainer.steps_done(), saves_now)) return;
  Trace& trace = trainer.context().trace;
  const Trace::Span span(&trace, Activity::checkpoint, "replica_check");
  const std::int64_t begin_ns = trace.now_ns();
  trainer.context().device.fence();
  const std::string fault = replica_fault(trainer.context().device, trainer.parameters(),
                                          trainer.optimizer(), trainer.mesh(), trainer.tied());
  ++num_checks_;
  spent_ns_ += trace.now_ns() - begin_ns;
  if (fault.empty()) return;
  if (tell) tell(fault);
  throw AgreedError(
      ExitCode::failed,
      fmt::format(
          "step {}: {}. Stopped, and the state of this step was not saved. Go on from the last "
          "checkpoint with --resume auto, on other hosts; where it comes again at the "
          "same place, report it with the plan",
          trainer.steps_done(), fault));
}

nlohmann::ordered_json ReplicaWatch::json() const {
  return {{"replica_checks", num_checks_},
          {"replica_check_ms", static_cast<double>(spent_ns_) * 1e-6}};
}

}  // namespace weft
