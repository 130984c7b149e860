// A whole model on tp ranks as threads, one lane of a few microbatches a step: losses,
// gradients and updated parameters come out, so that layouts can be compared with each other and
// with the oracle. A pipeline's stages may run one after the other on each rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/optimizer.hpp"
#include "layers/stage_model.hpp"
#include "tests/core/float_data.hpp"
#include "tests/layers/rank_group.hpp"
#include "tests/oracle/matrix.hpp"

namespace weft::testing {

struct ClassifierCase {
  std::function<StageModel(const StagePart&, ParameterSet&, TensorParallel&)> make;
  index_t inputs = 0;              // features of a sample, or its tokens
  index_t vocabulary = 0;          // above 0: inputs are token ids below it
  bool has_lengths = false;        // of the samples' tokens, at least 1 of a real sample
  index_t longest = 0;             // of those lengths; 0: all tokens
  bool is_cut = false;             // passes have that many tokens and no more
  bool label_per_token = false;    // a token below the vocabulary, else a class of a sample
  bool class_weights = false;      // a label's weight depends on it
  std::uint64_t padding_seed = 0;  // of the tokens behind a length
  index_t blocks = 2;
  std::vector<index_t> stages = {};  // blocks of each; none: one stage with all of them

  index_t num_samples = 5;  // of a microbatch
  index_t num_microbatches = 3;
  bool hostile = false;  // inputs, not weights: a network of 1e8s has no finite loss to compare
  bool pad_last_sample = false;

  index_t num_steps = 1;
  double learning_rate = 0.0;
  AdamWOptions adamw = {};

  static constexpr index_t first_step = 3;
  static constexpr index_t classes = 10;

  index_t batch_samples() const { return num_samples * num_microbatches; }
  index_t real_samples() const { return batch_samples() - (pad_last_sample ? 1 : 0); }
  index_t label_rows_per_sample() const { return label_per_token ? inputs : 1; }
  index_t most_tokens() const { return longest > 0 ? longest : inputs; }
  index_t label_values() const { return label_per_token ? vocabulary : classes; }
};

// The global batch of a step, and a parameter before the first one.
struct ClassifierBatch {
  Floats x;                           // or
  std::vector<std::int32_t> tokens;   // [samples x tokens], and
  std::vector<std::int32_t> lengths;  // where there are some
  std::vector<std::int32_t> labels;
  Floats weights;

  double sum_of_weights() const;
};
ClassifierBatch batch_of(const ClassifierCase& what, index_t step);
Floats initial_of(const std::string& parameter, index_t num_elements);
// The same for the oracle; `zeros`: all parameters by name.
oracle::NamedMatrices initial_of(oracle::NamedMatrices zeros);

struct ClassifierOutcome {
  std::vector<double> losses;                // sums over the samples of a step
  std::vector<std::int64_t> correct;         // of a step
  std::map<std::string, Floats> gradients;   // of the last step
  std::map<std::string, Floats> parameters;  // after it
  std::vector<std::string> ready;            // in the order in which the last step announced them
};

// Throws where ranks' losses or copies of a replicated tensor differ, or pads have a gradient.
ClassifierOutcome run_classifier(const ClassifierCase& what, const RankGroup& group);

// "" where all bits are equal.
std::string difference(const ClassifierOutcome& got, const ClassifierOutcome& expected);

// One result for each S: on all tp <= S, with and without sequence parallel, with several threads.
void check_all_layouts(const ClassifierCase& what);

}  // namespace weft::testing
