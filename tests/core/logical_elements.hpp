// The slow reference of core/logical_tensor: which element of which tensor lies where in storage,
// one by one. And random parameters of all kinds to hold it against.
#pragma once

#include <map>
#include <random>
#include <string>
#include <tuple>

#include "core/parameter.hpp"
#include "tests/core/shard_values.hpp"

namespace weft::testing {

// An element of a parameter's tensors; a vector is one row.
struct LogicalElement {
  index_t tensor, row, col;
  friend auto operator<=>(const LogicalElement&, const LogicalElement&) = default;
};

// Of each element that a rank holds and that is no pad: where it is in local storage.
inline std::map<index_t, LogicalElement> logical_elements(const Parameter& parameter) {
  const Shape& global = parameter.spec.global();
  const bool is_vector = global.num_dims() == 1;
  const index_t row_length = is_vector ? 1 : global[1];
  // Deals out the rows in turns.
  std::vector<LogicalElement> first_of_row;
  std::vector<index_t> dealt(std::max<std::size_t>(1, parameter.turns.names.size()), 0);
  std::size_t tensor = 0;
  for (index_t row = 0, in_turn = 0; row < global[0]; ++row) {
    if (!parameter.turns.names.empty() && in_turn++ == parameter.turns.rows) {
      tensor = (tensor + 1) % dealt.size();
      in_turn = 1;
    }
    first_of_row.push_back({static_cast<index_t>(tensor), dealt[tensor]++, 0});
  }
  std::map<index_t, LogicalElement> elements;
  for_each_held(parameter.spec, [&](index_t in_global, index_t local) {
    LogicalElement element = first_of_row[static_cast<std::size_t>(in_global / row_length)];
    if (is_vector) {
      std::swap(element.row, element.col);
    } else {
      element.col = in_global % row_length;
    }
    elements.emplace(local, element);
  });
  return elements;
}

// A parameter without a rank: what all layouts of it have in common.
struct GlobalParameter {
  Shape global;
  int dim = -1;  // cut; -1: replicated
  Turns turns;

  // Pads are what makes the cut dim a multiple of the shards; `pads` more rounds of them.
  Parameter on(index_t shards, index_t tp, index_t rank, index_t pads = 0) const {
    Parameter parameter;
    parameter.name = "some.weight";
    parameter.turns = turns;
    parameter.spec =
        dim < 0 ? ShardSpec::replicated(global)
                : ShardSpec::cut(global, dim, round_up(global[dim], shards) + pads * shards, shards,
                                 part_of(rank, tp, shards));
    return parameter;
  }
};

class RandomParameters {
 public:
  explicit RandomParameters(std::uint64_t seed) : generator_(seed) {}

  // Uniform in [low, high].
  index_t number(index_t low, index_t high) {
    return std::uniform_int_distribution<index_t>(low, high)(generator_);
  }

  // Turns are of whole rounds in each of 12 pieces, as Turns asks for.
  GlobalParameter next() {
    GlobalParameter made;
    const int dims = static_cast<int>(number(1, 2));
    made.dim = static_cast<int>(number(-1, dims - 1));
    index_t rows = number(1, 40);
    if (number(0, 1) == 0) {
      for (index_t i = number(1, 4); i > 0; --i) made.turns.names.push_back(std::to_string(i));
      made.turns.rows = number(1, 3);
      rows = made.turns.rows * static_cast<index_t>(made.turns.names.size()) *
             (made.dim == 0 ? 12 : number(1, 5));
    }
    made.global = dims == 1 ? Shape{rows} : Shape{rows, number(1, 30)};
    return made;
  }

  index_t shards() {
    constexpr index_t choices[] = {1, 2, 3, 4, 6, 12};
    return choices[number(0, 5)];
  }

 private:
  std::mt19937_64 generator_;
};

}  // namespace weft::testing
