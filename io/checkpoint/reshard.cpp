#include "io/checkpoint/reshard.hpp"

#include "io/checkpoint/box_reader.hpp"

namespace weft {

namespace {

// What is no tensor's does not reach the new checkpoint, but a source with an altered byte is not
// what was saved.
void verify_structure(const Checkpoint& source) {
  std::vector<FileBlocks> list;
  for (std::size_t file = 0; file < source.index.files.size(); ++file) {
    for (const FileBlocks& one : structure_in(source.index, static_cast<index_t>(file)))
      list.push_back(one);
  }
  read_verified(source, list, [](index_t, Range, const std::uint32_t*) {});
}

}  // namespace

CheckpointIndex reshard(const Checkpoint& source, const std::vector<ShardCut>& shards,
                        const ManifestTexts& texts, const NewPlace& place,
                        const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  require_whole(source.index.tensors, shards);
  verify_structure(source);
  const NewCheckpoint copy{.texts = texts,
                           .progress = source.index.progress,
                           .identity = source.index.identity,
                           .tensors = source.index.tensors,
                           .knows_fingerprints = true,
                           .read = [&](index_t tensor, const Box& box, std::uint32_t* out) {
                             read_box(source, tensor, box, out);
                           }};
  return write_checkpoint(copy, shards, place, progress);
}

}  // namespace weft
