#include "io/checkpoint/shard_record.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace weft {

namespace {

using Json = nlohmann::json;

Json json_of(const ShardRecord::Piece& piece) {
  Json shape = Json::array();
  for (int dim = 0; dim < piece.global.num_dims(); ++dim) shape.push_back(piece.global[dim]);
  const Box& box = piece.box;
  return {piece.tensor,   piece.kind,   std::move(shape),  box.rows.begin,   box.rows.end,
          box.cols.begin, box.cols.end, piece.fingerprint, piece.first_block};
}

Shape shape_of(const Json& extents) {
  if (extents.size() == 1) return {extents[0].get<index_t>()};
  return {extents.at(0).get<index_t>(), extents.at(1).get<index_t>()};
}

ShardRecord::Piece piece_of(const Json& json) {
  return {.tensor = json.at(0),
          .kind = json.at(1),
          .global = shape_of(json.at(2)),
          .box = {{json.at(3), json.at(4)}, {json.at(5), json.at(6)}},
          .fingerprint = json.at(7),
          .first_block = json.at(8)};
}

}  // namespace

std::string pack(const ShardRecord& record) {
  Json pieces = Json::array();
  for (const auto& piece : record.pieces) pieces.push_back(json_of(piece));
  // Most of the bytes: as they are.
  std::vector<std::uint8_t> blocks(record.blocks.size() * sizeof(BlockRecord));
  if (!blocks.empty()) std::memcpy(blocks.data(), record.blocks.data(), blocks.size());
  const Json json{{"name", record.name},
                  {"bytes", record.num_bytes},
                  {"pieces", std::move(pieces)},
                  {"blocks", Json::binary(std::move(blocks))}};
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

ShardRecord unpack_shard_record(const std::string& bytes) {
  const Json json = Json::from_cbor(bytes);
  ShardRecord record{.name = json.at("name"), .num_bytes = json.at("bytes")};
  for (const Json& piece : json.at("pieces")) record.pieces.push_back(piece_of(piece));
  const auto& blocks = json.at("blocks").get_binary();
  record.blocks.resize(blocks.size() / sizeof(BlockRecord));
  if (!blocks.empty()) std::memcpy(record.blocks.data(), blocks.data(), blocks.size());
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
