#include "tests/oracle/training.hpp"

#include <utility>

namespace weft::oracle {

Training::Training(const std::string& model, const OptimizerSettings& settings,
                   NamedMatrices parameters, const NamedMatrices& zeros,
                   std::set<std::string> undecayed)
    : settings_(settings),
      parameters_(std::move(parameters)),
      first_(zeros),
      second_(zeros),
      undecayed_(std::move(undecayed)) {
  expect(parameters_.size() == zeros.size(), model + ": number of parameters");
  for (const auto& [name, zero] : zeros) {
    expect(parameters_.contains(name), model + ": no parameter " + name);
    expect_same_shape(parameters_.at(name), zero, model + ": " + name);
    expect(parameters_.at(name).dims == zero.dims, model + ": dims of " + name);
  }
}

double Training::lr_at(std::int64_t step) const {
  return settings_.schedule == ScheduleKind::constant
             ? constant_schedule(settings_.lr)
             : cosine_schedule(settings_.lr, step, settings_.warmup_steps, settings_.total_steps,
                               settings_.final_fraction);
}

TrainStep Training::update(BatchGradients batch) {
  TrainStep step;
  step.loss = batch.loss;
  step.gradients = std::move(batch.gradients);
  step.gradient_norm = global_norm(step.gradients);
  step.clip_factor = clip_factor(step.gradient_norm, settings_.clip_norm);
  step.lr = lr_at(steps_done_);
  ++steps_done_;
  for (auto& [name, p] : parameters_) {
    Matrix g = step.gradients.at(name);
    for (double& value : g.values) value *= step.clip_factor;
    const double decay = undecayed_.contains(name) ? 0.0 : decay_of(p, settings_.weight_decay);
    if (settings_.kind == OptimizerKind::sgd) {
      sgd_update(p, first_.at(name), g, step.lr, settings_.momentum, decay);
    } else {
      adamw_update(p, first_.at(name), second_.at(name), g, steps_done_, step.lr, decay,
                   settings_.adamw);
    }
  }
  return step;
}

}  // namespace weft::oracle
