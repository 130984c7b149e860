#include "io/length_buckets.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/random.hpp"
#include "io/random_order.hpp"
#include "io/split.hpp"

namespace weft {

index_t LengthBuckets::tokens_of(std::span<const index_t> samples) const {
  if (!is_on()) return 0;
  index_t longest = 0;
  for (const index_t sample : samples)
    longest = std::max<index_t>(longest, lengths[static_cast<std::size_t>(sample)]);
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), longest);
  return bound == bounds.end() ? bounds.back() : *bound;
}

LengthBuckets make_length_buckets(const SampleSet& data, std::span<const index_t> samples,
                                  std::vector<index_t> bounds) {
  LengthBuckets buckets{std::move(bounds),
                        std::vector<std::int32_t>(static_cast<std::size_t>(data.num_samples()))};
  for (const index_t sample : samples)
    data.read(sample, std::nullopt, {.length = &buckets.lengths[static_cast<std::size_t>(sample)]});
  return buckets;
}

void group_by_length(std::vector<index_t>& order, index_t global_batch,
                     const LengthBuckets& buckets, std::uint64_t seed, index_t epoch) {
  const index_t num_batches = std::ssize(order) / global_batch;
  const auto shorter = [&](index_t a, index_t b) {
    return buckets.lengths[static_cast<std::size_t>(a)] <
           buckets.lengths[static_cast<std::size_t>(b)];
  };
  for (index_t first = 0; first < num_batches; first += batches_per_window) {
    const index_t end = std::min(first + batches_per_window, num_batches);
    std::stable_sort(order.begin() + first * global_batch, order.begin() + end * global_batch,
                     shorter);
  }
  std::vector<index_t> grouped;
  grouped.reserve(order.size());
  for (const index_t batch : random_order(all_of({0, num_batches}), seed, Stream::batches, epoch)) {
    grouped.insert(grouped.end(), order.begin() + batch * global_batch,
                   order.begin() + (batch + 1) * global_batch);
  }
  grouped.insert(grouped.end(), order.begin() + num_batches * global_batch, order.end());
  order = std::move(grouped);
}

}  // namespace weft
