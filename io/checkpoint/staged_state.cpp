#include "io/checkpoint/staged_state.hpp"

#include <cassert>
#include <cstring>
#include <utility>

namespace weft {

namespace {

constexpr index_t element_bytes = sizeof(float);

index_t bytes_of(const LocalState& state, const FlatRanges& share) {
  return static_cast<index_t>(state.kinds.size()) * share.num_elements() * element_bytes;
}

}  // namespace

StagedState::StagedState(Arena& arena, const LocalState& state, FlatRanges share)
    : share_(std::move(share)),
      memory_(arena, MemoryKind::workspace, bytes_of(state, share_)),
      copy_{state.parameters, {}} {
  if (num_bytes() > 0) std::memset(memory_.data(), 0, static_cast<std::size_t>(num_bytes()));
  auto* next = reinterpret_cast<float*>(memory_.data());
  for (const StateKind& kind : state.kinds) {
    copy_.kinds.push_back({kind.name, share_, next, Residence::host});
    next += share_.num_elements();
  }
}

void StagedState::copy_from(const LocalState& state) {
  assert(state.parameters == copy_.parameters && state.kinds.size() == copy_.kinds.size());
  for (std::size_t i = 0; i < copy_.kinds.size(); ++i) {
    const StateKind& from = state.kinds[i];
    float* const to = copy_.kinds[i].data;
    assert(from.name == copy_.kinds[i].name);
    for (const FlatRanges::Part& part : share_.parts()) {
      from.held.for_each_in(part.flat, [&](Range both, index_t at) {
        copy_to_host(to + part.offset + both.begin - part.flat.begin, from.data + at,
                     both.size() * element_bytes);
      });
    }
  }
}

}  // namespace weft
