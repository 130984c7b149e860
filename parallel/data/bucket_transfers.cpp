#include "parallel/data/bucket_transfers.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace weft {

namespace {

constexpr index_t element_bytes = sizeof(float);

// Calls f(bucket) for those that overlap `flat`.
template <class F>
void for_each_overlapping(const std::vector<Bucket>& buckets,
                          const std::vector<std::size_t>& by_position, Range flat, const F& f) {
  auto next = std::upper_bound(
      by_position.begin(), by_position.end(), flat.begin,
      [&](index_t at, std::size_t bucket) { return at < buckets[bucket].flat.end; });
  for (; next != by_position.end() && buckets[*next].flat.begin < flat.end; ++next) f(*next);
}

}  // namespace

BucketTransfers::BucketTransfers(Communicator& dp, const ParameterSet& parameters,
                                 std::vector<Bucket> buckets, const Sum& sum)
    : dp_(dp), buckets_(std::move(buckets)), sum_(sum), by_position_(buckets_.size()) {
  if (dp_.size() == 1) buckets_.clear(), by_position_.clear();
  std::iota(by_position_.begin(), by_position_.end(), std::size_t{0});
  std::sort(by_position_.begin(), by_position_.end(), [this](std::size_t a, std::size_t b) {
    return buckets_[a].flat.begin < buckets_[b].flat.begin;
  });
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    names_.push_back("grad_sync.bucket." + std::to_string(i));
  under_way_.reserve(buckets_.size());
  count_pieces(parameters);
}

void BucketTransfers::count_pieces(const ParameterSet& parameters) {
  num_pieces_.assign(buckets_.size(), 0);
  const auto count = [&](Range flat) {
    if (flat.empty()) return;
    for_each_overlapping(buckets_, by_position_, flat, [&](std::size_t b) { ++num_pieces_[b]; });
  };
  for (const auto& p : parameters.all()) {
    if (p->rows == GradientRows::token_blocks) continue;
    for (index_t shard = p->spec.owned().begin; shard < p->spec.owned().end; ++shard) {
      const index_t begin = p->offset + p->spec.offset(shard);
      count({begin, begin + p->spec.block(shard).num_elements()});
    }
  }
  count(parameters.token_block_range());
}

void BucketTransfers::begin(std::vector<float*> nodes) {
  assert(num_finished_ == under_way_.size());
  nodes_ = std::move(nodes);
  missing_ = num_pieces_;
  ready_ns_.assign(buckets_.size(), 0);
  under_way_.clear();
  num_finished_ = 0;
  bytes_before_ = dp_.bytes_sent();
  statistics_ = {.num_buckets = static_cast<index_t>(buckets_.size())};
}

void BucketTransfers::complete(Context& context, Range flat) {
  if (buckets_.empty() || flat.empty()) return;
  for_each_overlapping(buckets_, by_position_, flat, [&](std::size_t b) {
    assert(missing_[b] > 0);
    if (--missing_[b] == 0) ready_ns_[b] = context.trace.now_ns();
  });
  // In order, whatever is full behind a gap: all ranks start the same collectives alike.
  while (under_way_.size() < buckets_.size() && missing_[under_way_.size()] == 0) {
    const std::size_t next = under_way_.size();
    if (num_finished_ == next) busy_since_ns_ = context.trace.now_ns();
    context.device.fence();
    if (context.trace.is_recording())
      context.trace.add_interval({.row = "ready", .name = names_[next]}, ready_ns_[next],
                                 context.trace.now_ns());
    launch(buckets_[next], names_[next]);
  }
  poll(context);
}

void BucketTransfers::launch(const Bucket& bucket, const std::string& name) {
  const index_t count = bucket.flat.size();
  Transfer transfer;
  std::vector<void*> inputs;
  for (float* node : nodes_)
    transfer.mirrors.emplace_back(node + bucket.flat.begin, count * element_bytes);
  for (HostMirror& mirror : transfer.mirrors) inputs.push_back(mirror.data());
  if (sum_.scatter) {
    ReduceScatter scatter{.order = sum_.order,
                          .num_leaves = sum_.num_leaves,
                          .count = count,
                          .cuts = {},
                          .inputs = inputs,
                          .output = nullptr};
    for (const index_t cut : bucket.cuts) scatter.cuts.push_back(cut - bucket.flat.begin);
    scatter.output =
        static_cast<float*>(inputs[0]) + scatter.cuts[static_cast<std::size_t>(dp_.rank())];
    transfer.request = dp_.start({name, std::move(scatter)});
  } else {
    transfer.request = dp_.start({name, AllReduce{.order = sum_.order,
                                                  .num_leaves = sum_.num_leaves,
                                                  .count = count,
                                                  .inputs = inputs,
                                                  .output = inputs[0]}});
  }
  under_way_.push_back(std::move(transfer));
}

void BucketTransfers::poll(Context& context) {
  if (num_finished_ == under_way_.size()) return;
  dp_.progress()->step_all();
  while (num_finished_ < under_way_.size() && under_way_[num_finished_].request.is_done())
    take_back(context, under_way_[num_finished_]);
}

void BucketTransfers::take_back(Context& context, Transfer& transfer) {
  transfer.request.wait();
  transfer.mirrors[0].to_device();
  transfer.mirrors.clear();
  if (++num_finished_ == under_way_.size())
    statistics_.under_way_ns += context.trace.now_ns() - busy_since_ns_;
}

void BucketTransfers::finish(Context& context) {
  assert(under_way_.size() == buckets_.size());
  poll(context);
  statistics_.finished_early = static_cast<index_t>(num_finished_);
  const std::int64_t begin_ns = context.trace.now_ns();
  while (num_finished_ < under_way_.size()) take_back(context, under_way_[num_finished_]);
  statistics_.exposed_ns = context.trace.now_ns() - begin_ns;
  statistics_.bytes_sent = dp_.bytes_sent() - bytes_before_;
}

void BucketTransfers::publish(Context& context, float* flat) {
  if (buckets_.empty() || !sum_.scatter) return;
  const std::int64_t begin_ns = context.trace.now_ns();
  const std::uint64_t bytes_before = dp_.bytes_sent();
  context.device.fence();
  std::vector<HostMirror> mirrors;
  std::vector<Request> requests;
  for (const Bucket& bucket : buckets_) {
    mirrors.emplace_back(flat + bucket.flat.begin, bucket.flat.size() * element_bytes);
    AllGather gather{.cuts = {}, .input = nullptr, .output = mirrors.back().data()};
    for (const index_t cut : bucket.cuts)
      gather.cuts.push_back((cut - bucket.flat.begin) * element_bytes);
    requests.push_back(dp_.start({"grad_sync.publish", std::move(gather)}));
  }
  for (Request& request : requests) request.wait();
  for (HostMirror& mirror : mirrors) mirror.to_device();
  statistics_.publish_ns = context.trace.now_ns() - begin_ns;
  statistics_.bytes_sent += dp_.bytes_sent() - bytes_before;
}

}  // namespace weft
