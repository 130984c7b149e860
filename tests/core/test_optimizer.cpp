// AdamW, SGD and the learning-rate schedules against the oracle, and each update one by one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/learning_rate.hpp"
#include "core/optimizer.hpp"
#include "tests/core/kernel_sweep.hpp"
#include "tests/oracle/optimizer.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

enum class Kind { adamw, sgd, sgd_momentum };

constexpr AdamWOptions adamw{.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1};
constexpr double sgd_decay = 0.05, momentum = 0.8;

std::unique_ptr<Optimizer> make(Kind kind, Context& context, const FlatRanges& owned) {
  if (kind == Kind::adamw) return make_adamw(context, adamw, owned);
  const double mu = kind == Kind::sgd_momentum ? momentum : 0.0;
  return make_sgd(context, {.momentum = mu, .weight_decay = sgd_decay}, owned);
}

std::unique_ptr<Optimizer> make(Kind kind, Context& context, const ParameterSet& parameters) {
  return make(kind, context, everything_of(parameters));
}

constexpr double learning_rate = 0.01, clip = 0.75;

// The largest |got - expected|, relative to the largest |expected|.
double deviation(const float* got, const oracle::Matrix& expected) {
  double worst = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("updates agree with the oracle", "[optimizer]") {
  // Ten steps of a handful of f32 roundings each (2^-24 = 6e-8), in hyper-parameters too: 1e-6.
  constexpr double bound = 1e-6;
  for (const Kind kind : {Kind::adamw, Kind::sgd, Kind::sgd_momentum}) {
    for (const bool is_matrix : {false, true}) {
      constexpr std::size_t n = 90;
      Context context(1, {});
      ParameterSet parameters;
      parameters.add("p", ShardSpec::replicated(is_matrix ? Shape{9, 10} : Shape{90}), {},
                     GradientRows::all);
      parameters.allocate(context);
      Parameter& p = *parameters.all()[0];
      CHECK(p.decays == is_matrix);
      const auto optimizer = make(kind, context, parameters);
      const Floats start = random_floats(n, 1, -2.0f, 2.0f);
      std::copy(start.begin(), start.end(), p.value);
      oracle::Matrix value(1, n, {start.begin(), start.end()});
      oracle::Matrix m(1, n), v(1, n);
      Floats gradient(128, 0.0f);
      parameters.bind_gradients(gradient.data());
      for (index_t step = 0; step < 10; ++step) {
        const Floats g = random_floats(n, 10 + static_cast<std::uint64_t>(step));
        std::copy(g.begin(), g.end(), gradient.begin());
        optimizer->update(context, parameters,
                          {.step = step, .learning_rate = learning_rate, .clip_factor = clip});
        oracle::Matrix clipped(1, n, {g.begin(), g.end()});
        for (double& element : clipped.values) element *= clip;
        if (kind == Kind::adamw) {
          adamw_update(value, m, v, clipped, step + 1, learning_rate,
                       is_matrix ? adamw.weight_decay : 0.0,
                       {.beta1 = adamw.beta1, .beta2 = adamw.beta2, .eps = adamw.eps});
        } else {
          sgd_update(value, m, clipped, learning_rate, kind == Kind::sgd ? 0.0 : momentum,
                     is_matrix ? sgd_decay : 0.0);
        }
        INFO("kind " << static_cast<int>(kind) << ", matrix " << is_matrix << ", step " << step);
        REQUIRE(deviation(p.value, value) < bound);
        const auto states = optimizer->states();
        REQUIRE(states.size() == (kind == Kind::adamw ? 2u : kind == Kind::sgd ? 0u : 1u));
        if (!states.empty()) REQUIRE(deviation(states[0].data, m) < bound);
        if (states.size() == 2) REQUIRE(deviation(states[1].data, v) < bound);
      }
    }
  }
}

TEST_CASE("a zero learning rate moves nothing but the moments", "[optimizer]") {
  for (const Kind kind : {Kind::adamw, Kind::sgd_momentum}) {
    Context context(1, {});
    ParameterSet parameters;
    parameters.add("p", ShardSpec::replicated({8, 8}), {.uniform_bound = 1.0f}, GradientRows::all);
    parameters.allocate(context);
    const auto optimizer = make(kind, context, parameters);
    Floats gradient(64, 1.0f);
    parameters.bind_gradients(gradient.data());
    const Floats before(parameters.values(), parameters.values() + 64);
    optimizer->update(context, parameters, {.step = 0, .learning_rate = 0.0, .clip_factor = 1.0});
    CHECK(bit_difference(Floats(parameters.values(), parameters.values() + 64), before) == "");
    CHECK(optimizer->states()[0].data[0] != 0.0f);
  }
}

TEST_CASE("what is not owned is left alone, what is owned is as if all were", "[optimizer]") {
  for (const Kind kind : {Kind::adamw, Kind::sgd, Kind::sgd_momentum}) {
    // Owned ranges cross the parameters' borders and end inside of them.
    const FlatRanges some({{0, 10}, {60, 200}, {290, 384}});
    Context context(1, {});
    const auto make_parameters = [&] {
      auto parameters = std::make_unique<ParameterSet>();
      parameters->add("w", ShardSpec::replicated({8, 16}), {.uniform_bound = 1.0f},
                      GradientRows::all);
      parameters->add("b", ShardSpec::replicated({128}), {.uniform_bound = 1.0f},
                      GradientRows::all);
      parameters->add("v", ShardSpec::replicated({2, 64}), {.uniform_bound = 1.0f},
                      GradientRows::token_blocks);
      parameters->allocate(context);
      return parameters;
    };
    const auto whole = make_parameters(), part = make_parameters();
    const Floats start(part->values(), part->values() + 384);
    const auto all = make(kind, context, *whole), owner = make(kind, context, some);
    CHECK(owner->owned().num_elements() == 244);
    for (index_t step = 0; step < 3; ++step) {
      Floats gradient = random_floats(384, static_cast<std::uint64_t>(step));
      for (const auto& parameters : {whole.get(), part.get()})
        parameters->bind_gradients(gradient.data());
      const UpdateScalars scalars{.step = step, .learning_rate = 0.1, .clip_factor = 0.5};
      all->update(context, *whole, scalars);
      owner->update(context, *part, scalars);
    }
    Floats expected = start;
    for (const auto& owned : some.parts()) {
      const auto n = static_cast<std::size_t>(owned.flat.size());
      std::copy_n(whole->values() + owned.flat.begin, n, expected.begin() + owned.flat.begin);
      for (std::size_t s = 0; s < all->states().size(); ++s) {
        REQUIRE(bit_difference(owner->states()[s].data + owned.offset,
                               all->states()[s].data + owned.flat.begin, n) == "");
      }
    }
    REQUIRE(bit_difference(Floats(part->values(), part->values() + 384), expected) == "");
  }
}

TEST_CASE("whole range = one by one: updates", "[kernels]") {
  const Floats values = random_floats(sweep_items, 5, -2.0f, 2.0f);
  const Floats hostile = hostile_floats(sweep_items, 6);
  const Floats gentle = random_floats(sweep_items, 7);
  for (const Kind kind : {Kind::adamw, Kind::sgd, Kind::sgd_momentum}) {
    const std::size_t width = kind == Kind::adamw ? 3 : kind == Kind::sgd ? 1 : 2;
    check_sweep("update", width, [&](Context& context, index_t begin, index_t n) {
      ParameterSet parameters;
      parameters.add("p", ShardSpec::replicated({1, n}), {}, GradientRows::all);
      parameters.allocate(context);
      Parameter& p = *parameters.all()[0];
      const auto optimizer = make(kind, context, parameters);
      // Memory of our own, so that the range begins at any place; the tail of the block is zero.
      const auto size = static_cast<std::size_t>(begin + p.spec.local_elements());
      Floats value(size, 0.0f), gradient(size, 0.0f);
      std::copy_n(values.begin() + begin, n, value.begin() + begin);
      p.value = value.data() + begin;
      p.gradient = gradient.data() + begin;
      for (index_t step = 0; step < 2; ++step) {
        std::copy_n((step == 0 ? gentle : hostile).begin() + begin, n, p.gradient);
        optimizer->update(context, parameters,
                          {.step = step, .learning_rate = learning_rate, .clip_factor = clip});
      }
      Floats out;
      for (index_t i = 0; i < n; ++i) {
        out.push_back(p.value[i]);
        for (const auto& state : optimizer->states()) out.push_back(state.data[i]);
      }
      return out;
    });
  }
}

TEST_CASE("schedules: hand values and the oracle's formula", "[learning_rate]") {
  const LearningRate constant{.peak = 0.3};
  CHECK(constant.at(0) == 0.3);
  CHECK(constant.at(1000) == 0.3);

  const LearningRate cosine{.peak = 0.1, .cosine = true, .warmup_steps = 4, .num_steps = 14};
  CHECK(cosine.at(0) == Approx(0.025).epsilon(1e-15));
  CHECK(cosine.at(3) == 0.1);
  CHECK(cosine.at(4) == 0.1);
  CHECK(cosine.at(9) == Approx(0.05).epsilon(1e-14));  // half way
  const LearningRate floor{
      .peak = 0.1, .cosine = true, .warmup_steps = 0, .num_steps = 10, .final_fraction = 0.2};
  CHECK(floor.at(5) == Approx(0.06).epsilon(1e-14));
  for (const auto& [warmup, final_fraction] : {std::pair{0, 0.0}, {7, 0.1}, {49, 0.5}, {50, 0.0}}) {
    const LearningRate rate{.peak = 3e-3,
                            .cosine = true,
                            .warmup_steps = warmup,
                            .num_steps = 50,
                            .final_fraction = final_fraction};
    for (index_t step = 0; step < 50; ++step) {
      const double expected = oracle::cosine_schedule(3e-3, step, warmup, 50, final_fraction);
      // The same formula in f64 by two hands: a few roundings.
      CHECK(rate.at(step) == Approx(expected).epsilon(1e-14).margin(1e-18));
    }
  }
  // A warm-up that outlasts the run never reaches the cosine; beyond it there is no 0 / 0.
  const LearningRate endless{.peak = 1.0, .cosine = true, .warmup_steps = 5, .num_steps = 5};
  CHECK(std::isfinite(endless.at(5)));
}
