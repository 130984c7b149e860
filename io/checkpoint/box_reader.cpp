#include "io/checkpoint/box_reader.hpp"

#include <algorithm>
#include <cstring>

namespace weft {

namespace {

// The pieces that have something of a box of a tensor, and their blocks that may hold it.
std::vector<FileBlocks> blocks_with(const CheckpointIndex& index, index_t tensor, const Box& box) {
  std::vector<FileBlocks> wanted;
  // Pieces are grouped by tensor.
  auto piece = std::partition_point(index.pieces.begin(), index.pieces.end(),
                                    [&](const PieceRecord& p) { return p.tensor < tensor; });
  for (; piece != index.pieces.end() && piece->tensor == tensor; ++piece) {
    const Box& all = piece->box;
    const Range rows = intersection(all.rows, box.rows), cols = intersection(all.cols, box.cols);
    if (rows.empty() || cols.empty()) continue;
    const index_t width = all.cols.size();
    const Range elements{(rows.begin - all.rows.begin) * width + cols.begin - all.cols.begin,
                         (rows.end - 1 - all.rows.begin) * width + cols.end - all.cols.begin};
    wanted.push_back({piece->file, piece - index.pieces.begin(), blocks_of(*piece, elements)});
  }
  return wanted;
}

}  // namespace

void read_box(const Checkpoint& checkpoint, index_t tensor, const Box& box, std::uint32_t* out) {
  const CheckpointIndex& index = checkpoint.index;
  const auto copy = [&](index_t number, Range elements, const std::uint32_t* bits) {
    const Box& piece = index.pieces[static_cast<std::size_t>(number)].box;
    const index_t width = piece.cols.size();
    for (index_t at = elements.begin; at < elements.end;) {
      const index_t row = piece.rows.begin + at / width, col = piece.cols.begin + at % width;
      const index_t n = std::min(width - at % width, elements.end - at);
      const Range cols = intersection({col, col + n}, box.cols);
      if (box.rows.contains(row) && !cols.empty())
        std::memcpy(out + (row - box.rows.begin) * box.cols.size() + cols.begin - box.cols.begin,
                    bits + (at - elements.begin) + (cols.begin - col),
                    static_cast<std::size_t>(cols.size()) * sizeof(float));
      at += n;
    }
  };
  read_verified(checkpoint, blocks_with(index, tensor, box), copy);
}

}  // namespace weft
