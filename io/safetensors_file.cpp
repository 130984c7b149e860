#include "io/safetensors_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.hpp"
#include "io/extent_reader.hpp"

namespace weft {

namespace {

constexpr std::uint64_t most_bytes_at_once = std::uint64_t{4} << 20;

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  require(std::filesystem::is_regular_file(path, error), ExitCode::data,
          fmt::format("{}: expected a safetensors file, found {}", path,
                      std::filesystem::exists(path, error) ? "no file" : "nothing"));
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  require(!error, ExitCode::data, fmt::format("{}: {}", path, error.message()));
  return bytes;
}

std::uint64_t length_in(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    length |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[i])} << (8 * i);
  return length;
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  const std::uint64_t num_bytes = size_of(path_);
  require(num_bytes > safetensors_length_bytes, ExitCode::data,
          fmt::format("{}: expected a safetensors file, found {} bytes", path_, num_bytes));
  ExtentReader length({{path_, 0, safetensors_length_bytes}});
  const std::uint64_t header_bytes = length_in(length.next());
  const std::uint64_t rest = num_bytes - safetensors_length_bytes;
  // Nothing is allocated by a number that the file itself does not bear out.
  require(header_bytes <= most_safetensors_header_bytes, ExitCode::data,
          fmt::format("{}: its header is to have {} bytes: expected at most {}; this is no "
                      "safetensors file",
                      path_, header_bytes, most_safetensors_header_bytes));
  require(header_bytes <= rest, ExitCode::data,
          fmt::format("{}: its header is to have {} bytes, found {}: it is cut off, or no "
                      "safetensors file",
                      path_, header_bytes, rest));
  require(header_bytes > 0, ExitCode::data, path_ + ": its header is empty: expected {}");
  ExtentReader header({{path_, safetensors_length_bytes, header_bytes}});
  const std::span<const std::byte> text = header.next();
  data_offset_ = safetensors_length_bytes + header_bytes;
  tensors_ = decode_safetensors_header({reinterpret_cast<const char*>(text.data()), text.size()},
                                       num_bytes - data_offset_, path_);
}

void SafetensorsFile::read_box(const SafetensorsTensor& tensor, const Box& box,
                               std::uint32_t* out) const {
  const index_t width = static_cast<index_t>(tensor.shape.back()), cols = box.cols.size();
  const auto read = [&](index_t first, index_t n, const auto& use) {
    const std::uint64_t begin = data_offset_ + tensor.begin + static_cast<std::uint64_t>(first) * 4;
    ExtentReader reader({{path_, begin, static_cast<std::size_t>(n) * 4}});
    use(reader.next().data());
  };
  // Whole rows where there are several: what is not asked for of them is small beside a read each.
  const index_t step = std::max<index_t>(
      1, static_cast<index_t>(most_bytes_at_once) / 4 / std::max<index_t>(width, 1));
  if (step == 1) {
    for (index_t row = box.rows.begin; row < box.rows.end; ++row, out += cols)
      read(row * width + box.cols.begin, cols, [&](const std::byte* bytes) {
        std::memcpy(out, bytes, static_cast<std::size_t>(cols) * 4);
      });
    return;
  }
  for (index_t row = box.rows.begin; row < box.rows.end; row += step) {
    const index_t end = std::min(row + step, box.rows.end);
    read(row * width, (end - row) * width, [&](const std::byte* bytes) {
      for (index_t r = row; r < end; ++r, out += cols)
        std::memcpy(out, bytes + ((r - row) * width + box.cols.begin) * 4,
                    static_cast<std::size_t>(cols) * 4);
    });
  }
}

}  // namespace weft
