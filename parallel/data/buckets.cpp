#include "parallel/data/buckets.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/norm_block.hpp"

namespace weft {

namespace {

Range place(FlatLayout& layout, const ShardSpec& spec) {
  const index_t begin = layout.cuts.back();
  layout.cuts.pop_back();
  if (layout.cuts.empty()) layout.cuts.push_back(begin);
  for_each_shard(spec, [&](index_t, Range local) {
    for (index_t at = local.begin; at < local.end; at += norm_block) {
      // The very first cut is 0, also where pads come first.
      if (begin + at > layout.cuts.back()) layout.cuts.push_back(begin + at);
    }
  });
  const index_t end = begin + spec.local_elements();
  layout.cuts.push_back(end);
  return {begin, end};
}

// The cut in `cuts` that is nearest to `target`, among those in `range`.
index_t nearest_cut(const std::vector<index_t>& cuts, index_t target, Range range) {
  target = std::clamp(target, range.begin, range.end);
  const auto after = std::lower_bound(cuts.begin(), cuts.end(), target);
  if (after == cuts.begin() || *after == target) return *after;
  const index_t above = *after, below = *(after - 1);
  return above > range.end || (below >= range.begin && target - below <= above - target) ? below
                                                                                         : above;
}

// Cuts what lies in `range` into buckets, from its end.
void add_buckets(const FlatLayout& layout, Range range, index_t bucket_elements,
                 std::vector<Bucket>& buckets) {
  const auto& cuts = layout.cuts;
  while (!range.empty()) {
    auto begin = std::lower_bound(cuts.begin(), cuts.end(), range.end - bucket_elements);
    if (*begin >= range.end) --begin;  // a norm block that is larger than a bucket
    buckets.push_back({{std::max(*begin, range.begin), range.end}, {}});
    range.end = buckets.back().flat.begin;
  }
}

}  // namespace

FlatLayout flat_layout(const std::vector<FlatEntry>& parameters) {
  FlatLayout layout;
  layout.places.resize(parameters.size());
  for (const GradientRows rows : {GradientRows::all, GradientRows::token_blocks}) {
    if (rows == GradientRows::token_blocks) layout.token_blocks_begin = layout.cuts.back();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].rows == rows) layout.places[i] = place(layout, parameters[i].spec);
    }
  }
  return layout;
}

FlatLayout flat_layout(const ParameterSet& parameters) {
  std::vector<FlatEntry> entries;
  for (const auto& p : parameters.all()) entries.push_back({p->spec, p->rows});
  FlatLayout layout = flat_layout(entries);
  assert(layout.cuts.back() == parameters.flat_elements());
  assert(layout.token_blocks_begin == parameters.token_block_range().begin);
  return layout;
}

std::vector<Bucket> make_buckets(const FlatLayout& layout, index_t bucket_bytes, int dp_size) {
  const index_t bucket_elements = bucket_bytes / index_t{sizeof(float)};
  const index_t end = layout.cuts.back();
  std::vector<Bucket> buckets;
  add_buckets(layout, {0, layout.token_blocks_begin}, bucket_elements, buckets);
  add_buckets(layout, {layout.token_blocks_begin, end}, bucket_elements, buckets);

  // given[r]: elements that ranks 0..r have so far; they should have (r+1)/dp_size of `done`.
  std::vector<index_t> given(static_cast<std::size_t>(dp_size), 0);
  index_t done = 0;
  for (Bucket& bucket : buckets) {
    done += bucket.flat.size();
    bucket.cuts.push_back(bucket.flat.begin);
    for (int rank = 0; rank + 1 < dp_size; ++rank) {
      index_t& before = given[static_cast<std::size_t>(rank)];
      const index_t target = bucket.flat.begin + (rank + 1) * done / dp_size - before;
      bucket.cuts.push_back(
          nearest_cut(layout.cuts, target, {bucket.cuts.back(), bucket.flat.end}));
      before += bucket.cuts.back() - bucket.flat.begin;
    }
    bucket.cuts.push_back(bucket.flat.end);
  }
  return buckets;
}

FlatRanges slices_of(const std::vector<Bucket>& buckets, int dp_rank) {
  const auto rank = static_cast<std::size_t>(dp_rank);
  std::vector<Range> slices;
  for (const Bucket& bucket : buckets) slices.push_back({bucket.cuts[rank], bucket.cuts[rank + 1]});
  return FlatRanges(std::move(slices));
}

}  // namespace weft
