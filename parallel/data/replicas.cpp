#include "parallel/data/replicas.hpp"

#include <algorithm>
#include <utility>

#include "core/fingerprint.hpp"
#include "core/logical_tensor.hpp"
#include "core/norm_block.hpp"
#include "core/tensor.hpp"

namespace weft {

namespace {

constexpr index_t block_elements = 1024;
// What is on the host at a time, where kernels have memory of their own.
constexpr index_t chunk_elements = index_t{1} << 20;

// f(bits, n, first): stretches of a tensor's elements in `local`, which count from its first one.
template <class F>
void for_each_stretch(const HeldTensor& tensor, Range local, const F& f) {
  const Parameter& p = *tensor.parameter;
  for_each_shard(p.spec, [&](index_t, Range shard) {
    const Range wanted = intersection(shard, local);
    if (wanted.empty()) return;
    tensor.held->for_each_in(
        {p.offset + wanted.begin, p.offset + wanted.end}, [&](Range flat, index_t offset) {
          for (index_t done = 0; done < flat.size(); done += chunk_elements) {
            const index_t n = std::min(chunk_elements, flat.size() - done);
            HostMirror mirror(tensor.data + offset + done, n * index_t{sizeof(float)});
            f(static_cast<const std::uint32_t*>(mirror.data()), n, flat.begin + done - p.offset);
          }
        });
  });
}

Range block_range(const HeldTensor& tensor, index_t number) {
  const index_t end = tensor.parameter->spec.local_elements();
  return {number * block_elements, std::min((number + 1) * block_elements, end)};
}

std::string index_text(const LogicalTensor& tensor, const Box& box) {
  const std::string col = std::to_string(box.cols.begin);
  if (tensor.global.num_dims() == 1) return "[" + col + "]";
  return "[" + std::to_string(box.rows.begin) + ", " + col + "]";
}

}  // namespace

std::string HeldTensor::name() const {
  return is_state() ? kind + " of " + parameter->name : parameter->name;
}

std::uint64_t HeldTensor::fingerprint() const {
  std::uint64_t sum = 0;
  for_each_stretch(*this, {0, parameter->spec.local_elements()},
                   [&](const std::uint32_t* bits, index_t n, index_t first) {
                     sum += weft::fingerprint(bits, n, first);
                   });
  return sum;
}

std::vector<std::uint64_t> HeldTensor::block_fingerprints() const {
  const index_t n = parameter->spec.local_elements();
  std::vector<std::uint64_t> sums(
      static_cast<std::size_t>((n + block_elements - 1) / block_elements));
  for (std::size_t b = 0; b < sums.size(); ++b) {
    for_each_stretch(*this, block_range(*this, static_cast<index_t>(b)),
                     [&](const std::uint32_t* bits, index_t length, index_t first) {
                       sums[b] += weft::fingerprint(bits, length, first);
                     });
  }
  return sums;
}

std::vector<std::uint32_t> HeldTensor::block(index_t number) const {
  const Range range = block_range(*this, number);
  std::vector<std::uint32_t> all(static_cast<std::size_t>(range.size()));
  bool is_here = false;
  for_each_stretch(*this, range, [&](const std::uint32_t* bits, index_t n, index_t first) {
    std::copy_n(bits, n, all.begin() + (first - range.begin));
    is_here = true;
  });
  return is_here ? all : std::vector<std::uint32_t>{};
}

std::string HeldTensor::element_name(index_t local) const {
  std::string text;
  for_each_shard(parameter->spec, [&](index_t shard, Range elements) {
    if (!elements.contains(local)) return;
    const TensorBox at = boxes_of(*parameter, shard, {local, local + 1}).front();
    const LogicalTensor tensor = logical_tensors(*parameter)[static_cast<std::size_t>(at.tensor)];
    text = (is_state() ? kind + " of " : "") + tensor.name + " " + index_text(tensor, at.box);
  });
  return text;
}

std::vector<HeldTensor> held_tensors(const ParameterSet& parameters, const Optimizer& optimizer,
                                     const FlatRanges& all_elements) {
  std::vector<HeldTensor> tensors;
  for (const auto& p : parameters.all())
    tensors.push_back({p.get(), "", &all_elements, parameters.values()});
  for (const Optimizer::State& state : optimizer.states()) {
    for (const auto& p : parameters.all())
      tensors.push_back({p.get(), std::string(state.name), &optimizer.owned(), state.data});
  }
  return tensors;
}

std::vector<CopyGroup> copies_of(const MeshShape& shape, int pp, bool is_replicated,
                                 bool is_divided) {
  // [tp rank][dp rank], world ranks.
  std::vector<Copy> by_place(static_cast<std::size_t>(shape.size("tp")));
  for (int rank = 0; rank < shape.num_ranks(); ++rank) {
    if (shape.coordinate(rank, "pp") == pp)
      by_place[static_cast<std::size_t>(shape.coordinate(rank, "tp"))].push_back(rank);
  }
  const auto each_alone = [](const Copy& ranks, CopyGroup& group) {
    for (const int rank : ranks) group.push_back({rank});
  };
  std::vector<CopyGroup> groups;
  if (is_replicated) {
    CopyGroup& all = groups.emplace_back();
    for (const Copy& ranks : by_place) {
      if (is_divided) {
        all.push_back(ranks);
      } else {
        each_alone(ranks, all);
      }
    }
  } else if (!is_divided) {
    for (const Copy& ranks : by_place) each_alone(ranks, groups.emplace_back());
  }
  std::erase_if(groups, [](const CopyGroup& group) { return group.size() < 2; });
  for (CopyGroup& group : groups) std::sort(group.begin(), group.end());
  return groups;
}

std::vector<CopyGroup> tied_copies_of(const MeshShape& shape) {
  if (shape.size("pp") == 1) return {};
  std::vector<CopyGroup> groups(static_cast<std::size_t>(shape.size("tp")));
  for (int rank = 0; rank < shape.num_ranks(); ++rank) {
    const int pp = shape.coordinate(rank, "pp");
    if (pp == 0 || pp == shape.size("pp") - 1)
      groups[static_cast<std::size_t>(shape.coordinate(rank, "tp"))].push_back({rank});
  }
  return groups;
}

}  // namespace weft
