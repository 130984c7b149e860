#include "io/checkpoint/reshard_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/logical_tensor.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/shard_format.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "io/checkpoint/verify.hpp"
#include "io/file.hpp"
#include "io/stream_writer.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

// A multiple of a block, so that none is begun twice.
constexpr index_t window_elements = 64 * BlockRecord::most_elements;

// The checkpoint that `parent` is or lies in; empty: none.
std::string checkpoint_around(const std::string& parent) {
  std::error_code error;
  fs::path at = fs::weakly_canonical(parent, error);
  if (error) at = parent;
  for (;; at = at.parent_path()) {
    if (fs::exists(at / "MANIFEST", error) && fs::exists(at / "index.h5", error))
      return at.string();
    if (at == at.parent_path()) return "";
  }
}

}  // namespace

NewPlace::NewPlace(const std::string& path, index_t step) {
  std::error_code error;
  fs::path full = fs::absolute(path, error).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  parent_ = full.parent_path().string();
  name_ = full.filename().string();
  require(
      fs::symlink_status(full, error).type() == fs::file_type::not_found, ExitCode::usage,
      fmt::format("--to {}: expected a folder that does not exist yet; it was not touched", path));
  require(!name_.starts_with('.'), ExitCode::usage,
          fmt::format("--to {}: expected a name that does not begin with a dot: those are for what "
                      "is under way",
                      path));
  const std::string around = checkpoint_around(parent_);
  require(around.empty(), ExitCode::usage,
          fmt::format("--to {}: expected a folder that is in no checkpoint, but {} is one; it was "
                      "not touched",
                      path, around));
  const bool is_step = name_.starts_with("step-");
  require(
      !is_step || name_ == step_folder_name(step), ExitCode::usage,
      fmt::format("--to {}: the checkpoint is of step {}: call it {}, or any name that does not "
                  "begin with step-",
                  path, step, step_folder_name(step)));
  make_folder(parent_);
  if (is_step || fs::exists(parent_ + "/.lease", error)) lease_ = std::make_unique<Lease>(parent_);
}

namespace {

// One shard: planned, written front to back, read back.
class ShardCopy {
 public:
  ShardCopy(const NewCheckpoint& checkpoint, const ShardCut& cut, const std::string& id)
      : checkpoint_(checkpoint), cut_(cut) {
    std::vector<hdf5::Dataset> datasets;
    std::map<index_t, int> count;
    for (const ShardCut::Piece& piece : cut.pieces) {
      const TensorRecord& tensor = tensor_of(piece);
      datasets.push_back(dataset_of_piece(tensor.kind, tensor.name, count[piece.tensor]++,
                                          tensor.global, piece.box));
    }
    skeleton_.emplace(datasets, shard_root(id, checkpoint.progress.step));
  }

  std::uint64_t num_bytes() const { return skeleton_->layout().num_bytes; }

  template <class Progress>
  ShardRecord write(const std::string& folder, const std::string& name, const Progress& progress) {
    const hdf5::FileLayout& layout = skeleton_->layout();
    record_ = {.name = name, .num_bytes = layout.num_bytes};
    for (const ShardCut::Piece& piece : cut_.pieces) {
      const TensorRecord& tensor = tensor_of(piece);
      record_.pieces.push_back({tensor.name, tensor.kind, tensor.global, piece.box});
    }
    StreamWriter file(folder + "/" + name, layout.num_bytes);
    auto metadata = layout.metadata.begin();
    const auto add_metadata_before = [&](std::uint64_t offset) {
      for (; metadata != layout.metadata.end() && metadata->offset < offset; ++metadata)
        add_blocks(file, metadata->bytes.data(), metadata->bytes.size());
    };
    for (const std::size_t number : by_offset(layout.offsets)) {
      add_metadata_before(layout.offsets[number]);
      record_.pieces[number].first_block = static_cast<index_t>(record_.blocks.size());
      add_piece(file, number, progress);
    }
    add_metadata_before(layout.num_bytes);
    file.finish();
    verify_shard(folder, record_);
    return std::move(record_);
  }

 private:
  const TensorRecord& tensor_of(const ShardCut::Piece& piece) const {
    return checkpoint_.tensors[static_cast<std::size_t>(piece.tensor)];
  }

  static std::vector<std::size_t> by_offset(const std::vector<std::uint64_t>& offsets) {
    std::vector<std::size_t> order(offsets.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
    return order;
  }

  template <class Progress>
  void add_piece(StreamWriter& file, std::size_t number, const Progress& progress) {
    const ShardCut::Piece& piece = cut_.pieces[number];
    const index_t width = whole_box(tensor_of(piece).global).cols.size();
    for (index_t at = 0; at < piece.box.num_elements(); at += window_elements) {
      const Range elements{at, std::min(at + window_elements, piece.box.num_elements())};
      window_.resize(static_cast<std::size_t>(elements.size()));
      std::uint32_t* to = window_.data();
      for (const Box& part : boxes_of(piece.box, elements)) {
        checkpoint_.read(piece.tensor, part, to);
        to += part.num_elements();
      }
      record_.pieces[number].fingerprint +=
          fingerprint_in_box(window_.data(), piece.box, elements, width);
      const std::size_t size = window_.size() * sizeof(float);
      add_blocks(file, window_.data(), size);
      progress(size);
    }
  }

  void add_blocks(StreamWriter& file, const void* bytes, std::size_t size) {
    const char* const begin = static_cast<const char*>(bytes);
    for (std::size_t done = 0; done < size;) {
      const std::size_t n = std::min(size - done, std::size_t{BlockRecord::most_bytes});
      const std::uint64_t offset =
          record_.blocks.empty() ? 0
                                 : record_.blocks.back().offset + record_.blocks.back().num_bytes;
      record_.blocks.push_back({offset, n, block_checksum(begin + done, n)});
      done += n;
    }
    file.write(bytes, size);
  }

  const NewCheckpoint& checkpoint_;
  const ShardCut& cut_;
  std::optional<hdf5::Skeleton> skeleton_;
  ShardRecord record_;
  std::vector<std::uint32_t> window_;
};

void require_same(const NewCheckpoint& expected, const CheckpointIndex& written) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> fingerprints;
  for (const TensorRecord& tensor : written.tensors)
    fingerprints[{tensor.name, tensor.kind}] = tensor.fingerprint;
  for (const TensorRecord& tensor : expected.tensors)
    require(
        fingerprints[{tensor.name, tensor.kind}] == tensor.fingerprint, ExitCode::data,
        fmt::format("{} ({}) does not arrive as it was: its fingerprint differs. Look for faulty "
                    "memory, or report this; nothing was made",
                    tensor.name, tensor.kind));
}

}  // namespace

CheckpointIndex write_checkpoint(
    const NewCheckpoint& checkpoint, const std::vector<ShardCut>& shards, const NewPlace& place,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  CheckpointIndex index;
  index.id = new_checkpoint_id();
  index.progress = checkpoint.progress;
  index.identity = checkpoint.identity;
  std::uint64_t all = 0, done = 0;
  for (const TensorRecord& tensor : checkpoint.tensors)
    all += static_cast<std::uint64_t>(tensor.global.num_elements()) * sizeof(float);
  const std::uint64_t free = free_bytes(place.parent());
  require(
      free > all, ExitCode::failed,
      fmt::format("a checkpoint of {} bytes does not fit {}, where {} bytes are free; free some "
                  "space",
                  all, place.parent(), free));

  StagingFolder staging(place.parent(), checkpoint.progress.step, index.id, place.name());
  std::vector<ShardRecord> records;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    ShardCopy shard(checkpoint, shards[s], index.id);
    records.push_back(
        shard.write(staging.path(), shard_name(static_cast<index_t>(s)), [&](std::size_t size) {
          done += size;
          if (progress) progress(done, all);
        }));
  }
  join(index, records);
  if (checkpoint.knows_fingerprints) require_same(checkpoint, index);
  write_index(staging.path(), index, checkpoint.texts);
  staging.commit();
  confirm_name(place.path());
  return index;
}

}  // namespace weft
