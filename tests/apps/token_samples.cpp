#include "tests/apps/token_samples.hpp"

namespace weft::testing {

TokenSamples::TokenSamples(const Options& options) : options_(options) {
  const index_t num_labels = options.form.labels > 1 ? options.vocabulary : options.num_classes;
  for (index_t label = 0; label < num_labels; ++label)
    class_names_.push_back(std::to_string(label));
}

void TokenSamples::read(index_t index, const std::optional<Augmentation>&,
                        const SampleRow& row) const {
  const index_t tokens = options_.form.tokens;
  const bool has_class = options_.form.labels == 1;
  const index_t kind = has_class ? index % options_.num_classes : index % 3;
  const auto token = [&](index_t t) {
    return static_cast<std::int32_t>((11 * index + (kind + 1) * t) % options_.vocabulary);
  };
  for (index_t t = 0; t < tokens; ++t) {
    if (row.tokens != nullptr) row.tokens[t] = token(t);
    if (row.labels != nullptr && !has_class) row.labels[t] = token(t + 1);
  }
  if (row.labels != nullptr && has_class) row.labels[0] = static_cast<std::int32_t>(kind);
  if (row.length != nullptr)
    row.length[0] = static_cast<std::int32_t>(1 + (5 * index + 2) % tokens);
}

}  // namespace weft::testing
