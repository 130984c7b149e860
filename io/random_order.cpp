// Sorting by random numbers; see the header.
#include "io/random_order.hpp"

#include <algorithm>
#include <utility>

namespace weft {

std::uint64_t random_bits(std::uint64_t seed, Stream stream, index_t round, index_t index) {
  const auto r = static_cast<std::uint64_t>(round);
  const random::Words words =
      random::words_at(random::key_of(seed, stream), static_cast<std::uint32_t>(r >> 32),
                       static_cast<std::uint32_t>(r), static_cast<std::uint64_t>(index));
  return (std::uint64_t{words.word[1]} << 32) | words.word[0];
}

std::vector<index_t> random_order(const std::vector<index_t>& items, std::uint64_t seed,
                                  Stream stream, index_t round) {
  std::vector<std::pair<std::uint64_t, index_t>> keyed;
  keyed.reserve(items.size());
  for (index_t item : items) keyed.emplace_back(random_bits(seed, stream, round, item), item);
  std::sort(keyed.begin(), keyed.end());
  std::vector<index_t> order;
  order.reserve(items.size());
  for (const auto& [bits, item] : keyed) order.push_back(item);
  return order;
}

}  // namespace weft
