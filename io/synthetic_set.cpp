#include "io/synthetic_set.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "core/error.hpp"
#include "io/file.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t piece_bytes = 1 << 20;

}  // namespace

void check_new_set(const std::string& folder, const std::vector<std::string>& files,
                   std::uint64_t seed) {
  require(seed < (std::uint64_t{1} << 56), ExitCode::usage,
          fmt::format("seed = {}: expected at most 2^56 - 1", seed));
  for (const std::string& name : files) {
    const std::string path = (fs::path(folder) / name).string();
    std::error_code ignored;
    require(!fs::exists(path, ignored), ExitCode::usage,
            fmt::format("{} exists: nothing was written; name another folder, or remove the file",
                        path));
  }
}

void write_new_set(const std::string& folder, const std::vector<NewFile>& files) {
  make_folder(folder);
  std::vector<std::unique_ptr<AtomicFile>> written;
  for (const NewFile& file : files) {
    written.push_back(std::make_unique<AtomicFile>((fs::path(folder) / file.name).string()));
    std::string bytes;
    for (index_t item = 0; file.add(item, bytes); ++item) {
      if (bytes.size() < piece_bytes) continue;
      written.back()->write(bytes);
      bytes.clear();
    }
    written.back()->write(bytes);
  }
  for (const auto& file : written) file->commit();
}

}  // namespace weft
