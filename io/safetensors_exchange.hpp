// A checkpoint's tensors for other programs, and theirs for a checkpoint: export to and import from
// a safetensors file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/reshard_writer.hpp"
#include "io/name_table.hpp"
#include "io/safetensors_file.hpp"

namespace weft {

using ByteProgress = std::function<void(std::uint64_t done, std::uint64_t all)>;

// As data and numerics of a run's identity: the state came from elsewhere, and belongs to any data
// and any machine.
inline constexpr const char* imported_identity = "imported";

struct ExportReport {
  std::size_t num_tensors = 0;
  std::uint64_t num_bytes = 0;  // of the file
};

// Writes the parameters to `path`, which must not exist, by the names of `names`, sorted by the
// names in the file; with `with_optimizer` also its moments, as optimizer.<kind>.<name>. The file
// has no date, so equal states give equal files. Every block is verified on the way, the file is
// read back, and each tensor's fingerprint is compared, before it takes its name. Throws
// Error(usage) where `path` is there, also at the end, or names clash, Error(data) where the
// checkpoint is damaged, Error(failed) where the system refuses; then there is no file, but for a
// name that the disk does not confirm: then the message says that the file is in place.
ExportReport export_safetensors(const Checkpoint& checkpoint, const std::string& path,
                                const NameTable& names, bool with_optimizer,
                                const ByteProgress& progress = nullptr);

// What lies at step 0 of a model with the parameters `values` (kind value): the file's numbers,
// and for each of `moments` (kinds) zeros. Tensors of the file by the name optimizer.* are left
// out. `file` must outlive it. Texts, plan and hash are the caller's to fill in. Throws
// Error(usage) where the file lacks a tensor of the model, has one more, or of another shape.
NewCheckpoint import_safetensors(const SafetensorsFile& file,
                                 const std::vector<TensorRecord>& values,
                                 const std::vector<std::string>& moments, const NameTable& names);

}  // namespace weft
