#include "io/text/news_samples.hpp"

namespace weft {

void NewsSamples::read(index_t index, const std::optional<Augmentation>&,
                       const SampleRow& row) const {
  const index_t num_training = news_.num_samples(AgNews::Part::training);
  const auto part = index < num_training ? AgNews::Part::training : AgNews::Part::test;
  const index_t at = index < num_training ? index : index - num_training;
  if (row.labels) *row.labels = news_.labels(part)[static_cast<std::size_t>(at)];
  if (!row.tokens && !row.length) return;
  // A later stage of a pipeline asks for the length alone.
  std::vector<std::int32_t> unasked(row.tokens ? 0
                                               : static_cast<std::size_t>(tokens_.num_tokens()));
  std::int32_t* tokens = row.tokens ? row.tokens : unasked.data();
  const index_t length =
      tokens_.read_into(part, at, {tokens, static_cast<std::size_t>(tokens_.num_tokens())});
  if (row.length) *row.length = static_cast<std::int32_t>(length);
}

}  // namespace weft
