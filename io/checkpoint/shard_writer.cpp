#include "io/checkpoint/shard_writer.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "core/box_copy.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "io/checkpoint/shard_format.hpp"
#include "io/stream_writer.hpp"
#include "parallel/data/write_share.hpp"

namespace weft {

namespace {

std::vector<FlatEntry> entries_of(const ParameterSet& parameters) {
  std::vector<FlatEntry> entries;
  for (const auto& p : parameters.all()) entries.push_back({p->spec, p->rows});
  return entries;
}

}  // namespace

FlatRanges share_to_write(const ParameterSet& parameters, int tp_rank, int tp_size,
                          const FlatRanges& slice) {
  return write_share(flat_layout(parameters), entries_of(parameters), tp_rank, tp_size, slice);
}

FlatRanges share_to_write(const ParameterSet& parameters, int tp_rank, int tp_size, int dp_rank,
                          int dp_size) {
  const FlatLayout layout = flat_layout(parameters);
  const auto buckets = write_buckets(layout, false, 0, dp_size);
  return write_share(layout, entries_of(parameters), tp_rank, tp_size, slices_of(buckets, dp_rank));
}

void ShardWriter::plan(const LocalState& state, const FlatRanges& share,
                       const std::vector<hdf5::Attribute>& root) {
  state_ = state;
  plan_pieces(share);
  std::vector<hdf5::Dataset> planned = datasets();
  // After a fault there is none.
  std::optional<hdf5::Skeleton> skeleton = std::exchange(skeleton_, std::nullopt);
  if (skeleton && planned == datasets_) {
    skeleton->set_root(root);
  } else {
    skeleton.emplace(planned, root);
  }
  skeleton_ = std::move(skeleton);
  datasets_ = std::move(planned);
}

void ShardWriter::plan_pieces(const FlatRanges& share) {
  pieces_.clear();
  const std::vector<HeldBox> boxes = joined_boxes_in(*state_.parameters, share);
  for (const StateKind& kind : state_.kinds) {
    for (const HeldBox& held : boxes) pieces_.push_back({&kind, held});
  }
}

std::vector<hdf5::Dataset> ShardWriter::datasets() const {
  std::vector<hdf5::Dataset> datasets;
  std::map<std::string, int> count;
  for (const auto& [kind, held] : pieces_) {
    const int number = count[kind->name + "/" + held.tensor]++;
    datasets.push_back(
        dataset_of_piece(kind->name, held.tensor, number, held.global, held.box.box));
  }
  return datasets;
}

// The one pass over the file, from its first byte to its last.
class ShardWriter::Pass {
 public:
  Pass(const hdf5::FileLayout& layout, const std::string& path, std::stop_token stop,
       WorkPace* pace)
      : path_(path), stop_(std::move(stop)), pace_(pace), file_(path, layout.num_bytes) {}

  void add_metadata(const hdf5::FileLayout::Metadata& metadata) {
    for (std::size_t done = 0; done < metadata.bytes.size();) {
      const std::size_t size =
          std::min(metadata.bytes.size() - done, std::size_t{BlockRecord::most_bytes});
      std::byte* const block = file_.room(size);
      std::memcpy(block, metadata.bytes.data() + done, size);
      add_block(block, size);
      done += size;
    }
  }

  // A block goes to where the file's thread takes it from, and is fingerprinted and hashed there
  // while it is in the cache. Returns the fingerprint.
  std::uint64_t add_piece(const Piece& piece) {
    const HeldBox& held = piece.held;
    const Box& box = held.box.box;
    const index_t width = whole_box(held.global).cols.size();
    std::uint64_t sum = 0;
    for (index_t at = 0; at < box.num_elements(); at += BlockRecord::most_elements) {
      const Range elements{at, std::min(at + BlockRecord::most_elements, box.num_elements())};
      const std::size_t size = static_cast<std::size_t>(elements.size()) * sizeof(float);
      std::byte* const block = file_.room(size);
      [[maybe_unused]] const index_t copied =
          gather_box(*held.parameter, held.box, elements, piece.kind->numbers(), block);
      assert(copied == elements.size());
      sum += fingerprint_in_box(bits_in(block, size), box, elements, width);
      add_block(block, size);
    }
    return sum;
  }

  std::vector<BlockRecord> finish() {
    file_.finish();
    return std::move(blocks_);
  }

  index_t num_blocks() const { return static_cast<index_t>(blocks_.size()); }

 private:
  // HDF5 may begin a small dataset at any byte.
  const std::uint32_t* bits_in(const std::byte* block, std::size_t size) {
    if (reinterpret_cast<std::uintptr_t>(block) % alignof(std::uint32_t) == 0)
      return reinterpret_cast<const std::uint32_t*>(block);
    aligned_.resize(size / sizeof(std::uint32_t));
    std::memcpy(aligned_.data(), block, size);
    return aligned_.data();
  }

  // The room asked for last, filled.
  void add_block(const std::byte* bytes, std::size_t size) {
    require(!stop_.stop_requested(), ExitCode::failed,
            path_ + ": not written to its end, because the run ends");
    blocks_.push_back({offset_, size, block_checksum(bytes, size)});
    file_.append();
    offset_ += size;
    if (pace_) pace_->rest(stop_);
  }

  std::string path_;
  std::stop_token stop_;
  WorkPace* pace_;
  StreamWriter file_;
  std::vector<std::uint32_t> aligned_;
  std::vector<BlockRecord> blocks_;
  std::uint64_t offset_ = 0;
};

ShardRecord ShardWriter::write(const std::string& folder, const std::string& name,
                               const std::stop_token& stop, WorkPace* pace) const {
  const hdf5::FileLayout& file = layout();
  ShardRecord record{.name = name, .num_bytes = file.num_bytes, .pieces = {}, .blocks = {}};
  for (const auto& [kind, held] : pieces_)
    record.pieces.push_back({held.tensor, kind->name, held.global, held.box.box});

  // Data and the format's own bytes, in the order of offsets.
  std::vector<std::size_t> order(pieces_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return file.offsets[a] < file.offsets[b]; });
  Pass pass(file, folder + "/" + name, stop, pace);
  auto metadata = file.metadata.begin();
  const auto add_metadata_before = [&](std::uint64_t offset) {
    for (; metadata != file.metadata.end() && metadata->offset < offset; ++metadata)
      pass.add_metadata(*metadata);
  };
  for (const std::size_t number : order) {
    add_metadata_before(file.offsets[number]);
    record.pieces[number].first_block = pass.num_blocks();
    record.pieces[number].fingerprint = pass.add_piece(pieces_[number]);
  }
  add_metadata_before(file.num_bytes);
  record.blocks = pass.finish();
  return record;
}

}  // namespace weft
