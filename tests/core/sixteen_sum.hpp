// The 16-accumulator form of EXACT 4.3 written down from its end: what the engine's loop is judged
// by.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::testing {

// Accumulator k is the sequence of terms k, k + 16, ...; one without a term is 0.
template <class Real>
Real accumulator(const std::vector<Real>& terms, std::size_t k) {
  if (k >= terms.size()) return Real{0};
  Real sum = terms[k];
  for (std::size_t i = k + 16; i < terms.size(); i += 16) sum = sum + terms[i];
  return sum;
}

// What stands in place k once `live` accumulators are left: place k + live was added to place k
// when there were 2 live of them.
template <class Real>
Real folded(const std::vector<Real>& terms, std::size_t k, std::size_t live) {
  if (live == 16) return accumulator(terms, k);
  return folded(terms, k, 2 * live) + folded(terms, k + live, 2 * live);
}

template <class Real>
Real sixteen_sum(const std::vector<Real>& terms) {
  return folded(terms, 0, 1);
}

}  // namespace weft::testing
