// Equal images are found by a hash of their pixels, then compared; see the header.
#include "io/cifar10_check.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/hash.hpp"

namespace weft {

namespace {

const std::uint8_t* row_of(const Cifar10& data, index_t file, index_t row) {
  return data.bytes_of_file(file).data() + row * Cifar10::row_bytes;
}

const std::uint8_t* pixels_of(const Cifar10& data, const ImagePlace& place) {
  return row_of(data, place.file, place.row) + 1;
}

bool are_equal(const Cifar10& data, const ImagePlace& a, const ImagePlace& b) {
  return std::memcmp(pixels_of(data, a), pixels_of(data, b), Cifar10::image_bytes) == 0;
}

// Groups of equal images among places whose hashes are equal; a hash may, in principle, meet twice.
void add_groups(const Cifar10& data, std::vector<ImagePlace> same_hash,
                std::vector<EqualImages>& groups) {
  while (same_hash.size() > 1) {
    const auto rest = std::stable_partition(same_hash.begin(), same_hash.end(),
                                            [&, first = same_hash.front()](const ImagePlace& one) {
                                              return are_equal(data, first, one);
                                            });
    if (rest - same_hash.begin() > 1) groups.push_back({{same_hash.begin(), rest}});
    same_hash.erase(same_hash.begin(), rest);
  }
}

}  // namespace

index_t Cifar10Check::num_leaks() const {
  return std::count_if(equal.begin(), equal.end(),
                       [](const EqualImages& group) { return group.spans_parts(); });
}

Cifar10Check check(const Cifar10& data, const Split& split) {
  Cifar10Check found;
  const std::vector<DataPart> parts = parts_of(Cifar10::num_files * data.rows_per_file(), split);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<ImagePlace>> by_hash;
  for (index_t file = 0; file < Cifar10::num_files; ++file) {
    for (index_t row = 0; row < data.rows_per_file(); ++row) {
      const std::uint8_t* const bytes = row_of(data, file, row);
      const std::uint8_t* const pixels = bytes + 1;
      const auto index = static_cast<std::size_t>(file * data.rows_per_file() + row);
      const DataPart part = file == Cifar10::num_training_files ? DataPart::test : parts[index];
      const ImagePlace place{part, file, row, bytes[0]};
      const DamagedRow damage{.place = place,
                              .has_label = bytes[0] < Cifar10::num_classes,
                              .is_blank = std::all_of(
                                  pixels, pixels + Cifar10::image_bytes,
                                  [&](std::uint8_t byte) { return byte == pixels[0]; })};
      if (!damage.has_label || damage.is_blank) found.damaged.push_back(damage);
      if (damage.has_label) ++found.class_counts[static_cast<std::size_t>(part)][bytes[0]];
      if (damage.is_blank) continue;
      const Hash128 hash = hash128(pixels, Cifar10::image_bytes);
      by_hash[{hash.high, hash.low}].push_back(place);
    }
  }
  for (const auto& [hash, places] : by_hash) add_groups(data, places, found.equal);
  std::sort(found.equal.begin(), found.equal.end(), [](const auto& a, const auto& b) {
    const ImagePlace &first = a.places.front(), &second = b.places.front();
    return std::pair(first.file, first.row) < std::pair(second.file, second.row);
  });
  return found;
}

}  // namespace weft
