#include "tests/fuzz/index_cover.hpp"

#include <algorithm>
#include <vector>

namespace weft::test {

namespace {

using Wide = __int128;

struct Extents {
  index_t rows;
  index_t cols;
};

Extents extents_of(const Shape& shape) {
  return shape.num_dims() == 1 ? Extents{1, shape[0]} : Extents{shape[0], shape[1]};
}

// How often each element of a tensor is in a piece.
std::string tensor_fault(const CheckpointIndex& index, std::size_t t) {
  const auto [rows, cols] = extents_of(index.tensors[t].global);
  if (rows <= 0 || cols <= 0 || Wide{rows} * cols > (Wide{1} << 22))
    return "a tensor has no such shape";
  std::vector<int> times(static_cast<std::size_t>(rows * cols));
  for (const PieceRecord& piece : index.pieces) {
    if (piece.tensor != static_cast<index_t>(t)) continue;
    const Box& box = piece.box;
    if (box.rows.begin < 0 || box.rows.end > rows || box.cols.begin < 0 || box.cols.end > cols)
      return "a piece is outside its tensor";
    for (index_t row = box.rows.begin; row < box.rows.end; ++row)
      for (index_t col = box.cols.begin; col < box.cols.end; ++col)
        ++times[static_cast<std::size_t>(row * cols + col)];
  }
  const bool is_covered = std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
  return is_covered ? "" : "an element is in no piece or in two";
}

// A piece's bytes: consecutive blocks of one file, full but for the last, and no one else's.
std::string piece_fault(const CheckpointIndex& index, const PieceRecord& piece,
                        std::vector<int>& times) {
  if (piece.tensor < 0 || piece.tensor >= static_cast<index_t>(index.tensors.size()))
    return "a piece is of no tensor";
  if (piece.file < 0 || piece.file >= static_cast<index_t>(index.files.size()))
    return "a piece is in no file";
  const Range blocks = index.files[static_cast<std::size_t>(piece.file)].blocks;
  std::uint64_t left = 4 * static_cast<std::uint64_t>(piece.box.rows.size()) *
                       static_cast<std::uint64_t>(piece.box.cols.size());
  for (index_t b = piece.first_block; left > 0; ++b) {
    if (b < blocks.begin || b >= blocks.end) return "a piece has a block of another file";
    const std::uint64_t expected = std::min<std::uint64_t>(left, 65536);
    if (index.blocks[static_cast<std::size_t>(b)].num_bytes != expected)
      return "a block has not as many bytes as its piece";
    if (++times[static_cast<std::size_t>(b)] > 1) return "a block belongs to two pieces";
    left -= expected;
  }
  return "";
}

std::string files_fault(const CheckpointIndex& index) {
  Wide next = 0;
  for (const FileRecord& file : index.files) {
    if (file.blocks.begin != next || file.blocks.end < next ||
        file.blocks.end > static_cast<index_t>(index.blocks.size()))
      return "a file's blocks do not follow the last one's";
    next = file.blocks.end;
    Wide position = 0;
    for (index_t b = file.blocks.begin; b < file.blocks.end; ++b) {
      const BlockRecord& block = index.blocks[static_cast<std::size_t>(b)];
      if (position != Wide{block.offset}) return "a block is not where the last one ends";
      position += Wide{block.num_bytes};
    }
    if (position != Wide{file.num_bytes}) return "a file has bytes in no block";
  }
  return next == static_cast<Wide>(index.blocks.size()) ? "" : "a block is in no file";
}

}  // namespace

std::string cover_fault(const CheckpointIndex& index) {
  if (const std::string fault = files_fault(index); !fault.empty()) return fault;
  for (std::size_t t = 0; t < index.tensors.size(); ++t)
    if (const std::string fault = tensor_fault(index, t); !fault.empty()) return fault;
  std::vector<int> times(index.blocks.size());
  for (const PieceRecord& piece : index.pieces)
    if (const std::string fault = piece_fault(index, piece, times); !fault.empty()) return fault;
  return "";
}

}  // namespace weft::test
