#include "io/checkpoint/checkpoint_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "io/checkpoint/block_reader.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/extent_reader.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

// Larger ones are not ours: a manifest has a line a file, an index some 100 bytes a piece.
constexpr std::uint64_t most_manifest_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t most_index_bytes = std::uint64_t{1} << 36;

constexpr const char* advice =
    "Use another checkpoint (weft ckpt ls shows them), or bring this one back from a copy";

void check_folder_name(const std::string& path, const Manifest& manifest) {
  const fs::path folder(path);
  const std::string name =
      (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  // A copy may have any name; one that looks like a step's must be that step's.
  require(!name.starts_with("step-") || name == step_folder_name(manifest.step), ExitCode::data,
          fmt::format("{}: the folder's name says another step than its manifest, which is of step "
                      "{}: it was renamed. Call it {}, or any name that does not begin with step-",
                      path, manifest.step, step_folder_name(manifest.step)));
}

void check_file(const std::string& path, const Manifest::File& file) {
  const std::string full = path + "/" + file.name;
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(full, error);
  require(!error, ExitCode::data,
          fmt::format("{}: expected a file of {} bytes, found none ({}). {}", full, file.num_bytes,
                      error.message(), advice));
  require(bytes == file.num_bytes, ExitCode::data,
          fmt::format("{}: expected {} bytes, found {}: it was {}. {}", full, file.num_bytes, bytes,
                      bytes < file.num_bytes ? "cut off" : "extended", advice));
}

void require_belongs(bool condition, const std::string& path, const char* what) {
  require(condition, ExitCode::data,
          fmt::format("{}/{}: {} is not the one that the manifest tells of: files of two "
                      "checkpoints were mixed. {}",
                      path, index_name, what, advice));
}

}  // namespace

CheckpointTexts read_checkpoint_texts(const std::string& path) {
  std::error_code error;
  require(fs::is_directory(path, error), ExitCode::data,
          fmt::format("{}: expected the folder of a checkpoint (step-*), found {}", path,
                      fs::exists(path, error) ? "a file" : "nothing"));
  const std::string manifest_path = path + "/" + manifest_name;
  CheckpointTexts texts{
      decode_manifest(read_whole_file(manifest_path, most_manifest_bytes), manifest_path), ""};
  check_folder_name(path, texts.manifest);
  for (const Manifest::File& file : texts.manifest.files) check_file(path, file);
  const std::string index_path = path + "/" + index_name;
  texts.index = read_whole_file(index_path, most_index_bytes);
  require(hash128(texts.index.data(), texts.index.size()) == texts.manifest.index_hash,
          ExitCode::data,
          fmt::format("{}: its hash is not the one in {}: a byte of it was altered. {}", index_path,
                      manifest_name, advice));
  return texts;
}

Checkpoint make_checkpoint(const std::string& path, CheckpointTexts texts) {
  Checkpoint checkpoint{path, std::move(texts.manifest), {}};
  checkpoint.index = decode_index(std::move(texts.index), path + "/" + index_name);
  const CheckpointIndex& index = checkpoint.index;
  const Manifest& manifest = checkpoint.manifest;
  require_belongs(index.id == manifest.id, path, "its id");
  require_belongs(index.progress.step == manifest.step, path, "its step");
  require_belongs(static_cast<std::uint64_t>(index.num_elements()) == manifest.num_elements, path,
                  "its number of elements");
  require_belongs(index.state_fingerprint() == manifest.state_fingerprint, path,
                  "its state's fingerprint");
  require_belongs(index.files.size() + 1 == manifest.files.size(), path, "its list of files");
  for (const FileRecord& file : index.files) {
    const bool is_known =
        std::find(manifest.files.begin(), manifest.files.end(),
                  Manifest::File{file.name, file.num_bytes}) != manifest.files.end();
    require_belongs(is_known, path, "its list of files");
  }
  return checkpoint;
}

Checkpoint open_checkpoint(const std::string& path) {
  return make_checkpoint(path, read_checkpoint_texts(path));
}

std::span<const BlockRecord> blocks_in(const CheckpointIndex& index, Range blocks) {
  return std::span(index.blocks)
      .subspan(static_cast<std::size_t>(blocks.begin), static_cast<std::size_t>(blocks.size()));
}

std::vector<const PieceRecord*> pieces_in(const CheckpointIndex& index, index_t file) {
  std::vector<const PieceRecord*> pieces;
  for (const PieceRecord& piece : index.pieces) {
    if (piece.file == file) pieces.push_back(&piece);
  }
  std::sort(pieces.begin(), pieces.end(), [](const PieceRecord* a, const PieceRecord* b) {
    return a->first_block < b->first_block;
  });
  return pieces;
}

std::vector<FileBlocks> structure_in(const CheckpointIndex& index, index_t file) {
  std::vector<FileBlocks> structure;
  const auto add = [&](index_t begin, index_t end) {
    if (begin < end) structure.push_back({.file = file, .blocks = {begin, end}});
  };
  const Range all = index.files[static_cast<std::size_t>(file)].blocks;
  index_t begin = all.begin;
  for (const PieceRecord* piece : pieces_in(index, file)) {
    add(begin, piece->first_block);
    begin = blocks_of(*piece).end;
  }
  add(begin, all.end);
  return structure;
}

bool is_unaltered(const BlockRecord& block, std::span<const std::byte> bytes) {
  return block_checksum(bytes.data(), bytes.size()) == block.checksum;
}

void require_unaltered(const Checkpoint& checkpoint, index_t file, index_t block,
                       std::span<const std::byte> bytes) {
  // The words are looked for only where they are needed.
  if (!is_unaltered(checkpoint.index.blocks[static_cast<std::size_t>(block)], bytes))
    throw Error(ExitCode::data, block_fault(checkpoint, file, block) + ". " + advice);
}

std::string block_fault(const Checkpoint& checkpoint, index_t file, index_t block) {
  const CheckpointIndex& index = checkpoint.index;
  const FileRecord& record = index.files[static_cast<std::size_t>(file)];
  const BlockRecord& bytes = index.blocks[static_cast<std::size_t>(block)];
  std::string of = "the file's own structure";
  for (const PieceRecord& piece : index.pieces) {
    if (piece.file != file || !blocks_of(piece).contains(block)) continue;
    const TensorRecord& tensor = checkpoint.tensor_of(piece);
    of = tensor.name + " " + tensor.kind;
  }
  return fmt::format(
      "{}/{}, block {} (bytes {} to {}, {}): its checksum is not that of what was written",
      checkpoint.path, record.name, block - record.blocks.begin, bytes.offset,
      bytes.offset + bytes.num_bytes - 1, of);
}

std::uint64_t read_verified(const Checkpoint& checkpoint, const std::vector<FileBlocks>& wanted,
                            const UsePiece& use) {
  const CheckpointIndex& index = checkpoint.index;
  std::vector<BlockRun> runs;
  for (const FileBlocks& one : wanted)
    runs.push_back({checkpoint.file_path(one.file), blocks_in(index, one.blocks)});
  std::uint64_t num_bytes = 0;
  read_blocks(runs, [&](std::size_t run, std::size_t i, std::span<const std::byte> bytes) {
    const FileBlocks& one = wanted[run];
    const index_t block = one.blocks.begin + static_cast<index_t>(i);
    require_unaltered(checkpoint, one.file, block, bytes);
    if (one.piece == FileBlocks::structure) return;
    const PieceRecord& piece = index.pieces[static_cast<std::size_t>(one.piece)];
    use(one.piece, elements_of(piece, block), reinterpret_cast<const std::uint32_t*>(bytes.data()));
    num_bytes += bytes.size();
  });
  return num_bytes;
}

}  // namespace weft
