#include "io/checkpoint/reshard_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "io/checkpoint/shard_format.hpp"

namespace weft {

namespace {

constexpr const char* remedy =
    "the plan is of another model than the checkpoint: give the plan that wrote it (weft ckpt "
    "inspect shows it) with another layout";

// The first position of a tensor, from 0 to all its elements, that is >= `element` and where it may
// be cut.
index_t cut_at(const Box& whole, index_t element) {
  const index_t step = whole.rows.size() == 1 ? BlockRecord::most_elements : whole.cols.size();
  const index_t at = std::clamp<index_t>(element, 0, whole.num_elements());
  return std::min((at + step - 1) / step * step, whole.num_elements());
}

Box box_between(const Box& whole, index_t begin, index_t end) {
  if (whole.rows.size() == 1) return {whole.rows, {begin, end}};
  return {{begin / whole.cols.size(), end / whole.cols.size()}, whole.cols};
}

}  // namespace

std::vector<ShardCut> cut_evenly(const std::vector<TensorRecord>& tensors, index_t num_shards) {
  index_t all = 0;
  for (const TensorRecord& tensor : tensors) all += tensor.global.num_elements();
  std::vector<ShardCut> shards(static_cast<std::size_t>(num_shards));
  for (index_t shard = 0; shard < num_shards; ++shard) {
    const Range mine = part_of(shard, num_shards, all);
    index_t first = 0;  // element of the tensor, in the row of all tensors
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const Box whole = whole_box(tensors[t].global);
      const index_t begin = cut_at(whole, mine.begin - first),
                    end = cut_at(whole, mine.end - first);
      if (begin < end)
        shards[static_cast<std::size_t>(shard)].pieces.push_back(
            {static_cast<index_t>(t), box_between(whole, begin, end)});
      first += whole.num_elements();
    }
  }
  return shards;
}

namespace {

// As ranks write them: values, then what the optimizer keeps.
std::vector<std::string> kinds_of(const std::vector<TensorRecord>& tensors) {
  std::set<std::pair<bool, std::string>> kinds;
  for (const TensorRecord& tensor : tensors) kinds.insert({tensor.kind != "value", tensor.kind});
  std::vector<std::string> names;
  for (const auto& [is_moment, name] : kinds) names.push_back(name);
  return names;
}

}  // namespace

ShardCut cut_of_rank(const std::vector<TensorRecord>& tensors, const ParameterSet& parameters,
                     const FlatRanges& share) {
  std::map<std::pair<std::string, std::string>, index_t> numbers;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    numbers[{tensors[t].name, tensors[t].kind}] = static_cast<index_t>(t);
  const std::vector<HeldBox> boxes = joined_boxes_in(parameters, share);
  ShardCut cut;
  for (const std::string& kind : kinds_of(tensors)) {
    for (const HeldBox& held : boxes) {
      const auto found = numbers.find({held.tensor, kind});
      require(found != numbers.end(), ExitCode::usage,
              fmt::format("expected a tensor {} ({}), found none: {}", held.tensor, kind, remedy));
      const Shape& global = tensors[static_cast<std::size_t>(found->second)].global;
      require(global == held.global, ExitCode::usage,
              fmt::format("expected the tensor {} with shape {}, found {}: {}", held.tensor,
                          held.global.text(), global.text(), remedy));
      cut.pieces.push_back({found->second, held.box.box});
    }
  }
  return cut;
}

void require_whole(const std::vector<TensorRecord>& tensors, const std::vector<ShardCut>& shards) {
  std::vector<index_t> num_elements(tensors.size());
  for (const ShardCut& shard : shards) {
    for (const ShardCut::Piece& piece : shard.pieces)
      num_elements[static_cast<std::size_t>(piece.tensor)] += piece.box.num_elements();
  }
  for (std::size_t t = 0; t < tensors.size(); ++t)
    require(num_elements[t] == tensors[t].global.num_elements(), ExitCode::usage,
            fmt::format("the tensor {} ({}) has {} elements and the layout has places for {}: {}",
                        tensors[t].name, tensors[t].kind, tensors[t].global.num_elements(),
                        num_elements[t], remedy));
}

}  // namespace weft
