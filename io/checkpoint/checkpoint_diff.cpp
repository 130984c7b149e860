#include "io/checkpoint/checkpoint_diff.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "io/checkpoint/box_reader.hpp"

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
  const TensorRecord& record = checkpoint.index.tensors[static_cast<std::size_t>(tensor)];
  const Box box{rows, whole_box(record.global).cols};
  std::vector<std::uint32_t> out(static_cast<std::size_t>(box.num_elements()));
  read_box(checkpoint, tensor, box, out.data());
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
