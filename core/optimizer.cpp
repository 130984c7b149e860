#include "core/optimizer.hpp"

#include <cmath>

namespace weft {

namespace {

Tensor make_state(Context& context, const FlatRanges& owned) {
  Tensor state(context.arena, MemoryKind::optimizer, {owned.num_elements()});
  fill_zero(state.raw(), state.num_bytes());
  return state;
}

// Consecutive elements of one parameter: their values, gradients, and where their state lies.
struct Stretch {
  float* value;
  const float* gradient;
  index_t state;  // offset
  index_t n;
};

// Calls f(parameter, stretch) for all that is owned.
template <class F>
void for_each_stretch(const ParameterSet& parameters, const FlatRanges& owned, const F& f) {
  for (const auto& p : parameters.all()) {
    owned.for_each_in({p->offset, p->offset + p->spec.local_elements()},
                      [&](Range flat, index_t state) {
                        const index_t first = flat.begin - p->offset;
                        f(*p, Stretch{p->value + first, p->gradient + first, state, flat.size()});
                      });
  }
}

struct AdamWScalars {
  float clip, beta1, beta2, rest1, rest2, step_size, root_correction, eps;
};

void update_adamw(Context& context, const Stretch& at, const AdamWScalars& k, float keep, float* m,
                  float* v) {
  float* value = at.value;
  const float* gradient = at.gradient;
  context.device.parallel_for(
      "weft/adamw", at.n, KOKKOS_LAMBDA(index_t i) {
        const float g = k.clip * gradient[i];
        const float m_new = k.beta1 * m[i] + k.rest1 * g;
        const float v_new = k.beta2 * v[i] + k.rest2 * (g * g);
        const float denominator = std::sqrt(v_new) * k.root_correction + k.eps;
        m[i] = m_new;
        v[i] = v_new;
        value[i] = keep * value[i] - k.step_size * (m_new / denominator);
      });
}

class AdamW final : public Optimizer {
 public:
  AdamW(Context& context, const AdamWOptions& options, FlatRanges owned)
      : Optimizer(std::move(owned)),
        options_(options),
        exp_avg_(make_state(context, this->owned())),
        exp_avg_sq_(make_state(context, this->owned())) {}

  void update(Context& context, const ParameterSet& parameters,
              const UpdateScalars& scalars) override {
    // No running products of beta: powers of the integer step.
    const double t = static_cast<double>(scalars.step + 1);
    const double correction1 = 1.0 - std::pow(options_.beta1, t);
    const double correction2 = 1.0 - std::pow(options_.beta2, t);
    const AdamWScalars k{
        .clip = static_cast<float>(scalars.clip_factor),
        .beta1 = static_cast<float>(options_.beta1),
        .beta2 = static_cast<float>(options_.beta2),
        .rest1 = static_cast<float>(1.0 - options_.beta1),
        .rest2 = static_cast<float>(1.0 - options_.beta2),
        .step_size = static_cast<float>(scalars.learning_rate / correction1),
        .root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
        .eps = static_cast<float>(options_.eps),
    };
    const auto decaying = static_cast<float>(1.0 - scalars.learning_rate * options_.weight_decay);
    for_each_stretch(parameters, owned(), [&](const Parameter& p, const Stretch& at) {
      update_adamw(context, at, k, p.decays ? decaying : 1.0f, exp_avg_.data() + at.state,
                   exp_avg_sq_.data() + at.state);
    });
  }

  std::vector<State> states() const override {
    return {{"exp_avg", exp_avg_.data()}, {"exp_avg_sq", exp_avg_sq_.data()}};
  }

 private:
  AdamWOptions options_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
};

struct SgdScalars {
  float clip, learning_rate, momentum;
};

void update_sgd(Context& context, const Stretch& at, const SgdScalars& k, float decay) {
  float* value = at.value;
  const float* gradient = at.gradient;
  context.device.parallel_for(
      "weft/sgd", at.n, KOKKOS_LAMBDA(index_t i) {
        const float g = k.clip * gradient[i] + decay * value[i];
        value[i] -= k.learning_rate * g;
      });
}

void update_sgd_momentum(Context& context, const Stretch& at, const SgdScalars& k, float decay,
                         float* v) {
  float* value = at.value;
  const float* gradient = at.gradient;
  context.device.parallel_for(
      "weft/sgd_momentum", at.n, KOKKOS_LAMBDA(index_t i) {
        const float g = k.clip * gradient[i] + decay * value[i];
        const float v_new = k.momentum * v[i] + g;
        v[i] = v_new;
        value[i] -= k.learning_rate * v_new;
      });
}

class Sgd final : public Optimizer {
 public:
  Sgd(Context& context, const SgdOptions& options, FlatRanges owned)
      : Optimizer(std::move(owned)), options_(options) {
    if (options_.momentum != 0.0) velocity_ = make_state(context, this->owned());
  }

  void update(Context& context, const ParameterSet& parameters,
              const UpdateScalars& scalars) override {
    const SgdScalars k{.clip = static_cast<float>(scalars.clip_factor),
                       .learning_rate = static_cast<float>(scalars.learning_rate),
                       .momentum = static_cast<float>(options_.momentum)};
    const auto decaying = static_cast<float>(options_.weight_decay);
    for_each_stretch(parameters, owned(), [&](const Parameter& p, const Stretch& at) {
      const float decay = p.decays ? decaying : 0.0f;
      if (velocity_) {
        update_sgd_momentum(context, at, k, decay, velocity_.data() + at.state);
      } else {
        update_sgd(context, at, k, decay);
      }
    });
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

FlatRanges everything_of(const ParameterSet& parameters) {
  return FlatRanges({{0, parameters.flat_elements()}});
}

std::unique_ptr<Optimizer> make_adamw(Context& context, const AdamWOptions& options,
                                      FlatRanges owned) {
  return std::make_unique<AdamW>(context, options, std::move(owned));
}

std::unique_ptr<Optimizer> make_sgd(Context& context, const SgdOptions& options, FlatRanges owned) {
  return std::make_unique<Sgd>(context, options, std::move(owned));
}

}  // namespace weft
