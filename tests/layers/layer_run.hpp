// A layer on tp ranks as threads: whole inputs go in, whole outputs and gradients come out, so that
// layouts can be compared with each other and with the oracle.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.hpp"
#include "tests/core/float_data.hpp"
#include "tests/layers/rank_group.hpp"
#include "tests/oracle/matrix.hpp"

namespace weft::testing {

// What is run. Inputs, gradients of outputs and parameters follow from `seed`.
struct LayerCase {
  std::string name;
  std::function<std::unique_ptr<Layer>(ParameterSet&, TensorParallel&)> make;
  index_t in_features = 0;
  index_t out_features = 0;         // as stored: with pads
  index_t pads = 0;                 // the last output features, whose gradient is 0
  bool input_is_cut = false;        // in pieces by features, else whole
  bool input_has_all_rows = false;  // also with sequence parallel
  bool has_input_gradient = true;
  index_t vocabulary = 0;    // above 0: the input is in_features token ids below it, on every rank
  bool has_lengths = false;  // of the samples' tokens, 0 of some

  index_t num_samples = 1;  // of a microbatch
  index_t in_tokens = 1;    // rows a sample of the input
  index_t out_tokens = 1;   // of the output
  index_t num_microbatches = 3;
  std::uint64_t seed = 1;
  bool hostile = false;       // floats that show any other order of additions
  bool weights_last = false;  // all backward_input before all backward_weight
  bool lane_before = false;   // another lane in the same gradient memory first
  index_t first_sample = 0;   // of microbatch 0 in the global batch

  static constexpr index_t step = 5;  // of every pass

  index_t tokens() const { return vocabulary > 0 ? in_features : in_tokens; }
  index_t in_rows() const { return num_samples * in_tokens; }
  index_t out_rows() const { return num_samples * out_tokens; }
};

// Global tensors, by microbatch and by parameter.
struct LayerOutcome {
  std::vector<Floats> y;
  std::vector<Floats> dx;
  std::map<std::string, Floats> gradients;
};

// Throws where copies of one replicated tensor differ between ranks.
LayerOutcome run_layer(const LayerCase& what, const RankGroup& group);

// "" where all bits are equal.
std::string difference(const LayerOutcome& got, const LayerOutcome& expected);

// The data of a case: [in_rows, in_features] (of token ids, as floats), [out_rows, out_features], a
// parameter.
Floats input_of(const LayerCase& what, index_t microbatch);
Floats output_gradient_of(const LayerCase& what, index_t microbatch);
// Those of a microbatch's samples: from 0 to all their tokens.
std::vector<std::int32_t> lengths_of(const LayerCase& what, index_t microbatch);
Floats parameter_of(const LayerCase& what, const std::string& name, index_t num_elements);

// One microbatch in double.
struct LayerTruth {
  oracle::Matrix y;
  oracle::Matrix dx;
  oracle::NamedMatrices gradients;
};
using Oracle = std::function<LayerTruth(const oracle::Matrix& x, const oracle::Matrix& dy,
                                        index_t microbatch)>;

// A parameter for the oracle: `rows` 0 for a vector of `cols`.
oracle::Matrix oracle_parameter(const LayerCase& what, const std::string& name, index_t rows,
                                index_t cols);

// Runs the case against the oracle; "" where every tensor is within `bound` times its own largest
// element. Gradients are summed over microbatches.
std::string difference_from_oracle(const LayerCase& what, const LayerOutcome& got,
                                   const Oracle& oracle, double bound);

// The same for one tensor; `largest_deviation` (may be null) keeps the largest ratio seen.
std::string difference_from_oracle(const std::string& name, const Floats& got,
                                   const oracle::Matrix& expected, double bound,
                                   double* largest_deviation = nullptr);

}  // namespace weft::testing
