// Opening and checking the files of CIFAR-10. Every message says which file, what was expected and
// found, and what to do.
#include "io/cifar10.hpp"

#include <fmt/format.h>

#include <cassert>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr const char* how_to_get =
    "name the folder with task.path, --data or WEFT_DATA, or make a synthetic set with: "
    "weft data make cifar10 DIR";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// A folder counts as CIFAR-10's if it has any of the files; which are missing is said later.
bool has_any_file(const fs::path& folder) {
  for (const char* name : Cifar10::file_names) {
    if (is_there(folder / name)) return true;
  }
  return false;
}

std::string find_folder(const std::string& given) {
  require(!given.empty(), ExitCode::data,
          fmt::format("no folder given for CIFAR-10: {}", how_to_get));
  require(is_there(given), ExitCode::data,
          fmt::format("the data folder {} does not exist: {}", given, how_to_get));
  require(fs::is_directory(given), ExitCode::data,
          fmt::format("{} is not a folder: expected the folder that holds {}; {}", given,
                      Cifar10::file_names[0], how_to_get));
  const fs::path inner = fs::path(given) / "cifar10";
  if (has_any_file(given)) return given;
  if (has_any_file(inner)) return inner.string();
  throw Error(ExitCode::data,
              fmt::format("no CIFAR-10 in {}: expected data_batch_1.bin .. data_batch_5.bin, "
                          "test_batch.bin and {} in it or in its subfolder cifar10/, found none of "
                          "the data files; {}",
                          given, Cifar10::names_file, how_to_get));
}

void require_file(const fs::path& path) {
  require(is_there(path), ExitCode::data,
          fmt::format("{} is missing: CIFAR-10 is six files and {}; unpack the official binary "
                      "archive again, or make a synthetic set with: weft data make cifar10 DIR",
                      path.string(), Cifar10::names_file));
}

std::vector<std::string> read_class_names(const fs::path& path) {
  require_file(path);
  std::ifstream file(path);
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  require(std::ssize(names) == Cifar10::num_classes, ExitCode::data,
          fmt::format("{}: expected {} class names, one a line, found {}; put the official file in "
                      "its place",
                      path.string(), Cifar10::num_classes, names.size()));
  return names;
}

index_t count_rows(const MappedFile& file) {
  const auto size = std::ssize(file.bytes());
  require(size > 0, ExitCode::data,
          fmt::format("{} is empty: expected rows of {} bytes; copy or make the file again",
                      file.path(), Cifar10::row_bytes));
  const index_t rest = size % Cifar10::row_bytes;
  require(
      rest == 0, ExitCode::data,
      fmt::format("{} is truncated: {} bytes are {} whole rows of {} bytes, and row {} has only "
                  "{} bytes; copy or make the file again",
                  file.path(), size, size / Cifar10::row_bytes, Cifar10::row_bytes,
                  size / Cifar10::row_bytes, rest));
  return size / Cifar10::row_bytes;
}

}  // namespace

Cifar10::Cifar10(const std::string& folder) : folder_(find_folder(folder)) {
  for (const char* name : file_names) require_file(fs::path(folder_) / name);
  class_names_ = read_class_names(fs::path(folder_) / names_file);
  files_.reserve(num_files);
  for (const char* name : file_names) {
    const MappedFile& file = files_.emplace_back((fs::path(folder_) / name).string());
    const index_t rows = count_rows(file);
    if (files_.size() == 1) rows_per_file_ = rows;
    require(rows == rows_per_file_, ExitCode::data,
            fmt::format("{} has {} rows, {} has {}: all six files must have the same number "
                        "(official: 10000); copy or make the wrong one again",
                        file.path(), rows, file_names[0], rows_per_file_));
  }
}

Cifar10Image Cifar10::image(Part part, index_t index) const {
  assert(0 <= index && index < num_samples(part));
  if (part == Part::test) return image_of_file(num_training_files, index);
  return image_of_file(index / rows_per_file_, index % rows_per_file_);
}

Cifar10Image Cifar10::image_of_file(index_t file, index_t row) const {
  const std::uint8_t* const bytes = files_[file].bytes().data() + row * row_bytes;
  if (bytes[0] >= num_classes) [[unlikely]] {
    throw Error(ExitCode::data,
                fmt::format("{}: row {} has label {}, expected 0..{}: the file is altered; copy or "
                            "make it again",
                            files_[file].path(), row, bytes[0], num_classes - 1));
  }
  return {bytes[0], std::span<const std::uint8_t, image_bytes>(bytes + 1, image_bytes)};
}

void Cifar10::verify() const {
  for (index_t file = 0; file < num_files; ++file) {
    for (index_t row = 0; row < rows_per_file_; ++row) image_of_file(file, row);
  }
}

std::string Cifar10::fingerprint() const {
  std::string text;
  for (const MappedFile& file : files_) {
    const std::span<const std::uint8_t> bytes = file.bytes();
    text += fmt::format("{} {}\n", bytes.size(), hash128(bytes.data(), bytes.size()).text());
  }
  return hash128(text.data(), text.size()).text();
}

}  // namespace weft
