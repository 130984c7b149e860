#include "io/checkpoint/index_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <vector>

#include "core/error.hpp"

namespace weft {
namespace {

constexpr index_t bytes_of_element = 4;  // f32, the one dtype so far

class Checker {
 public:
  Checker(const CheckpointIndex& index, const std::string& path)
      : index_(index), path_(path), expect_{path} {}

  void check() const {
    check_run();
    check_tensors();
    check_files();
    check_pieces();
    check_covers();
  }

 private:
  void check_run() const;
  void check_tensors() const;
  void check_files() const;
  void check_file(const FileRecord& file) const;
  void check_pieces() const;
  void check_piece(const PieceRecord& piece) const;
  void check_covers() const;
  void check_cover(const TensorRecord& tensor, Range pieces_of_tensor) const;
  std::string text_of(const PieceRecord& piece) const;

  const CheckpointIndex& index_;
  const std::string& path_;
  IndexExpectation expect_;
};

void Checker::check_run() const {
  expect_(index_.id.size() == 32 &&
              index_.id.find_first_not_of("0123456789abcdef") == std::string::npos,
          [&] { return fmt::format("its id is '{}', not 32 hexadecimal digits", index_.id); });
  expect_(index_.progress.step >= 0 &&
              index_.progress.losses.size() == static_cast<std::size_t>(index_.progress.step),
          [&] {
            return fmt::format("it has {} losses of {} steps", index_.progress.losses.size(),
                               index_.progress.step);
          });
}

void Checker::check_tensors() const {
  std::set<std::pair<std::string, std::string>> names;
  for (const TensorRecord& tensor : index_.tensors) {
    expect_(!tensor.name.empty() && !tensor.kind.empty(), [&] {
      return fmt::format("a tensor has the name '{}' and the kind '{}'", tensor.name, tensor.kind);
    });
    expect_(names.insert({tensor.kind, tensor.name}).second,
            [&] { return fmt::format("it has {} {} twice", tensor.kind, tensor.name); });
    require(tensor.dtype == "f32", ExitCode::data,
            fmt::format("{}: {} is of the dtype '{}' and this weft reads f32; use the weft that "
                        "wrote it",
                        path_, tensor.name, tensor.dtype));
    // So that byte counts fit 64 bits everywhere below.
    index_t num_bytes = bytes_of_element;
    bool fits = true;
    for (int dim = 0; dim < tensor.global.num_dims(); ++dim)
      fits = fits && tensor.global[dim] > 0 &&
             !__builtin_mul_overflow(num_bytes, tensor.global[dim], &num_bytes);
    expect_(fits,
            [&] { return fmt::format("{} has the shape {}", tensor.name, tensor.global.text()); });
  }
}

void Checker::check_files() const {
  index_t next_block = 0;
  const auto num_blocks = static_cast<index_t>(index_.blocks.size());
  std::set<std::string> names;
  for (const FileRecord& file : index_.files) {
    expect_(!file.name.empty() && file.name[0] != '.' && file.name.find('/') == std::string::npos &&
                names.insert(file.name).second,
            [&] { return fmt::format("'{}' cannot be one of its files", file.name); });
    expect_(file.blocks.begin == next_block && file.blocks.begin <= file.blocks.end &&
                file.blocks.end <= num_blocks,
            [&] {
              return fmt::format("{} has blocks {} to {}; its turn is at {} of {}", file.name,
                                 file.blocks.begin, file.blocks.end, next_block, num_blocks);
            });
    check_file(file);
    next_block = file.blocks.end;
  }
  expect_(next_block == num_blocks,
          [&] { return fmt::format("its files have {} blocks of {}", next_block, num_blocks); });
}

void Checker::check_file(const FileRecord& file) const {
  std::uint64_t position = 0;
  for (index_t b = file.blocks.begin; b < file.blocks.end; ++b) {
    const BlockRecord& block = index_.blocks[static_cast<std::size_t>(b)];
    // position <= num_bytes, so nothing wraps around.
    expect_(block.offset == position && block.num_bytes >= 1 &&
                block.num_bytes <= std::uint64_t{BlockRecord::most_bytes} &&
                block.num_bytes <= file.num_bytes - position,
            [&] {
              return fmt::format("block {} of {} has {} bytes at {}; its turn is at {} of {}",
                                 b - file.blocks.begin, file.name, block.num_bytes, block.offset,
                                 position, file.num_bytes);
            });
    position += block.num_bytes;
  }
  expect_(position == file.num_bytes, [&] {
    return fmt::format("the blocks of {} have {} bytes of {}", file.name, position, file.num_bytes);
  });
}

std::string Checker::text_of(const PieceRecord& piece) const {
  const TensorRecord& tensor = index_.tensors[static_cast<std::size_t>(piece.tensor)];
  return fmt::format("rows {}-{} and columns {}-{} of {} {}", piece.box.rows.begin,
                     piece.box.rows.end, piece.box.cols.begin, piece.box.cols.end, tensor.kind,
                     tensor.name);
}

void Checker::check_pieces() const {
  const auto num_tensors = static_cast<index_t>(index_.tensors.size());
  std::vector<bool> is_taken(index_.blocks.size());
  index_t tensor = 0;
  for (const PieceRecord& piece : index_.pieces) {
    expect_(piece.tensor >= tensor && piece.tensor < num_tensors, [&] {
      return fmt::format("a piece of tensor {} comes after those of tensor {} of {}", piece.tensor,
                         tensor, num_tensors);
    });
    tensor = piece.tensor;
    check_piece(piece);
    const Range blocks = blocks_of(piece);
    for (index_t b = blocks.begin; b < blocks.end; ++b) {
      expect_(!is_taken[static_cast<std::size_t>(b)], [&] {
        return fmt::format("{} lie in block {}, which another piece has", text_of(piece), b);
      });
      is_taken[static_cast<std::size_t>(b)] = true;
    }
  }
}

void Checker::check_covers() const {
  const auto num_pieces = static_cast<index_t>(index_.pieces.size());
  index_t begin = 0;
  for (index_t tensor = 0; tensor < static_cast<index_t>(index_.tensors.size()); ++tensor) {
    index_t end = begin;
    while (end < num_pieces && index_.pieces[static_cast<std::size_t>(end)].tensor == tensor) ++end;
    check_cover(index_.tensors[static_cast<std::size_t>(tensor)], {begin, end});
    begin = end;
  }
}

void Checker::check_piece(const PieceRecord& piece) const {
  const Shape& global = index_.tensors[static_cast<std::size_t>(piece.tensor)].global;
  const Box whole = whole_box(global);
  const auto is_inside = [](Range range, Range all) {
    return !range.empty() && range.begin >= all.begin && range.end <= all.end;
  };
  expect_(is_inside(piece.box.rows, whole.rows) && is_inside(piece.box.cols, whole.cols),
          [&] { return fmt::format("{} are not inside {}", text_of(piece), global.text()); });
  expect_(piece.file >= 0 && piece.file < static_cast<index_t>(index_.files.size()),
          [&] { return fmt::format("{} are in file {}", text_of(piece), piece.file); });
  const FileRecord& file = index_.files[static_cast<std::size_t>(piece.file)];

  const index_t count = num_blocks(piece.box);
  expect_(file.blocks.contains(piece.first_block) && count <= file.blocks.end - piece.first_block,
          [&] {
            return fmt::format("{} have {} blocks from {}, {} has {} to {}", text_of(piece), count,
                               piece.first_block, file.name, file.blocks.begin, file.blocks.end);
          });
  const Range blocks = blocks_of(piece);
  for (index_t b = blocks.begin; b < blocks.end; ++b) {
    const index_t expected = elements_of(piece, b).size() * bytes_of_element;
    const BlockRecord& block = index_.blocks[static_cast<std::size_t>(b)];
    expect_(block.num_bytes == static_cast<std::uint64_t>(expected), [&] {
      return fmt::format("{} need {} bytes of block {}, which has {}", text_of(piece), expected, b,
                         block.num_bytes);
    });
  }
}

// A sweep over rows: the columns of those pieces that hold the present row are kept in order, so
// that a new piece can only meet its neighbours. n log n in the number of pieces.
void Checker::check_cover(const TensorRecord& tensor, Range pieces_of_tensor) const {
  const auto first = index_.pieces.begin() + pieces_of_tensor.begin;
  std::vector<const PieceRecord*> pieces;
  for (auto piece = first; piece != first + pieces_of_tensor.size(); ++piece)
    pieces.push_back(&*piece);
  std::sort(pieces.begin(), pieces.end(), [](const PieceRecord* a, const PieceRecord* b) {
    return a->box.rows.begin < b->box.rows.begin;
  });

  const auto ends_later = [](const PieceRecord* a, const PieceRecord* b) {
    return a->box.rows.end > b->box.rows.end;
  };
  std::priority_queue<const PieceRecord*, std::vector<const PieceRecord*>, decltype(ends_later)>
      by_end(ends_later);
  std::map<index_t, const PieceRecord*> by_column;  // key: first column
  index_t covered = 0;
  for (const PieceRecord* piece : pieces) {
    while (!by_end.empty() && by_end.top()->box.rows.end <= piece->box.rows.begin) {
      by_column.erase(by_end.top()->box.cols.begin);
      by_end.pop();
    }
    const auto right = by_column.lower_bound(piece->box.cols.begin);
    const PieceRecord* met = nullptr;
    if (right != by_column.end() && right->first < piece->box.cols.end) met = right->second;
    if (right != by_column.begin() &&
        std::prev(right)->second->box.cols.end > piece->box.cols.begin)
      met = std::prev(right)->second;
    expect_(met == nullptr, [&] { return text_of(*piece) + " overlap " + text_of(*met); });
    by_column.emplace_hint(right, piece->box.cols.begin, piece);
    by_end.push(piece);
    covered += piece->box.num_elements();  // disjoint so far, so no more than the tensor has
  }
  expect_(covered == tensor.global.num_elements(), [&] {
    return fmt::format("it has {} of {} elements of {} {}", covered, tensor.global.num_elements(),
                       tensor.kind, tensor.name);
  });
}

}  // namespace

void require_consistent(const CheckpointIndex& index, const std::string& path) {
  Checker(index, path).check();
}

}  // namespace weft
