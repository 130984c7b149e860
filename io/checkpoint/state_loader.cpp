#include "io/checkpoint/state_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/box_copy.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"

namespace weft {

namespace {

// What this rank holds of one tensor of the index.
struct Target {
  index_t tensor;
  const StateKind* kind;
  std::vector<HeldBox> boxes;  // all of one parameter
};

constexpr index_t most_viewed_elements = index_t{1} << 18;

using TensorNumbers = std::map<std::pair<std::string_view, std::string_view>, index_t>;

TensorNumbers numbers_of(const CheckpointIndex& index) {
  TensorNumbers numbers;
  for (std::size_t i = 0; i < index.tensors.size(); ++i)
    numbers[{index.tensors[i].name, index.tensors[i].kind}] = static_cast<index_t>(i);
  return numbers;
}

void require_same_tensor(const Checkpoint& checkpoint, const TensorNumbers& numbers,
                         const HeldBox& held, const std::string& kind) {
  const auto found = numbers.find({held.tensor, kind});
  const std::string remedy =
      "it is a checkpoint of another model or optimizer; resume with the plan that wrote it "
      "(weft ckpt inspect shows it)";
  require(found != numbers.end(), ExitCode::usage,
          fmt::format("{}: expected the tensor {} ({}), found none: {}", checkpoint.path,
                      held.tensor, kind, remedy));
  const Shape& saved = checkpoint.index.tensors[static_cast<std::size_t>(found->second)].global;
  require(
      saved == held.global, ExitCode::usage,
      fmt::format("{}: expected the tensor {} ({}) with shape {}, found {}: {}", checkpoint.path,
                  held.tensor, kind, held.global.text(), saved.text(), remedy));
}

std::vector<Target> targets_of(const Checkpoint& checkpoint, const LocalState& state) {
  const TensorNumbers numbers = numbers_of(checkpoint.index);
  std::vector<Target> targets;
  for (const StateKind& kind : state.kinds) {
    std::map<std::string, std::size_t> known;
    for (HeldBox& held : boxes_in(*state.parameters, kind.held)) {
      const auto [at, is_new] = known.try_emplace(held.tensor, targets.size());
      if (is_new) {
        require_same_tensor(checkpoint, numbers, held, kind.name);
        targets.push_back({numbers.at({held.tensor, kind.name}), &kind, {}});
      }
      targets[at->second].boxes.push_back(std::move(held));
    }
  }
  return targets;
}

// One piece of the checkpoint of which this rank wants something.
struct Wanted {
  index_t piece;
  const Target* target;
  PieceRecord record;

  TensorBox box() const { return {target->boxes.front().box.tensor, record.box}; }
};

// Blocks of the piece that hold one of `parts`, joined where they touch.
void add_blocks(const Wanted& wanted, std::vector<BoxPart> parts, std::vector<FileBlocks>& list) {
  std::sort(parts.begin(), parts.end(),
            [](const BoxPart& a, const BoxPart& b) { return a.position < b.position; });
  const std::size_t first = list.size();
  for (const BoxPart& part : parts) {
    const Range blocks = blocks_of(wanted.record, {part.position, part.position + part.length});
    if (list.size() > first && blocks.begin <= list.back().blocks.end) {
      list.back().blocks.end = std::max(list.back().blocks.end, blocks.end);
    } else {
      list.push_back({wanted.record.file, wanted.piece, blocks});
    }
  }
}

// From the memory where the tensor now is, not from what was read.
TensorSum sum_of(const Target& target, index_t width) {
  TensorSum sum;
  for (const HeldBox& held : target.boxes) {
    const Box& box = held.box.box;
    const auto add = [&](const BoxPart& part, const std::uint32_t* bits) {
      const Range elements{part.position, part.position + part.length};
      sum.fingerprint += fingerprint_in_box(bits, box, elements, width);
      sum.num_elements += static_cast<std::uint64_t>(part.length);
    };
    // In windows: where memory is a device's, no more than that is on the host at once.
    for (index_t at = 0; at < box.num_elements(); at += most_viewed_elements) {
      const Range elements{at, std::min(at + most_viewed_elements, box.num_elements())};
      view_box(*held.parameter, held.box, elements, target.kind->numbers(), add);
    }
  }
  return sum;
}

std::vector<Wanted> wanted_pieces(const CheckpointIndex& index,
                                  const std::vector<Target>& targets) {
  std::vector<const Target*> by_tensor(index.tensors.size());
  for (const Target& target : targets) by_tensor[static_cast<std::size_t>(target.tensor)] = &target;
  std::vector<Wanted> all;
  for (std::size_t i = 0; i < index.pieces.size(); ++i) {
    const PieceRecord& piece = index.pieces[i];
    const Target* target = by_tensor[static_cast<std::size_t>(piece.tensor)];
    if (target) all.push_back({static_cast<index_t>(i), target, piece});
  }
  return all;
}

// As blocks lie in files, so that disks read on. The files of which least is wanted come first,
// before other ranks have the disks read far ahead for them.
void put_in_order(std::vector<FileBlocks>& list, std::size_t num_files) {
  std::vector<index_t> of_file(num_files);
  for (const FileBlocks& one : list)
    of_file[static_cast<std::size_t>(one.file)] += one.blocks.size();
  std::sort(list.begin(), list.end(), [&](const FileBlocks& a, const FileBlocks& b) {
    const index_t in_a = of_file[static_cast<std::size_t>(a.file)];
    const index_t in_b = of_file[static_cast<std::size_t>(b.file)];
    return std::tie(in_a, a.blocks.begin) < std::tie(in_b, b.blocks.begin);
  });
}

}  // namespace

LoadResult load_state(const Checkpoint& checkpoint, const LocalState& state, int rank,
                      int num_ranks) {
  const CheckpointIndex& index = checkpoint.index;
  const std::vector<Target> targets = targets_of(checkpoint, state);
  const std::vector<Wanted> wanted = wanted_pieces(index, targets);

  std::vector<FileBlocks> list;
  std::vector<const Wanted*> by_piece(index.pieces.size());
  std::vector<index_t> missing(index.tensors.size());  // elements that are not in place yet
  for (const Wanted& one : wanted) {
    by_piece[static_cast<std::size_t>(one.piece)] = &one;
    const std::vector<BoxPart> parts =
        kept_parts(*one.target->boxes.front().parameter, one.box(),
                   {0, one.record.box.num_elements()}, one.target->kind->held);
    add_blocks(one, parts, list);
    for (const BoxPart& part : parts)
      missing[static_cast<std::size_t>(one.record.tensor)] += part.length;
  }

  const auto num_files = static_cast<index_t>(index.files.size());
  for (index_t file = rank; file < num_files; file += num_ranks) {
    for (const FileBlocks& one : structure_in(index, file)) list.push_back(one);
  }
  put_in_order(list, index.files.size());

  LoadResult result;
  result.sums.resize(index.tensors.size());
  result.bytes_read = read_verified(
      checkpoint, list, [&](index_t piece, Range elements, const std::uint32_t* bits) {
        const Wanted& one = *by_piece[static_cast<std::size_t>(piece)];
        const auto tensor = static_cast<std::size_t>(one.record.tensor);
        missing[tensor] -= scatter_box(*one.target->boxes.front().parameter, one.box(), elements,
                                       bits, one.target->kind->numbers());
        if (missing[tensor] > 0) return;
        // Complete: summed now, while the thread reads on.
        const Box whole = whole_box(index.tensors[tensor].global);
        result.sums[tensor] = sum_of(*one.target, whole.cols.size());
      });
  for (const TensorSum& sum : result.sums) result.bytes_held += sum.num_elements * sizeof(float);
  return result;
}

std::string find_held(const Checkpoint& checkpoint, const LocalState& state) {
  std::string is_held(checkpoint.index.tensors.size(), '0');
  for (const Target& target : targets_of(checkpoint, state))
    is_held[static_cast<std::size_t>(target.tensor)] = '1';
  return is_held;
}

std::string find_unknown(const Checkpoint& checkpoint, std::string is_held,
                         const std::vector<Communicator*>& axes) {
  for (Communicator* axis : axes) {
    for (const std::string& other : axis->all_gather_strings("checkpoint.tensors", is_held))
      std::transform(other.begin(), other.end(), is_held.begin(), is_held.begin(),
                     [](char a, char b) { return std::max(a, b); });
  }
  const std::size_t first = is_held.find('0');
  if (first == std::string::npos) return "";
  const TensorRecord& tensor = checkpoint.index.tensors[first];
  return fmt::format(
      "{}: it has the tensor {} ({}) and this model has not ({} of its {} tensors are unknown "
      "here): it is a checkpoint of another model or optimizer; resume with the plan that wrote "
      "it (weft ckpt inspect shows it)",
      checkpoint.path, tensor.name, tensor.kind, std::count(is_held.begin(), is_held.end(), '0'),
      is_held.size());
}

std::string compare_fingerprints(const Checkpoint& checkpoint, std::vector<TensorSum> sums,
                                 const std::vector<Communicator*>& axes) {
  for (Communicator* axis : axes) {
    const std::string_view mine(reinterpret_cast<const char*>(sums.data()),
                                sums.size() * sizeof(TensorSum));
    std::vector<TensorSum> total(sums.size());
    for (const std::string& text : axis->all_gather_strings("checkpoint.fingerprints", mine)) {
      assert(text.size() == mine.size());
      for (std::size_t i = 0; i < total.size(); ++i) {
        TensorSum one;
        std::memcpy(&one, text.data() + i * sizeof(one), sizeof(one));
        total[i].fingerprint += one.fingerprint;
        total[i].num_elements += one.num_elements;
      }
    }
    sums = std::move(total);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const TensorRecord& tensor = checkpoint.index.tensors[i];
    const auto elements = static_cast<std::uint64_t>(tensor.global.num_elements());
    const std::uint64_t copies = sums[i].num_elements / elements;
    if (copies == 0 || copies * elements != sums[i].num_elements ||
        copies * tensor.fingerprint != sums[i].fingerprint)
      return fmt::format(
          "{}: {} ({}) in memory is not what was saved: its fingerprint differs; "
          "look for faulty memory, or report this",
          checkpoint.path, tensor.name, tensor.kind);
  }
  return "";
}

}  // namespace weft
