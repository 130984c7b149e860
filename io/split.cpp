// The split and its record; see the header.
#include "io/split.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.hpp"
#include "io/random_order.hpp"

namespace weft {

namespace {

void check_counts(index_t num_samples, index_t train, index_t validation) {
  require(train >= 1 && validation >= 0, ExitCode::usage,
          fmt::format("task.split asks for train = {}, validation = {}: expected train >= 1 and "
                      "validation >= 0",
                      train, validation));
  if (train <= num_samples && validation <= num_samples - train) return;
  // The nearest legal counts keep the ratio that was asked for.
  const double share = static_cast<double>(validation) /
                       (static_cast<double>(train) + static_cast<double>(validation));
  const index_t nearest =
      std::min(static_cast<index_t>(share * static_cast<double>(num_samples)), num_samples - 1);
  throw Error(
      ExitCode::usage,
      fmt::format("task.split asks for train = {} and validation = {}, but the training set "
                  "has {} images: nearest legal with the same ratio: train = {}, "
                  "validation = {}",
                  train, validation, num_samples, num_samples - nearest, nearest));
}

std::string hash_of(const std::vector<index_t>& list) {
  static_assert(std::endian::native == std::endian::little, "the hash is over little-endian bytes");
  const XXH128_hash_t hash = XXH3_128bits(list.data(), list.size() * sizeof(index_t));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::vector<index_t> first_of(const std::vector<index_t>& list) {
  return {list.begin(), list.begin() + std::min<index_t>(8, std::ssize(list))};
}

}  // namespace

Split make_split(index_t num_samples, index_t train, index_t validation, std::uint64_t seed) {
  check_counts(num_samples, train, validation);
  const std::vector<index_t> order = random_order(all_of({0, num_samples}), seed, Stream::split, 0);
  Split split;
  split.seed = seed;
  split.validation.assign(order.begin(), order.begin() + validation);
  split.train.assign(order.begin() + validation, order.begin() + validation + train);
  std::sort(split.validation.begin(), split.validation.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

std::vector<index_t> all_of(Range range) {
  std::vector<index_t> all(static_cast<std::size_t>(range.size()));
  std::iota(all.begin(), all.end(), range.begin);
  return all;
}

std::string split_record(const Split& split) {
  const nlohmann::ordered_json record = {{"seed", split.seed},
                                         {"train", split.train.size()},
                                         {"validation", split.validation.size()},
                                         {"test", split.test.size()},
                                         {"train_hash", hash_of(split.train)},
                                         {"validation_hash", hash_of(split.validation)},
                                         {"test_hash", hash_of(split.test)},
                                         {"train_first", first_of(split.train)},
                                         {"validation_first", first_of(split.validation)},
                                         {"test_first", first_of(split.test)}};
  return record.dump();
}

}  // namespace weft
