// Rows of Bank Marketing as numbers. Everything that is learnt from data - means, deviations, which
// categories there are - is learnt from the training rows alone, so that nothing of what a model is
// judged by goes into what it is fed with.
//
// - A number becomes (value - mean) / deviation of the training rows (population form). A column
// that
//   is constant there becomes 0 for every row.
// - pdays becomes "contacted before" (0, 1) and its number standardized over the training rows that
//   were contacted before; 0 for the others.
// - A category becomes a 1 among zeros, one place for each documented category ("unknown" is one of
//   them), and a last place for every category that is not documented or in no training row.
// - `duration` is left out: it is known only after the call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "io/tables/bank.hpp"

namespace weft {

class BankEncoder {
 public:
  // Fits on `rows` of `data`: at least one, increasing, so each once. Throws Error(usage) on other
  // lists. Sums are taken in f64 in the order of rows.
  BankEncoder(const Bank& data, std::span<const index_t> rows, bool allow_leak = false);

  index_t num_features() const { return bank_num_features(schema_, allow_leak_); }
  // "age", "job=admin.", "job=(other)", "pdays:contacted", "pdays", in the order of features.
  const std::vector<std::string>& feature_names() const { return feature_names_; }

  // Row `row` of `data` (which may be another table of the same schema) into x [num_features()].
  // Any number of threads may call it.
  void encode_into(const Bank& data, index_t row, std::span<float> x) const;

  // Of each column of bank_columns(): how many of `rows` have a category that goes to the last
  // place.
  std::vector<index_t> count_other(const Bank& data, std::span<const index_t> rows) const;

  // One JSON object: schema, rows it was fitted on, and of each column what was learnt.
  std::string record() const;

 private:
  struct Column {
    double mean = 0;
    double deviation = 0;          // 0: constant, or no row
    std::vector<char> is_trained;  // of each documented category
  };

  void fit_number(const Bank& data, std::span<const index_t> rows, index_t column);
  void name_features();
  bool is_used(const BankColumn& column) const;
  float standardized(std::size_t column, double value) const;

  BankSchema schema_;
  bool allow_leak_;
  index_t num_fitted_;
  std::vector<Column> columns_;  // of bank_columns()
  std::vector<std::string> feature_names_;
};

}  // namespace weft
