#include "io/tables/bank_samples.hpp"

namespace weft {

void BankSamples::read(index_t index, const std::optional<Augmentation>&,
                       const SampleRow& row) const {
  if (row.labels) *row.labels = bank_.labels()[static_cast<std::size_t>(index)];
  if (!row.features) return;
  const auto size = static_cast<std::size_t>(encoder_.num_features());
  encoder_.encode_into(bank_, index, std::span(row.features, size));
}

}  // namespace weft
