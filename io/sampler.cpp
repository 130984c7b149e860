// Batches by index; see the header.
#include "io/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "io/random_order.hpp"
#include "io/split.hpp"

namespace weft {

namespace {

// Positions begin..begin+size-1 of `order`, padded to `size` rows.
BatchIndices cut(const std::vector<index_t>& order, index_t begin, index_t size) {
  BatchIndices batch;
  batch.num_real = std::min(size, static_cast<index_t>(order.size()) - begin);
  assert(batch.num_real > 0);
  batch.sample.assign(order.begin() + begin, order.begin() + begin + batch.num_real);
  batch.sample.resize(size, batch.sample.front());
  batch.weight.assign(batch.num_real, 1.0f);
  batch.weight.resize(size, 0.0f);
  return batch;
}

}  // namespace

Sampler::Sampler(std::vector<index_t> samples, index_t global_batch, LastBatch last,
                 std::uint64_t seed, const ClassBalance& balance, LengthBuckets buckets)
    : samples_(std::move(samples)),
      global_batch_(global_batch),
      last_(last),
      seed_(seed),
      buckets_(std::move(buckets)) {
  require(global_batch >= 1, ExitCode::usage,
          fmt::format("batch.global = {}: expected at least 1", global_batch));
  require(!samples_.empty(), ExitCode::usage, "the training part is empty: raise task.split train");
  require(steps_per_epoch() >= 1, ExitCode::usage,
          fmt::format("batch.global = {} with batch.last = \"drop\" leaves no batch of {} training "
                      "samples: use at most {}, or batch.last = \"pad\"",
                      global_batch, samples_.size(), samples_.size()));
  if (balance.rare_share == 0.0) return;
  rare_ = balance.rare;
  std::set_difference(samples_.begin(), samples_.end(), rare_.begin(), rare_.end(),
                      std::back_inserter(common_));
  require(!rare_.empty() && !common_.empty(), ExitCode::usage,
          fmt::format("task.rare_share = {}: the training part has {} samples of class 1 and {} "
                      "others; expected some of both",
                      balance.rare_share, rare_.size(), common_.size()));
  num_rare_ = std::llround(balance.rare_share * static_cast<double>(num_samples()));
}

index_t Sampler::steps_per_epoch() const {
  const index_t missing = last_ == LastBatch::pad ? global_batch_ - 1 : 0;
  return (num_samples() + missing) / global_batch_;
}

BatchIndices Sampler::indices_of(index_t step) {
  assert(step >= 0);
  const index_t epoch = step / steps_per_epoch();
  BatchIndices batch =
      cut(order_of(epoch), step % steps_per_epoch() * global_batch_, global_batch_);
  batch.step = step;
  batch.epoch = epoch;
  batch.tokens = buckets_.tokens_of(batch.sample);
  return batch;
}

void Sampler::balance_order(index_t epoch) {
  std::vector<index_t> drawn;
  // Appends `count` of `list`: all of it as often as it fits, then a part, in a new order each time.
  const auto draw = [&](const std::vector<index_t>& list, index_t count) {
    const index_t most = num_samples() / std::ssize(list) + 1;  // passes of an epoch
    for (index_t pass = 0; count > 0; ++pass) {
      const auto order = random_order(list, seed_, Stream::rare, epoch * most + pass);
      const index_t taken = std::min(count, std::ssize(order));
      drawn.insert(drawn.end(), order.begin(), order.begin() + taken);
      count -= taken;
    }
  };
  draw(rare_, num_rare_);
  draw(common_, num_samples() - num_rare_);
  order_.clear();
  for (const index_t place :
       random_order(all_of({0, num_samples()}), seed_, Stream::permutation, epoch))
    order_.push_back(drawn[static_cast<std::size_t>(place)]);
}

const std::vector<index_t>& Sampler::order_of(index_t epoch) {
  if (epoch == ordered_epoch_) return order_;
  if (rare_.empty()) {
    order_ = random_order(samples_, seed_, Stream::permutation, epoch);
  } else {
    balance_order(epoch);
  }
  if (buckets_.is_on()) group_by_length(order_, global_batch_, buckets_, seed_, epoch);
  ordered_epoch_ = epoch;
  return order_;
}

EvalSampler::EvalSampler(std::vector<index_t> samples, index_t micro)
    : samples_(std::move(samples)), micro_(micro) {
  require(micro >= 1, ExitCode::usage,
          fmt::format("evaluation microbatch = {}: expected at least 1", micro));
}

BatchIndices EvalSampler::indices_of(index_t microbatch) const {
  assert(0 <= microbatch && microbatch < num_microbatches());
  BatchIndices batch = cut(samples_, microbatch * micro_, micro_);
  batch.step = microbatch;
  return batch;
}

}  // namespace weft
