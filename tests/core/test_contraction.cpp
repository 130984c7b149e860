// A product is rounded before something is added to it (EXACT 4.1): kernels give the bits of plain
// expressions whose every operation is rounded by itself. Where the compiler made fused
// multiply-adds of its own, two kernels with the same formula would differ.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/optimizer.hpp"
#include "tests/core/float_data.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t n = 1003;

// a * b, which nothing can be fused with.
float product(float a, float b) {
  const volatile float rounded = a * b;
  return rounded;
}

struct Element {
  float value, first = 0.0f, second = 0.0f;  // the moments
};

// Five updates of an optimizer against `expected(element, gradient, step)`, bit for bit.
template <class Make, class Expected>
void check_updates(const Make& make, const UpdateScalars& scalars, const Expected& expected) {
  Context context(1, {});
  ParameterSet parameters;
  parameters.add("p", ShardSpec::replicated({index_t{1}, index_t{n}}), {}, GradientRows::all);
  parameters.allocate(context);
  Parameter& p = *parameters.all()[0];
  const auto optimizer = make(context, everything_of(parameters));
  const Floats start = random_floats(n, 1, -2.0f, 2.0f);
  std::vector<Element> elements;
  for (std::size_t i = 0; i < n; ++i) {
    elements.push_back({.value = start[i]});
    p.value[i] = start[i];
  }
  Floats gradient(static_cast<std::size_t>(p.spec.local_elements()));
  p.gradient = gradient.data();
  for (UpdateScalars at = scalars; at.step < 5; ++at.step) {
    const Floats random = random_floats(n, 2 + static_cast<std::uint64_t>(at.step));
    std::copy(random.begin(), random.end(), gradient.begin());
    optimizer->update(context, parameters, at);
    for (std::size_t i = 0; i < n; ++i) expected(elements[i], gradient[i], at.step);
  }
  Floats values, first;
  for (const Element& element : elements) {
    values.push_back(element.value);
    first.push_back(element.first);
  }
  CHECK(bit_difference(p.value, values.data(), n) == "");
  CHECK(bit_difference(optimizer->states()[0].data, first.data(), n) == "");
}

}  // namespace

TEST_CASE("SGD rounds each product before it adds", "[contraction]") {
  constexpr float rate = 0.01f, clip = 0.75f, momentum = 0.9f, decay = 0.05f;
  check_updates(
      [&](Context& context, const FlatRanges& owned) {
        return make_sgd(context, {.momentum = momentum, .weight_decay = decay}, owned);
      },
      {.step = 0, .learning_rate = rate, .clip_factor = clip},
      [&](Element& e, float gradient, index_t) {
        const float g = product(clip, gradient) + product(decay, e.value);
        e.first = product(momentum, e.first) + g;
        e.value -= product(rate, e.first);
      });
}

TEST_CASE("AdamW rounds each product before it adds", "[contraction]") {
  constexpr double rate = 0.01, beta1 = 0.9, beta2 = 0.99, eps = 1e-6, decay = 0.1;
  constexpr float clip = 0.75f;
  const auto narrow = [](double x) { return static_cast<float>(x); };
  check_updates(
      [&](Context& context, const FlatRanges& owned) {
        return make_adamw(
            context, {.beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = decay}, owned);
      },
      {.step = 0, .learning_rate = rate, .clip_factor = clip},
      [&](Element& e, float gradient, index_t step) {
        const double t = static_cast<double>(step + 1);
        const float g = product(clip, gradient);
        e.first = product(narrow(beta1), e.first) + product(narrow(1.0 - beta1), g);
        e.second = product(narrow(beta2), e.second) + product(narrow(1.0 - beta2), product(g, g));
        const float root =
            product(std::sqrt(e.second), narrow(1.0 / std::sqrt(1.0 - std::pow(beta2, t))));
        const float step_size = narrow(rate / (1.0 - std::pow(beta1, t)));
        e.value = product(narrow(1.0 - rate * decay), e.value) -
                  product(step_size, e.first / (root + narrow(eps)));
      });
}
