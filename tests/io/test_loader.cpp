// The loader: the right rows on every layout, faults of its thread, and an end at any moment.
#include <catch2/catch.hpp>

#include <chrono>
#include <map>
#include <thread>

#include "io/cifar10_samples.hpp"
#include "io/loader.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr index_t lanes = 4, micro = 2, per_lane = 3, global = lanes * micro * per_lane;

std::vector<index_t> first(index_t n) {
  std::vector<index_t> samples(n);
  for (index_t i = 0; i < n; ++i) samples[i] = i;
  return samples;
}

LoaderOptions options_of(Range owned) {
  LoaderOptions options;
  options.lanes = owned;
  options.micro = micro;
  options.microbatches_per_lane = per_lane;
  options.seed = 11;
  return options;
}

Sampler sampler_of(index_t n) { return {first(n), global, LastBatch::pad, 11}; }

// One lane's part of a step, whoever loaded it.
struct LanePart {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> dataset_index;
  std::vector<float> weight;
  index_t num_real_global = 0;
  friend bool operator==(const LanePart&, const LanePart&) = default;
};

LanePart part_of_batch(const HostBatch& batch, index_t lane) {
  const index_t rows = micro * per_lane, begin = lane * rows;
  const auto cut = [&](const auto& all, index_t width) {
    return std::vector(all.begin() + begin * width, all.begin() + (begin + rows) * width);
  };
  const auto x = cut(batch.features, 3072);
  const auto labels = cut(batch.labels, 1);
  const auto indices = cut(batch.dataset_index, 1);
  const auto weight = cut(batch.weight, 1);
  return {{x.begin(), x.end()},
          {labels.begin(), labels.end()},
          {indices.begin(), indices.end()},
          {weight.begin(), weight.end()},
          batch.num_real_global};
}

}  // namespace

TEST_CASE("a lane's rows do not depend on dp", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  constexpr index_t num_steps = 7;  // 90 samples are 4 steps: over an epoch's padded end
  std::map<std::pair<index_t, index_t>, LanePart> expected;
  for (index_t dp : {1, 2, 3, 4}) {
    for (index_t dp_rank = 0; dp_rank < dp; ++dp_rank) {
      const Range owned = part_of(dp_rank, dp, lanes);
      Loader loader(data, sampler_of(90), options_of(owned));
      for (index_t step = 0; step < num_steps; ++step) {
        const HostBatch& batch = loader.next();
        REQUIRE(batch.step == step);
        REQUIRE(batch.epoch == step / 4);
        REQUIRE(batch.num_rows() == owned.size() * micro * per_lane);
        for (index_t i = 0; i < owned.size(); ++i) {
          const LanePart part = part_of_batch(batch, i);
          const auto [entry, is_new] = expected.try_emplace({step, owned.begin + i}, part);
          REQUIRE(is_new == (dp == 1));
          REQUIRE(entry->second == part);
        }
      }
    }
  }
}

TEST_CASE("rows are the sampler's, in the order lane, microbatch, row", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  Sampler sampler = sampler_of(90);
  LoaderOptions options = options_of({1, 3});
  options.augment = false;
  const Normalization normalization;
  Loader loader(data, sampler, options);
  for (index_t step = 0; step < 5; ++step) {
    const HostBatch& batch = loader.next();
    const BatchIndices indices = sampler.indices_of(step);
    CHECK(batch.num_real_global == indices.num_real);
    index_t at = 0;
    for (index_t j = 0; j < global; ++j) {
      const SamplePlace place = place_of(j, micro, per_lane);
      if (place.lane < 1 || place.lane >= 3) continue;
      REQUIRE(batch.dataset_index[at] == indices.sample[j]);
      REQUIRE(batch.labels[at] == indices.sample[j] % 10);
      REQUIRE(batch.weight[at] == (j < indices.num_real ? 1.0f : 0.0f));
      const std::uint8_t pixel = small_pixel(indices.sample[j], 2000);
      REQUIRE(batch.features[at * 3072 + 2000] == normalization.channel(1)[pixel]);
      ++at;
    }
    CHECK(at == batch.num_rows());
  }
}

TEST_CASE("without input the rest of a batch is the same", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  LoaderOptions options = options_of({1, 3});
  Loader with(data, sampler_of(90), options);
  options.with_input = false;
  Loader without(data, sampler_of(90), options);
  for (index_t step = 0; step < 5; ++step) {
    const HostBatch& a = with.next();
    const HostBatch& b = without.next();
    CHECK(b.features.empty());
    CHECK(a.labels == b.labels);
    CHECK(a.weight == b.weight);
    CHECK(a.dataset_index == b.dataset_index);
    CHECK(a.num_real_global == b.num_real_global);
    CHECK(a.epoch == b.epoch);
  }
}

TEST_CASE("augmentation is keyed by epoch and dataset index", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  const Normalization normalization;
  Loader loader(data, sampler_of(90), options_of({0, lanes}));
  for (index_t step = 0; step < 6; ++step) {
    const HostBatch& batch = loader.next();
    for (index_t row = 0; row < batch.num_rows(); ++row) {
      const index_t sample = batch.dataset_index[row];
      std::vector<float> x(3072);
      augment_into(data.images().image(Cifar10::Part::training, sample).pixels,
                   crop_of(11, batch.epoch, sample), normalization, ImageValues(x));
      REQUIRE(std::equal(x.begin(), x.end(), batch.features.begin() + row * 3072));
    }
  }
}

TEST_CASE("a loader that starts later goes on as the first one", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  Loader whole(data, sampler_of(90), options_of({0, lanes}));
  for (int i = 0; i < 5; ++i) whole.next();
  LoaderOptions later = options_of({0, lanes});
  later.first_step = 5;
  Loader resumed(data, sampler_of(90), later);
  for (int i = 0; i < 4; ++i) {
    const HostBatch& a = whole.next();
    const HostBatch& b = resumed.next();
    CHECK(a.step == b.step);
    CHECK(a.features == b.features);
    CHECK(a.labels == b.labels);
  }
}

TEST_CASE("a batch stays until the next one is asked for", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  const index_t depth = GENERATE(1, 2, 5);
  LoaderOptions options = options_of({0, lanes});
  options.depth = depth;
  Loader loader(data, sampler_of(90), options);
  for (index_t step = 0; step < 12; ++step) {
    const HostBatch& batch = loader.next();
    const HostBatch before = batch;
    // Time enough for the thread to fill whatever it may fill.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(batch.step == step);
    REQUIRE(batch.dataset_index == before.dataset_index);
    REQUIRE(batch.features == before.features);
    REQUIRE(reinterpret_cast<std::uintptr_t>(batch.features.data()) % 64 == 0);
  }
}

TEST_CASE("an error of the thread comes out of next, after what was ready", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  std::string bytes = read_all(folder / "data_batch_1.bin");
  Sampler sampler = sampler_of(90);
  // A sample of step 2 that lies in the first file.
  index_t bad = -1;
  for (index_t sample : sampler.indices_of(2).sample) bad = sample < 20 ? sample : bad;
  REQUIRE(bad >= 0);
  bytes[bad * 3073] = 99;
  write_all(folder / "data_batch_1.bin", bytes);
  const Cifar10Samples data(folder.path());
  Loader loader(data, sampler, options_of({0, lanes}));
  CHECK(loader.next().step == 0);
  CHECK(loader.next().step == 1);
  for (int i = 0; i < 2; ++i) {
    const auto error = error_of([&] { loader.next(); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, "label 99"));
  }
}

TEST_CASE("beyond the last step is an error", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  LoaderOptions options = options_of({0, lanes});
  options.end_step = 3;
  Loader loader(data, sampler_of(90), options);
  for (index_t step = 0; step < 3; ++step) CHECK(loader.next().step == step);
  CHECK(says(error_of([&] { loader.next(); }), "beyond the last step, 3"));
}

TEST_CASE("lanes outside the global batch are refused", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  CHECK(says(error_of([&] { Loader(data, sampler_of(90), options_of({3, 5})); }), "lanes 3..4"));
  CHECK(error_of([&] { Loader(data, sampler_of(90), options_of({2, 2})); }).has_value());
}

TEST_CASE("a loader may end at any moment", "[loader]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Cifar10Samples data(folder.path());
  for (int round = 0; round < 60; ++round) {
    Loader loader(data, sampler_of(90), options_of({0, lanes}));
    std::this_thread::sleep_for(std::chrono::microseconds(37 * (round % 10)));
    for (int i = 0; i < round % 5; ++i) loader.next();
  }
}

TEST_CASE("a plan's numbers become a loader's", "[loader]") {
  Plan plan;
  plan.batch = {96, 4, LastBatch::drop};
  plan.numerics.lanes = 8;
  plan.numerics.seed = 5;
  plan.task.augment = false;
  plan.layout.dp = 3;
  const LoaderOptions options = loader_options(plan, 1);
  CHECK(options.lanes == Range{2, 5});
  CHECK(options.micro == 4);
  CHECK(options.microbatches_per_lane == 3);
  CHECK(options.seed == 5);
  CHECK_FALSE(options.augment);
  // Fast mode has as many lanes as replicas.
  plan.numerics.mode = NumericsMode::fast;
  CHECK(loader_options(plan, 1).lanes == Range{1, 2});
  CHECK(loader_options(plan, 1).microbatches_per_lane == 8);
}
