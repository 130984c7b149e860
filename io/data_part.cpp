#include "io/data_part.hpp"

#include <array>

namespace weft {

std::string_view name_of(DataPart part) {
  static constexpr std::array<std::string_view, num_data_parts> names = {"train", "validation",
                                                                         "test", "unused"};
  return names[static_cast<std::size_t>(part)];
}

std::vector<DataPart> parts_of(index_t num_samples, const Split& split) {
  std::vector<DataPart> parts(static_cast<std::size_t>(num_samples), DataPart::unused);
  const auto mark = [&](const std::vector<index_t>& list, DataPart part) {
    for (const index_t index : list) parts.at(static_cast<std::size_t>(index)) = part;
  };
  mark(split.train, DataPart::train);
  mark(split.validation, DataPart::validation);
  mark(split.test, DataPart::test);
  return parts;
}

}  // namespace weft
