#include "core/optimizer.hpp"

#include <cmath>

namespace weft {

namespace {

Tensor make_state(Context& context, const ParameterSet& parameters) {
  Tensor state(context.arena, MemoryKind::optimizer, {parameters.flat_elements()});
  fill_zero(state.raw(), state.num_bytes());
  return state;
}

class AdamW final : public Optimizer {
 public:
  AdamW(Context& context, const ParameterSet& parameters, const AdamWOptions& options)
      : options_(options),
        exp_avg_(make_state(context, parameters)),
        exp_avg_sq_(make_state(context, parameters)) {}

  void update(Context& context, const ParameterSet& parameters,
              const UpdateScalars& scalars) override {
    // No running products of beta: powers of the integer step.
    const double t = static_cast<double>(scalars.step + 1);
    const double correction1 = 1.0 - std::pow(options_.beta1, t);
    const double correction2 = 1.0 - std::pow(options_.beta2, t);
    const auto clip = static_cast<float>(scalars.clip_factor);
    const auto step_size = static_cast<float>(scalars.learning_rate / correction1);
    const auto root_correction = static_cast<float>(1.0 / std::sqrt(correction2));
    const auto beta1 = static_cast<float>(options_.beta1);
    const auto beta2 = static_cast<float>(options_.beta2);
    const auto rest1 = static_cast<float>(1.0 - options_.beta1);
    const auto rest2 = static_cast<float>(1.0 - options_.beta2);
    const auto eps = static_cast<float>(options_.eps);
    for (const auto& p : parameters.all()) {
      const auto keep =
          static_cast<float>(p->decays ? 1.0 - scalars.learning_rate * options_.weight_decay : 1.0);
      float* value = p->value;
      const float* gradient = p->gradient;
      float* m = exp_avg_.data() + p->offset;
      float* v = exp_avg_sq_.data() + p->offset;
      context.device.parallel_for(
          "weft/adamw", p->spec.local_elements(), KOKKOS_LAMBDA(index_t i) {
            const float g = clip * gradient[i];
            const float m_new = beta1 * m[i] + rest1 * g;
            const float v_new = beta2 * v[i] + rest2 * (g * g);
            const float denominator = std::sqrt(v_new) * root_correction + eps;
            m[i] = m_new;
            v[i] = v_new;
            value[i] = keep * value[i] - step_size * (m_new / denominator);
          });
    }
  }

  std::vector<State> states() const override {
    return {{"exp_avg", exp_avg_.data()}, {"exp_avg_sq", exp_avg_sq_.data()}};
  }

 private:
  AdamWOptions options_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(Context& context, const ParameterSet& parameters, const SgdOptions& options)
      : options_(options) {
    if (options_.momentum != 0.0) velocity_ = make_state(context, parameters);
  }

  void update(Context& context, const ParameterSet& parameters,
              const UpdateScalars& scalars) override {
    const auto clip = static_cast<float>(scalars.clip_factor);
    const auto learning_rate = static_cast<float>(scalars.learning_rate);
    const auto momentum = static_cast<float>(options_.momentum);
    for (const auto& p : parameters.all()) {
      const auto decay = static_cast<float>(p->decays ? options_.weight_decay : 0.0);
      float* value = p->value;
      const float* gradient = p->gradient;
      const index_t n = p->spec.local_elements();
      if (velocity_) {
        float* v = velocity_.data() + p->offset;
        context.device.parallel_for(
            "weft/sgd_momentum", n, KOKKOS_LAMBDA(index_t i) {
              const float g = clip * gradient[i] + decay * value[i];
              const float v_new = momentum * v[i] + g;
              v[i] = v_new;
              value[i] -= learning_rate * v_new;
            });
      } else {
        context.device.parallel_for(
            "weft/sgd", n, KOKKOS_LAMBDA(index_t i) {
              const float g = clip * gradient[i] + decay * value[i];
              value[i] -= learning_rate * g;
            });
      }
    }
  }

  std::vector<State> states() const override {
    if (!velocity_) return {};
    return {{"momentum", velocity_.data()}};
  }

 private:
  SgdOptions options_;
  Tensor velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(Context& context, const ParameterSet& parameters,
                                      const AdamWOptions& options) {
  return std::make_unique<AdamW>(context, parameters, options);
}

std::unique_ptr<Optimizer> make_sgd(Context& context, const ParameterSet& parameters,
                                    const SgdOptions& options) {
  return std::make_unique<Sgd>(context, parameters, options);
}

}  // namespace weft
