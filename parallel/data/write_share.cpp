#include "parallel/data/write_share.hpp"

#include <limits>
#include <utility>

namespace weft {

namespace {

// Where ParameterSet::allocate() places them.
std::vector<Range> places_of(const std::vector<FlatEntry>& parameters) {
  std::vector<Range> places(parameters.size());
  index_t end = 0;
  for (const bool by_token_blocks : {false, true}) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if ((parameters[i].rows == GradientRows::token_blocks) != by_token_blocks) continue;
      places[i] = {end, end + parameters[i].spec.local_elements()};
      end = places[i].end;
    }
  }
  return places;
}

}  // namespace

FlatRanges write_share(const std::vector<FlatEntry>& parameters, int tp_rank, int tp_size,
                       const FlatRanges& slice) {
  const std::vector<Range> places = places_of(parameters);
  std::vector<Range> share;
  index_t replicated = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (parameters[i].spec.is_replicated() && replicated++ % tp_size != tp_rank) continue;
    slice.for_each_in(places[i], [&](Range flat, index_t) { share.push_back(flat); });
  }
  return FlatRanges(std::move(share));
}

FlatRanges even_slice(const FlatLayout& layout, int dp_rank, int dp_size) {
  const auto whole = std::numeric_limits<index_t>::max();
  return slices_of(make_buckets(layout, whole, dp_size), dp_rank);
}

}  // namespace weft
