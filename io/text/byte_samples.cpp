#include "io/text/byte_samples.hpp"

#include <utility>

namespace weft {

using Part = ByteText::Part;

ByteSamples::ByteSamples(ByteText text) : text_(std::move(text)) {
  for (index_t byte = 0; byte < ByteText::num_tokens_in_all; ++byte)
    class_names_.push_back(std::to_string(byte));
}

Range ByteSamples::samples_of(Part part) const {
  index_t begin = 0;
  for (const Part before : {Part::training, Part::validation}) {
    if (before == part) break;
    begin += text_.num_samples(before);
  }
  return {begin, begin + text_.num_samples(part)};
}

void ByteSamples::read(index_t index, const std::optional<Augmentation>&,
                       const SampleRow& row) const {
  Part part = Part::training;
  for (const Part other : {Part::validation, Part::test}) {
    if (index >= samples_of(other).begin) part = other;
  }
  const auto window = static_cast<std::size_t>(text_.window());
  // A later stage of a pipeline asks for the labels alone.
  std::vector<std::int32_t> unasked(row.tokens && row.labels ? 0 : window);
  text_.read_into(part, index - samples_of(part).begin,
                  {row.tokens ? row.tokens : unasked.data(), window},
                  {row.labels ? row.labels : unasked.data(), window});
}

}  // namespace weft
