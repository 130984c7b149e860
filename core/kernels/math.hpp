// exp, log and GELU as inline functions of one element: our own polynomials, fused where `fma`
// is written and nowhere else. No libm and no vector libm: their results depend on library, version
// and on whether the element sits in a vector body or in its tail.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/host_device.hpp"

namespace weft::math {

// As constants: device code cannot call the functions of numeric_limits.
inline constexpr float infinity_f32 = std::numeric_limits<float>::infinity();
inline constexpr double infinity_f64 = std::numeric_limits<double>::infinity();
inline constexpr double nan_f64 = std::numeric_limits<double>::quiet_NaN();

template <class To, class From>
WEFT_HOST_DEVICE inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// e^x, at most 1 ulp off (tests compare all exponents with the double function). Results below
// 2^-126 are 0, so that exp(-inf) is exactly 0 and a masked or padded logit stays out of every sum.
// Cody and Waite's reduction x = n ln2 + r, |r| <= ln2 / 2, then a Taylor polynomial of degree 7
// (remainder below 6e-9) and a scaling by 2^n through the exponent bits.
WEFT_HOST_DEVICE inline float exp(float x) {
  constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = std::fma(x, 1.44269504088896341f, to_integer);
  const float n = shifted - to_integer;
  float r = std::fma(n, -0.693145751953125f, x);
  r = std::fma(n, -1.428606765330187e-6f, r);
  float p = 1.9841270e-4f;
  p = std::fma(p, r, 1.3888889e-3f);
  p = std::fma(p, r, 8.3333333e-3f);
  p = std::fma(p, r, 4.1666667e-2f);
  p = std::fma(p, r, 1.6666667e-1f);
  p = std::fma(p, r, 0.5f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  // 2^n in two factors, since n reaches 128 and -126. Far beyond, y is not used; the difference may
  // wrap there, so it is unsigned.
  const auto exponent = static_cast<std::int32_t>(bits_as<std::uint32_t>(shifted) -
                                                  bits_as<std::uint32_t>(to_integer));
  const std::int32_t half = exponent >> 1;
  const float scale_a = bits_as<float>((half + 127) << 23);
  const float scale_b = bits_as<float>((exponent - half + 127) << 23);
  const float y = p * scale_a * scale_b;
  const float not_small = x < -87.33654f ? 0.0f : y;
  return x > 88.72283f ? infinity_f32 : not_small;
}

// ln(x), double precision, for x that is not denormal: x = m 2^e with m in [sqrt(1/2), sqrt(2)),
// s = (m-1)/(m+1), ln m = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...); |s| <= 0.172, so the term
// s^23/23 is below 1e-18. -inf for 0, NaN below 0: a loss that is broken must not look finite.
WEFT_HOST_DEVICE inline double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -infinity_f64 : nan_f64;
  if (x == infinity_f64) return x;
  std::uint64_t bits = bits_as<std::uint64_t>(x);
  std::int64_t exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
  double m = bits_as<double>(bits);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double sum = 1.0 / 21.0;
  for (int k = 19; k >= 3; k -= 2) sum = std::fma(sum, q, 1.0 / k);
  const double series = std::fma(sum * q, s, s);
  return std::fma(static_cast<double>(exponent), 0.69314718055994530942, 2.0 * series);
}

// A function's value and its slope at the same place, which share most of their work.
struct ValueAndSlope {
  float value;
  float slope;
};

// GELU(x) = x Phi(x), the exact form (Hendrycks and Gimpel 2016), and GELU'(x) = Phi(x) + x phi(x);
// phi(x) = exp(-x^2 / 2) / sqrt(2 pi). Of the normal distribution Phi the tail is, with
// z = |x| / sqrt 2,
//   1 - Phi(|x|) = erfc(z) / 2 = exp(-z^2) t P(t) / 2,   t = 1 / (1 + 0.39 z),
// the form of Hastings (1955), so that one exponential serves phi and Phi. P has degree 5; it was
// fitted to erfc for the smallest largest absolute error: 8.3e-9 before rounding.
WEFT_HOST_DEVICE inline ValueAndSlope gelu(float x) {
  const float magnitude = std::fabs(x);
  const float t = 1.0f / std::fma(magnitude, 0.275771644662754503f, 1.0f);
  float p = -0.22753693896859317f;
  p = std::fma(p, t, 0.8866636098664757f);
  p = std::fma(p, t, -0.6353990447919466f);
  p = std::fma(p, t, 0.6495584029478958f);
  p = std::fma(p, t, 0.0913888137933257f);
  p = std::fma(p, t, 0.23532515545938987f);
  const float bell = exp(-0.5f * x * x);
  const float tail = 0.5f * t * p * bell;
  const float cumulative = x > 0.0f ? 1.0f - tail : tail;
  return {x * cumulative, std::fma(x * 0.39894228040143268f, bell, cumulative)};
}

}  // namespace weft::math
