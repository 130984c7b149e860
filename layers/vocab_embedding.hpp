// The first layer of a model of tokens: a table with a row of h features for each word of the
// vocabulary, cut by rows over tp; y[row] = table[token of row]. The rank that owns a row has it,
// the others add zeros (EXACT 3.9).
#pragma once

#include <string>

#include "core/kernels/table_rows.hpp"
#include "layers/layer.hpp"

namespace weft {

class VocabEmbedding final : public Layer {
 public:
  // Uniform in +-bound at the start: a standard deviation of 0.02.
  static constexpr float initial_bound = 0.0346410162f;

  // Adds a table of that form, with the values that every table of that name begins with.
  static Parameter& add_table(const std::string& name, ParameterSet& parameters, TensorParallel& tp,
                              index_t vocabulary, index_t padded_vocabulary, index_t num_features);

  // The vocabulary is padded to `padded_vocabulary`, a multiple of tp's pieces; pads are 0 and stay
  // 0. `tp` must outlive the layer.
  VocabEmbedding(std::string name, ParameterSet& parameters, TensorParallel& tp, index_t vocabulary,
                 index_t padded_vocabulary, index_t num_features);

  // x: token ids [samples, tokens] i32, all on every tp rank. y: [samples x tokens, h], this rank's
  // rows. Throws Error(data), on all tp ranks alike, where an id is outside the vocabulary.
  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  // There is no gradient of ids.
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  // Row by row of the table, the rows of dy that took it, in sequence (EXACT 3.10). Padding that
  // pass.lengths tells of is left out: its gradient is 0 anyway.
  void backward_weight(Context& context, Saved& saved, const Pass& pass,
                       const GradientReady& ready) override;
  index_t rows_after(index_t num_rows, index_t tokens) const override { return num_rows * tokens; }

 private:
  // Those whose rows this rank holds, pads included.
  Range owned_ids() const;
  kernels::RowsById rows_of_owned_ids(Context& context, const Activation& x,
                                      const Pass& pass) const;

  std::string name_;
  TensorParallel& tp_;
  index_t vocabulary_;
  index_t num_features_;
  Parameter& table_;  // [vocabulary, h], cut along the vocabulary
};

}  // namespace weft
