#include "io/checkpoint/index_file.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string_view>

#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/manifest.hpp"
#include "io/file.hpp"

namespace weft {

namespace {

void write_synced(const std::string& path, std::string_view bytes) {
  OutputFile file(path, OutputFile::Mode::create);
  file.write(bytes);
  file.sync();
  file.close();
}

Manifest manifest_of(const CheckpointIndex& index, const std::string& index_bytes,
                     const ManifestTexts& texts) {
  Manifest manifest{
      .id = index.id,
      .step = index.progress.step,
      .written = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
      .program = texts.program,
      .plan_name = texts.plan_name,
      .plan_hash = index.identity.plan_hash,
      .layout = texts.layout,
      .state_fingerprint = index.state_fingerprint(),
      .num_elements = static_cast<std::uint64_t>(index.num_elements()),
      .index_hash = hash128(index_bytes.data(), index_bytes.size()),
      .files = {{index_name, index_bytes.size()}}};
  for (const FileRecord& file : index.files) manifest.files.push_back({file.name, file.num_bytes});
  return manifest;
}

}  // namespace

void write_index(const std::string& folder, const CheckpointIndex& index,
                 const ManifestTexts& texts) {
  const std::string bytes = encode(index);
  decode_index(bytes, index_name);
  write_synced(folder + "/" + index_name, bytes);
  write_synced(folder + "/" + manifest_name, encode(manifest_of(index, bytes, texts)));
}

}  // namespace weft
