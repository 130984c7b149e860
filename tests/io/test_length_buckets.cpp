// Batches grouped by length: against the order without buckets and Philox's own numbers, never
// against the code that groups.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "io/batch_reader.hpp"
#include "io/length_buckets.hpp"
#include "io/loader.hpp"
#include "io/sampler.hpp"
#include "tests/oracle/philox.hpp"

using namespace weft;

namespace {

constexpr std::uint64_t seed = 31;

// Texts of 12 tokens, of which the first few are words: sample i has 1 + 7 i mod 12 of them.
class Texts final : public SampleSet {
 public:
  static constexpr index_t tokens = 12;
  static index_t length_of(index_t sample) { return 1 + 7 * sample % tokens; }

  explicit Texts(index_t num_samples) : num_samples_(num_samples) {}
  const std::string& folder() const override { return folder_; }
  index_t num_samples() const override { return num_samples_; }
  SampleForm form() const override { return {.tokens = tokens, .has_lengths = true}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string fingerprint() const override { return std::string(32, '1'); }
  void read(index_t index, const std::optional<Augmentation>&,
            const SampleRow& row) const override {
    for (index_t t = 0; row.tokens && t < tokens; ++t)
      row.tokens[t] = t < length_of(index) ? static_cast<std::int32_t>(100 * index + t + 1) : 0;
    if (row.length) *row.length = static_cast<std::int32_t>(length_of(index));
    if (row.labels) *row.labels = static_cast<std::int32_t>(index % 2);
  }

 private:
  index_t num_samples_;
  std::string folder_ = "memory";
  std::vector<std::string> names_{"even", "odd"};
};

std::vector<index_t> numbers(index_t n) {
  std::vector<index_t> all;
  for (index_t i = 0; i < n; ++i) all.push_back(i);
  return all;
}

LengthBuckets buckets_of(const Texts& texts, std::vector<index_t> bounds = {3, 8, 12}) {
  return make_length_buckets(texts, numbers(texts.num_samples()), std::move(bounds));
}

Sampler plain_sampler(index_t n, index_t global, LastBatch last) {
  return {numbers(n), global, last, seed};
}

Sampler bucket_sampler(index_t n, index_t global, LastBatch last) {
  return {numbers(n), global, last, seed, {}, buckets_of(Texts(n))};
}

std::vector<std::vector<index_t>> batches_of(Sampler sampler, index_t epoch) {
  std::vector<std::vector<index_t>> all;
  for (index_t t = 0; t < sampler.steps_per_epoch(); ++t) {
    const BatchIndices batch = sampler.indices_of(epoch * sampler.steps_per_epoch() + t);
    all.emplace_back(batch.sample.begin(), batch.sample.begin() + batch.num_real);
  }
  return all;
}

// Where the batches of an epoch go: their numbers in the order of Philox's words, by the paper's
// generator. 9 is the stream's number, in the key's last byte; the epoch and the batch's number are
// the counter.
std::vector<std::size_t> shuffled_batches(std::size_t count, index_t epoch) {
  std::map<std::uint64_t, std::size_t> by_number;
  for (std::uint32_t batch = 0; batch < count; ++batch) {
    const auto words = oracle::philox4x32_10({batch, 0, static_cast<std::uint32_t>(epoch), 0},
                                             {static_cast<std::uint32_t>(seed), 9u << 24});
    by_number.emplace((std::uint64_t{words[1]} << 32) | words[0], batch);
  }
  std::vector<std::size_t> order;
  for (const auto& [number, batch] : by_number) order.push_back(batch);
  return order;
}

}  // namespace

TEST_CASE("windows of the shuffled order, sorted by length, in shuffled batches", "[buckets]") {
  constexpr index_t global = 10, n = 10 * 75 + 4;  // windows of 32, 32 and 11 batches, and a rest
  for (const LastBatch last : {LastBatch::drop, LastBatch::pad}) {
    for (const index_t epoch : {0, 1, 5}) {
      const auto before = batches_of(plain_sampler(n, global, last), epoch);
      const auto after = batches_of(bucket_sampler(n, global, last), epoch);
      REQUIRE(after.size() == before.size());
      constexpr std::size_t whole = n / global;
      std::vector<std::vector<index_t>> expected(before.size());
      const std::vector<std::size_t> places = shuffled_batches(whole, epoch);
      for (std::size_t first = 0; first < whole; first += 32) {
        // By length, then by where a sample stood.
        std::set<std::array<index_t, 3>> window;
        index_t place = 0;
        for (std::size_t b = first; b < std::min(first + 32, whole); ++b) {
          for (const index_t sample : before[b])
            window.insert({Texts::length_of(sample), place++, sample});
        }
        std::size_t at = 0;
        for (const auto& entry : window) {
          const std::size_t batch = first + at++ / global;
          const auto target = std::find(places.begin(), places.end(), batch) - places.begin();
          expected[static_cast<std::size_t>(target)].push_back(entry[2]);
        }
      }
      // What lies behind the whole batches is what it was.
      if (last == LastBatch::pad) expected.back() = before.back();
      CHECK(after == expected);
    }
  }
}

TEST_CASE("each sample comes once an epoch, and a batch depends on its step alone", "[buckets]") {
  constexpr index_t global = 8, n = 8 * 70 + 3;
  for (const LastBatch last : {LastBatch::drop, LastBatch::pad}) {
    Sampler forward = bucket_sampler(n, global, last), backward = bucket_sampler(n, global, last);
    const index_t steps = forward.steps_per_epoch();
    CHECK(steps == plain_sampler(n, global, last).steps_per_epoch());
    std::vector<std::vector<index_t>> seen;
    for (index_t t = 0; t < 3 * steps; ++t) seen.push_back(forward.indices_of(t).sample);
    for (index_t t = 3 * steps - 1; t >= 0; --t)
      REQUIRE(backward.indices_of(t).sample == seen[static_cast<std::size_t>(t)]);
    for (index_t epoch = 0; epoch < 3; ++epoch) {
      std::set<index_t> samples;
      std::size_t count = 0;
      for (const auto& batch : batches_of(forward, epoch)) {
        samples.insert(batch.begin(), batch.end());
        count += batch.size();
      }
      CHECK(samples.size() == count);
      CHECK(std::ssize(samples) == (last == LastBatch::pad ? n : n / global * global));
    }
    CHECK(batches_of(forward, 0) != batches_of(forward, 1));
  }
}

TEST_CASE("a batch has the smallest bucket that holds its longest text", "[buckets]") {
  constexpr index_t global = 8, n = 8 * 40 + 3;
  Sampler sampler = bucket_sampler(n, global, LastBatch::pad);
  std::map<index_t, int> num_steps;
  for (index_t t = 0; t < 3 * sampler.steps_per_epoch(); ++t) {
    const BatchIndices batch = sampler.indices_of(t);
    index_t longest = 0;
    for (const index_t sample : batch.sample) longest = std::max(longest, Texts::length_of(sample));
    CHECK(batch.tokens == (longest <= 3 ? 3 : longest <= 8 ? 8 : 12));
    ++num_steps[batch.tokens];
  }
  // All sizes came, each in about as many batches as it has lengths: 3, 5 and 4 of 12.
  CHECK(num_steps[3] > 20);
  CHECK(num_steps[8] > 40);
  CHECK(num_steps[12] > 30);
  CHECK(plain_sampler(n, global, LastBatch::pad).indices_of(0).tokens == 0);
}

TEST_CASE("a batch's texts are cut behind their words, on the first stage and on others",
          "[buckets]") {
  const Texts texts(300);
  for (const bool with_input : {true, false}) {
    LoaderOptions options;
    options.lanes = {1, 3};
    options.micro = 2;
    options.microbatches_per_lane = 2;
    options.with_input = with_input;
    Loader loader(texts, Sampler(numbers(300), 16, LastBatch::drop, seed, {}, buckets_of(texts)),
                  options);
    Sampler sampler(numbers(300), 16, LastBatch::drop, seed, {}, buckets_of(texts));
    std::set<index_t> sizes;
    for (index_t t = 0; t < 40; ++t) {
      const HostBatch& batch = loader.next();
      const BatchIndices indices = sampler.indices_of(t);
      CHECK(batch.tokens_per_sample == indices.tokens);
      sizes.insert(batch.tokens_per_sample);
      REQUIRE(batch.num_rows() == 8);
      REQUIRE(std::ssize(batch.tokens) == (with_input ? 8 * indices.tokens : 0));
      for (index_t row = 0; row < 8; ++row) {
        const index_t sample = indices.sample[static_cast<std::size_t>(4 + row)];
        CHECK(batch.dataset_index[static_cast<std::size_t>(row)] == sample);
        CHECK(batch.lengths[static_cast<std::size_t>(row)] == Texts::length_of(sample));
        for (index_t i = 0; with_input && i < indices.tokens; ++i) {
          const bool is_word = i < Texts::length_of(sample);
          CHECK(batch.tokens[static_cast<std::size_t>(row * indices.tokens + i)] ==
                (is_word ? 100 * sample + i + 1 : 0));
        }
      }
    }
    CHECK(sizes == std::set<index_t>{3, 8, 12});
  }
}

TEST_CASE("lengths are those of the samples that were asked for", "[buckets]") {
  const Texts texts(6);
  const LengthBuckets buckets =
      make_length_buckets(texts, std::vector<index_t>{1, 4, 5}, {3, 8, 12});
  CHECK(buckets.lengths == std::vector<std::int32_t>{0, 8, 0, 0, 5, 12});
  CHECK(buckets.tokens_of(std::vector<index_t>{1, 4}) == 8);
  CHECK(buckets.tokens_of(std::vector<index_t>{4, 5}) == 12);
  CHECK_FALSE(LengthBuckets{}.is_on());
  CHECK(LengthBuckets{}.tokens_of(std::vector<index_t>{1}) == 0);
}
