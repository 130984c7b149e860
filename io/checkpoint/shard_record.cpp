#include "io/checkpoint/shard_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/error.hpp"

namespace weft {

namespace {

// Numbers of eight bytes as the machine has them, and texts and lists after their length: ranks of
// one program run on machines of one kind.
class Packer {
 public:
  void number(std::uint64_t value) { append(&value, sizeof value); }
  void number(index_t value) { append(&value, sizeof value); }
  void text(const std::string& value) {
    number(std::uint64_t{value.size()});
    append(value.data(), value.size());
  }
  void append(const void* bytes, std::size_t size) {
    bytes_.append(static_cast<const char*>(bytes), size);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Takes no more memory than the message has bytes, whatever it claims.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() { return value<std::uint64_t>(); }
  index_t index() { return value<index_t>(); }
  std::string text() { return std::string(take(count(1))); }
  // The length of a list whose entries take this many bytes at least.
  std::size_t count(std::size_t least_bytes_each) {
    const std::uint64_t claimed = number();
    require(
        claimed <= rest_.size() / least_bytes_each, ExitCode::failed,
        fmt::format("a rank's record of its shard claims {} entries of {} bytes and has {} bytes "
                    "left: it was cut off, or ranks of another weft take part; start all ranks "
                    "from one build",
                    claimed, least_bytes_each, rest_.size()));
    return claimed;
  }
  std::string_view take(std::size_t size) {
    require(
        size <= rest_.size(), ExitCode::failed,
        fmt::format("a rank's record of its shard ends {} bytes early: it was cut off, or ranks "
                    "of another weft take part; start all ranks from one build",
                    size - std::min(size, rest_.size())));
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  template <class Value>
  Value value() {
    Value value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view rest_;
};

void pack_piece(const ShardRecord::Piece& piece, Packer& to) {
  to.text(piece.tensor);
  to.text(piece.kind);
  to.number(index_t{piece.global.num_dims()});
  for (int dim = 0; dim < piece.global.num_dims(); ++dim) to.number(piece.global[dim]);
  for (const Range& range : {piece.box.rows, piece.box.cols}) {
    to.number(range.begin);
    to.number(range.end);
  }
  to.number(piece.fingerprint);
  to.number(piece.first_block);
}

Shape unpack_shape(Unpacker& from) {
  const index_t num_dims = from.index();
  require(
      num_dims == 1 || num_dims == 2, ExitCode::failed,
      fmt::format("a rank's record of its shard has a tensor of {} dims, expected 1 or 2; start "
                  "all ranks from one build",
                  num_dims));
  const index_t first = from.index();
  return num_dims == 1 ? Shape{first} : Shape{first, from.index()};
}

ShardRecord::Piece unpack_piece(Unpacker& from) {
  ShardRecord::Piece piece;
  piece.tensor = from.text();
  piece.kind = from.text();
  piece.global = unpack_shape(from);
  for (Range* range : {&piece.box.rows, &piece.box.cols}) {
    range->begin = from.index();
    range->end = from.index();
  }
  piece.fingerprint = from.number();
  piece.first_block = from.index();
  return piece;
}

}  // namespace

std::string pack(const ShardRecord& record) {
  Packer to;
  to.text(record.name);
  to.number(record.num_bytes);
  to.number(std::uint64_t{record.pieces.size()});
  for (const auto& piece : record.pieces) pack_piece(piece, to);
  // Most of the bytes: as they are.
  static_assert(std::is_trivially_copyable_v<BlockRecord>);
  to.number(std::uint64_t{record.blocks.size()});
  to.append(record.blocks.data(), record.blocks.size() * sizeof(BlockRecord));
  return to.take();
}

ShardRecord unpack_shard_record(const std::string& bytes) {
  Unpacker from(bytes);
  ShardRecord record{.name = from.text(), .num_bytes = from.number()};
  constexpr std::size_t least_bytes_of_piece = 2 * 8 + 2 * 8 + 4 * 8 + 2 * 8;
  const std::size_t num_pieces = from.count(least_bytes_of_piece);
  for (std::size_t i = 0; i < num_pieces; ++i) record.pieces.push_back(unpack_piece(from));
  record.blocks.resize(from.count(sizeof(BlockRecord)));
  const std::string_view blocks = from.take(record.blocks.size() * sizeof(BlockRecord));
  if (!blocks.empty()) std::memcpy(record.blocks.data(), blocks.data(), blocks.size());
  // Blocks are counted on from those of other shards, so no number may be far off.
  const auto num_blocks = static_cast<index_t>(record.blocks.size());
  for (const auto& piece : record.pieces)
    require(piece.first_block >= 0 && piece.first_block <= num_blocks, ExitCode::failed,
            fmt::format("a rank's record of its shard has {} from block {} of {}; start all ranks "
                        "from one build",
                        piece.tensor, piece.first_block, num_blocks));
  require(from.is_at_end(), ExitCode::failed,
          "a rank's record of its shard is longer than it says; start all ranks from one build");
  return record;
}

void join(CheckpointIndex& index, const std::vector<ShardRecord>& shards) {
  std::map<std::pair<std::string, std::string>, index_t> numbers;
  for (const ShardRecord& shard : shards) {
    for (const auto& piece : shard.pieces) numbers[{piece.tensor, piece.kind}] = 0;
  }
  index_t next = 0;
  for (auto& [key, number] : numbers) {
    number = next++;
    index.tensors.push_back({.name = key.first, .kind = key.second});
  }
  for (const ShardRecord& shard : shards) {
    const auto first_block = static_cast<index_t>(index.blocks.size());
    for (const auto& piece : shard.pieces) {
      const index_t number = numbers[{piece.tensor, piece.kind}];
      TensorRecord& tensor = index.tensors[static_cast<std::size_t>(number)];
      tensor.global = piece.global;
      tensor.fingerprint += piece.fingerprint;
      index.pieces.push_back({.tensor = number,
                              .file = static_cast<index_t>(index.files.size()),
                              .box = piece.box,
                              .first_block = first_block + piece.first_block});
    }
    index.blocks.insert(index.blocks.end(), shard.blocks.begin(), shard.blocks.end());
    index.files.push_back({.name = shard.name,
                           .num_bytes = shard.num_bytes,
                           .blocks = {first_block, static_cast<index_t>(index.blocks.size())}});
  }
  std::stable_sort(index.pieces.begin(), index.pieces.end(),
                   [](const PieceRecord& a, const PieceRecord& b) { return a.tensor < b.tensor; });
}

}  // namespace weft
