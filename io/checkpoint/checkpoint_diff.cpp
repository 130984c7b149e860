#include "io/checkpoint/checkpoint_diff.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

namespace weft {

namespace {

constexpr index_t most_elements_at_once = index_t{4} << 20;

void compare_rows(TensorDifference& out, const std::vector<std::uint32_t>& a,
                  const std::vector<std::uint32_t>& b, index_t first_row, index_t width) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const auto x = std::bit_cast<float>(a[i]), y = std::bit_cast<float>(b[i]);
    if (out.num_different++ == 0) {
      const index_t at = static_cast<index_t>(i);
      out.first =
          out.a.num_dims() == 1 ? std::vector{at} : std::vector{first_row + at / width, at % width};
      out.first_a = x;
      out.first_b = y;
    }
    const double distance = std::abs(static_cast<double>(x) - static_cast<double>(y));
    // A NaN stays: no later distance is larger than it.
    if (std::isnan(distance) || distance > out.max_difference) out.max_difference = distance;
  }
}

void compare_values(TensorDifference& out, const Checkpoint& a, index_t in_a, const Checkpoint& b,
                    index_t in_b) {
  const Box whole = whole_box(out.a);
  const index_t width = whole.cols.size(), num_rows = whole.rows.size();
  const index_t step = std::max<index_t>(1, most_elements_at_once / width);
  for (index_t row = 0; row < num_rows; row += step) {
    const Range rows{row, std::min(row + step, num_rows)};
    compare_rows(out, read_rows(a, in_a, rows), read_rows(b, in_b, rows), row, width);
  }
  if (out.num_different > 0) out.difference = TensorDifference::Kind::values;
}

}  // namespace

std::vector<std::uint32_t> read_rows(const Checkpoint& checkpoint, index_t tensor, Range rows) {
  const CheckpointIndex& index = checkpoint.index;
  const index_t width =
      whole_box(index.tensors[static_cast<std::size_t>(tensor)].global).cols.size();
  std::vector<std::uint32_t> out(static_cast<std::size_t>(rows.size() * width));
  // Pieces are grouped by tensor.
  auto piece = std::partition_point(index.pieces.begin(), index.pieces.end(),
                                    [&](const PieceRecord& p) { return p.tensor < tensor; });
  std::vector<FileBlocks> wanted;
  for (; piece != index.pieces.end() && piece->tensor == tensor; ++piece) {
    const Range both = intersection(piece->box.rows, rows);
    if (both.empty()) continue;
    const index_t cols = piece->box.cols.size();
    const Range elements{(both.begin - piece->box.rows.begin) * cols,
                         (both.end - piece->box.rows.begin) * cols};
    wanted.push_back({piece->file, piece - index.pieces.begin(), blocks_of(*piece, elements)});
  }
  read_verified(checkpoint, wanted, [&](index_t number, Range elements, const std::uint32_t* bits) {
    const Box& box = index.pieces[static_cast<std::size_t>(number)].box;
    const index_t cols = box.cols.size();
    for (index_t at = elements.begin; at < elements.end;) {
      const index_t row = box.rows.begin + at / cols, col = at % cols;
      const index_t n = std::min(cols - col, elements.end - at);
      if (rows.contains(row))
        std::memcpy(out.data() + (row - rows.begin) * width + box.cols.begin + col,
                    bits + (at - elements.begin), static_cast<std::size_t>(n) * sizeof(float));
      at += n;
    }
  });
  return out;
}

std::vector<TensorDifference> diff_checkpoints(
    const Checkpoint& a, const Checkpoint& b,
    const std::function<void(const std::string&)>& progress) {
  // -1: it is not there.
  std::map<std::pair<std::string, std::string>, std::pair<index_t, index_t>> all;
  const auto add = [&](const Checkpoint& checkpoint, auto member) {
    for (std::size_t i = 0; i < checkpoint.index.tensors.size(); ++i) {
      const TensorRecord& tensor = checkpoint.index.tensors[i];
      all.try_emplace({tensor.name, tensor.kind}, -1, -1).first->second.*member =
          static_cast<index_t>(i);
    }
  };
  using Numbers = std::pair<index_t, index_t>;
  add(a, &Numbers::first);
  add(b, &Numbers::second);

  std::vector<TensorDifference> differences;
  for (const auto& [key, in] : all) {
    TensorDifference one{.name = key.first, .kind = key.second};
    if (in.first >= 0) one.a = a.index.tensors[static_cast<std::size_t>(in.first)].global;
    if (in.second >= 0) one.b = b.index.tensors[static_cast<std::size_t>(in.second)].global;
    if (in.second < 0) {
      one.difference = TensorDifference::Kind::only_in_a;
    } else if (in.first < 0) {
      one.difference = TensorDifference::Kind::only_in_b;
    } else if (one.a != one.b) {
      one.difference = TensorDifference::Kind::shape;
    } else {
      if (progress) progress(one.name + " (" + one.kind + ")");
      compare_values(one, a, in.first, b, in.second);
    }
    differences.push_back(std::move(one));
  }
  return differences;
}

}  // namespace weft
