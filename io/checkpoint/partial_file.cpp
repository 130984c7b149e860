#include "io/checkpoint/partial_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/file.hpp"

namespace weft {

PartialFile::PartialFile(std::string path, std::string name)
    : path_(std::move(path)),
      name_(std::move(name)),
      partial_(path_ + ".partial-" + new_checkpoint_id()) {}

PartialFile::~PartialFile() {
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

void PartialFile::commit() {
  require(rename_to_new(partial_, path_), ExitCode::usage,
          fmt::format("{}: something was made there meanwhile; it was not touched", name_));
  confirm_name(path_);
}

}  // namespace weft
