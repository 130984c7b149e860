// Order, batches, places and padding.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>

#include "io/random_order.hpp"
#include "io/sampler.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

std::vector<index_t> every_third(index_t n) {
  std::vector<index_t> samples(n);
  for (index_t i = 0; i < n; ++i) samples[i] = 3 * i + 1;
  return samples;
}

// How often each sample weighs 1 in an epoch.
std::map<index_t, int> count_epoch(Sampler& sampler, index_t epoch) {
  std::map<index_t, int> count;
  for (index_t t = 0; t < sampler.steps_per_epoch(); ++t) {
    const BatchIndices batch = sampler.indices_of(epoch * sampler.steps_per_epoch() + t);
    REQUIRE(batch.epoch == epoch);
    REQUIRE(std::ssize(batch.sample) == sampler.global_batch());
    REQUIRE(std::ssize(batch.weight) == sampler.global_batch());
    for (index_t j = 0; j < sampler.global_batch(); ++j) {
      REQUIRE(batch.weight[j] == (j < batch.num_real ? 1.0f : 0.0f));
      if (batch.weight[j] == 1.0f) ++count[batch.sample[j]];
    }
  }
  return count;
}

}  // namespace

TEST_CASE("each of 45000 samples is seen once an epoch", "[sampler]") {
  const index_t global = GENERATE(128, 96);
  const LastBatch last = GENERATE(LastBatch::drop, LastBatch::pad);
  const index_t n = 45000;
  Sampler sampler(every_third(n), global, last, 1);
  const index_t full = n / global;
  CHECK(sampler.steps_per_epoch() == (last == LastBatch::drop ? full : (n + global - 1) / global));
  for (index_t epoch : {0, 1, 7}) {
    const auto count = count_epoch(sampler, epoch);
    CHECK(std::ssize(count) == (last == LastBatch::drop ? full * global : n));
    for (const auto& [sample, times] : count) {
      REQUIRE(times == 1);
      REQUIRE(sample % 3 == 1);
    }
  }
}

TEST_CASE("padding repeats the batch's first sample", "[sampler]") {
  Sampler sampler(every_third(45000), 128, LastBatch::pad, 1);
  const BatchIndices last = sampler.indices_of(sampler.steps_per_epoch() - 1);
  CHECK(last.num_real == 45000 % 128);
  for (index_t j = last.num_real; j < 128; ++j) {
    CHECK(last.sample[j] == last.sample[0]);
    CHECK(last.weight[j] == 0.0f);
  }
  CHECK(sampler.indices_of(sampler.steps_per_epoch()).epoch == 1);
}

TEST_CASE("a whole number of batches needs no padding", "[sampler]") {
  Sampler sampler(every_third(96), 32, LastBatch::pad, 1);
  CHECK(sampler.steps_per_epoch() == 3);
  for (index_t t = 0; t < 3; ++t) CHECK(sampler.indices_of(t).num_real == 32);
}

TEST_CASE("fewer samples than a batch", "[sampler]") {
  Sampler padded(every_third(5), 8, LastBatch::pad, 1);
  CHECK(padded.steps_per_epoch() == 1);
  CHECK(padded.indices_of(3).num_real == 5);
  const auto error = error_of([] { Sampler(every_third(5), 8, LastBatch::drop, 1); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, "batch.global = 8"));
  CHECK(says(error, "at most 5"));
  CHECK(error_of([] { Sampler({}, 8, LastBatch::pad, 1); })->code() == ExitCode::usage);
}

TEST_CASE("epochs and seeds have orders of their own", "[sampler]") {
  Sampler one(every_third(1000), 10, LastBatch::drop, 1);
  Sampler two(every_third(1000), 10, LastBatch::drop, 2);
  const auto first = one.order_of(0);
  const auto second = one.order_of(1);
  CHECK(first != second);
  CHECK(two.order_of(0) != first);
  // About one sample in a random order stays in its place.
  index_t same = 0;
  for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == second[i];
  CHECK(same < 10);
}

TEST_CASE("an order is sorted by (number, index)", "[sampler]") {
  Sampler sampler(every_third(300), 10, LastBatch::drop, 5);
  const auto order = sampler.order_of(4);
  for (std::size_t i = 1; i < order.size(); ++i) {
    CHECK(random_bits(5, Stream::permutation, 4, order[i - 1]) <
          random_bits(5, Stream::permutation, 4, order[i]));
  }
}

TEST_CASE("a batch depends on its step alone", "[sampler]") {
  auto samples = every_third(100);
  Sampler forward(samples, 8, LastBatch::pad, 1);
  std::reverse(samples.begin(), samples.end());
  Sampler backward(samples, 8, LastBatch::pad, 1);
  std::vector<std::vector<index_t>> seen;
  for (index_t t = 0; t < 40; ++t) seen.push_back(forward.indices_of(t).sample);
  for (index_t t = 39; t >= 0; --t) CHECK(backward.indices_of(t).sample == seen[t]);
}

TEST_CASE("batch t holds positions t*G .. t*G+G-1 of the epoch's order", "[sampler]") {
  Sampler sampler(every_third(50), 8, LastBatch::drop, 1);
  const auto order = sampler.order_of(2);
  for (index_t t = 0; t < 6; ++t) {
    const BatchIndices batch = sampler.indices_of(2 * 6 + t);
    for (index_t j = 0; j < 8; ++j) CHECK(batch.sample[j] == order[t * 8 + j]);
  }
}

TEST_CASE("sample j has one lane, microbatch and row", "[sampler]") {
  // Written as the loops that visit a batch in order.
  const index_t micro = GENERATE(1, 3, 16), per_lane = GENERATE(1, 2, 3), lanes = GENERATE(1, 4, 6);
  index_t j = 0;
  for (index_t lane = 0; lane < lanes; ++lane) {
    const Range rows = rows_of_lanes({lane, lane + 1}, micro, per_lane);
    CHECK(rows.begin == j);
    for (index_t m = 0; m < per_lane; ++m) {
      for (index_t row = 0; row < micro; ++row, ++j) {
        REQUIRE(place_of(j, micro, per_lane) == SamplePlace{lane, m, row});
      }
    }
    CHECK(rows.end == j);
  }
}

TEST_CASE("evaluation sees each sample once, in order", "[sampler]") {
  const index_t n = GENERATE(1, 63, 64, 65, 500), micro = GENERATE(1, 7, 64);
  const EvalSampler sampler(every_third(n), micro);
  std::vector<index_t> seen;
  for (index_t m = 0; m < sampler.num_microbatches(); ++m) {
    const BatchIndices batch = sampler.indices_of(m);
    REQUIRE(std::ssize(batch.sample) == micro);
    for (index_t j = 0; j < micro; ++j) {
      if (batch.weight[j] == 1.0f) {
        seen.push_back(batch.sample[j]);
      } else {
        REQUIRE(batch.sample[j] == batch.sample[0]);
        REQUIRE(m == sampler.num_microbatches() - 1);
      }
    }
  }
  CHECK(seen == every_third(n));
}

TEST_CASE("an epoch with a share of rare samples is as long, and draws each of them alike",
          "[sampler]") {
  // 100 samples, 7 of them rare; 30 of an epoch are to be rare: each four times, two five times.
  std::vector<index_t> samples(100), rare;
  std::iota(samples.begin(), samples.end(), index_t{0});
  for (index_t i = 3; i < 100; i += 15) rare.push_back(i);
  REQUIRE(rare.size() == 7);
  Sampler sampler(samples, 10, LastBatch::drop, 5,
                  {.weights = {}, .rare = rare, .rare_share = 0.3});
  CHECK(sampler.steps_per_epoch() == 10);
  std::vector<std::vector<index_t>> orders;
  std::map<index_t, int> over_epochs;
  for (index_t epoch : {0, 1, 2}) {
    const auto count = count_epoch(sampler, epoch);
    int num_rare = 0, five_times = 0;
    for (const auto& [sample, times] : count) {
      if (std::binary_search(rare.begin(), rare.end(), sample)) {
        num_rare += times;
        five_times += times == 5 ? 1 : 0;
        REQUIRE((times == 4 || times == 5));
      } else {
        REQUIRE(times == 1);  // 70 of the 93 others
        ++over_epochs[sample];
      }
    }
    CHECK(num_rare == 30);
    CHECK(five_times == 2);
    orders.push_back(sampler.order_of(epoch));
    // They are mixed: no run of 10 in the order is of one kind alone.
    for (std::size_t at = 0; at + 10 <= orders.back().size(); at += 10) {
      const auto is_rare = [&](index_t i) {
        return std::binary_search(rare.begin(), rare.end(), i);
      };
      const auto begin = orders.back().begin() + static_cast<std::ptrdiff_t>(at);
      CHECK(std::count_if(begin, begin + 10, is_rare) < 10);
    }
  }
  CHECK(orders[0] != orders[1]);
  CHECK(over_epochs.size() > 85);  // other samples are left out in each epoch
  Sampler again(samples, 10, LastBatch::drop, 5, {.weights = {}, .rare = rare, .rare_share = 0.3});
  CHECK(again.order_of(1) == orders[1]);
}

TEST_CASE("a share above what there is repeats the others, too", "[sampler]") {
  // 90 of 100 are rare, but an epoch wants 40 of the 10 others.
  std::vector<index_t> samples(100), rare(90);
  std::iota(samples.begin(), samples.end(), index_t{0});
  std::iota(rare.begin(), rare.end(), index_t{10});
  Sampler sampler(samples, 10, LastBatch::drop, 5,
                  {.weights = {}, .rare = rare, .rare_share = 0.6});
  const auto count = count_epoch(sampler, 0);
  for (index_t other = 0; other < 10; ++other) CHECK(count.at(other) == 4);
  int num_rare = 0;
  for (index_t i = 10; i < 100; ++i) num_rare += count.contains(i) ? count.at(i) : 0;
  CHECK(num_rare == 60);
}

TEST_CASE("a share of rare samples needs some of both kinds", "[sampler]") {
  const auto samples = every_third(20);
  const auto none = error_of([&] {
    Sampler(samples, 10, LastBatch::drop, 5, {.weights = {}, .rare = {}, .rare_share = 0.3});
  });
  CHECK(says(none, "0 samples of class 1 and 20 others"));
  CHECK(none->code() == ExitCode::usage);
  CHECK(says(error_of([&] {
               Sampler(samples, 10, LastBatch::drop, 5,
                       {.weights = {}, .rare = samples, .rare_share = 0.3});
             }),
             "20 samples of class 1 and 0 others"));
}
