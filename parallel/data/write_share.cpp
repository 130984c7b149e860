#include "parallel/data/write_share.hpp"

#include <limits>
#include <utility>

namespace weft {

FlatRanges write_share(const FlatLayout& layout, const std::vector<FlatEntry>& parameters,
                       int tp_rank, int tp_size, const FlatRanges& slice) {
  std::vector<Range> share;
  index_t replicated = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].spec.is_replicated() && replicated++ % tp_size != tp_rank) continue;
    slice.for_each_in(layout.places[i], [&](Range flat, index_t) { share.push_back(flat); });
  }
  return FlatRanges(std::move(share));
}

std::vector<Bucket> write_buckets(const FlatLayout& layout, bool has_zero, index_t bucket_bytes,
                                  int dp_size) {
  return make_buckets(layout, has_zero ? bucket_bytes : std::numeric_limits<index_t>::max(),
                      dp_size);
}

}  // namespace weft
