#include "io/checkpoint/verify.hpp"

#include <fmt/format.h>

#include <span>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "io/checkpoint/block_reader.hpp"
#include "io/extent_reader.hpp"

namespace weft {

void verify_shard(const std::string& folder, const ShardRecord& record, const std::stop_token& stop,
                  WorkPace* pace) {
  const std::string path = folder + "/" + record.name;
  drop_from_cache(path);
  const auto check = [&](std::size_t, std::size_t i, std::span<const std::byte> bytes) {
    require(!stop.stop_requested(), ExitCode::failed,
            path + ": not read back to its end, because the run ends");
    const BlockRecord& block = record.blocks[i];
    if (is_unaltered(block, bytes)) {
      if (pace) pace->rest(stop);
      return;
    }
    throw Error(
        ExitCode::data,
        fmt::format("{}, block {} (bytes {} to {}): what the disk gives back is not what was "
                    "written; look at the disk, the memory, the system's log",
                    path, i, block.offset, block.offset + block.num_bytes - 1));
  };
  read_blocks({{path, record.blocks}}, check);
}

namespace {

class Verification {
 public:
  explicit Verification(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), sums_(checkpoint.index.tensors.size()) {}

  template <class Progress>
  VerifyReport run(const Progress& progress) {
    for (std::size_t file = 0; file < checkpoint_.index.files.size(); ++file) {
      try {
        verify_file(static_cast<index_t>(file), progress);
      } catch (const Error& error) {
        add_fault(error.what());
      }
    }
    report_.num_tensors = static_cast<index_t>(sums_.size());
    // Where blocks are altered, sums cannot be right; where they are not, a wrong sum is a fault of
    // the program that wrote, or of its memory.
    for (std::size_t i = 0; i < sums_.size() && report_.num_faults == 0; ++i) {
      const TensorRecord& tensor = checkpoint_.index.tensors[i];
      if (sums_[i] != tensor.fingerprint)
        add_fault(
            fmt::format("{}: {} ({}): its pieces are whole, but their fingerprint is not the "
                        "tensor's: it was saved from faulty memory",
                        checkpoint_.path, tensor.name, tensor.kind));
    }
    return report_;
  }

 private:
  template <class Progress>
  void verify_file(index_t number, const Progress& progress) {
    const CheckpointIndex& index = checkpoint_.index;
    const FileRecord& file = index.files[static_cast<std::size_t>(number)];
    const std::span<const BlockRecord> blocks = blocks_in(index, file.blocks);
    // The piece that a block belongs to is found by going on.
    const std::vector<const PieceRecord*> pieces = pieces_in(index, number);
    auto piece = pieces.begin();
    const auto check = [&](std::size_t, std::size_t i, std::span<const std::byte> bytes) {
      const index_t block = file.blocks.begin + static_cast<index_t>(i);
      while (piece != pieces.end() && blocks_of(**piece).end <= block) ++piece;
      const bool is_data = piece != pieces.end() && blocks_of(**piece).contains(block);
      verify_block(number, block, bytes, is_data ? *piece : nullptr);
      progress(report_.bytes_read);
    };
    read_blocks({{checkpoint_.file_path(number), blocks}}, check);
  }

  void verify_block(index_t file, index_t block, std::span<const std::byte> bytes,
                    const PieceRecord* piece) {
    ++report_.num_blocks;
    report_.bytes_read += bytes.size();
    if (!is_unaltered(checkpoint_.index.blocks[static_cast<std::size_t>(block)], bytes)) {
      add_fault(block_fault(checkpoint_, file, block));
    } else if (piece) {
      const Box whole = whole_box(checkpoint_.tensor_of(*piece).global);
      sums_[static_cast<std::size_t>(piece->tensor)] +=
          fingerprint_in_box(reinterpret_cast<const std::uint32_t*>(bytes.data()), piece->box,
                             elements_of(*piece, block), whole.cols.size());
    }
  }

  void add_fault(std::string text) {
    ++report_.num_faults;
    if (report_.faults.size() < most_faults) report_.faults.push_back(std::move(text));
  }

  const Checkpoint& checkpoint_;
  VerifyReport report_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace

VerifyReport verify_checkpoint(
    const Checkpoint& checkpoint,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress) {
  std::uint64_t all = 0;
  for (const FileRecord& file : checkpoint.index.files) all += file.num_bytes;
  return Verification(checkpoint).run([&](std::uint64_t done) {
    if (progress) progress(done, all);
  });
}

}  // namespace weft
