#include "io/text/news_samples.hpp"

#include <utility>

#include "io/quartile_groups.hpp"

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

SampleGroups NewsSamples::groups_of(std::string_view column,
                                    std::span<const index_t> training) const {
  const auto length_of = [this](index_t sample) {
    std::int32_t length = 0;
    read(sample, std::nullopt, {.length = &length});
    return static_cast<double>(length);
  };
  std::vector<double> lengths;
  for (const index_t sample : training) lengths.push_back(length_of(sample));
  const QuartileGroups quartiles(std::move(lengths));
  return {quartiles.names(column),
          [quartiles, length_of](index_t sample) { return quartiles.group_of(length_of(sample)); }};
}

}  // namespace weft
