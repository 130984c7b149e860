// Reads a safetensors file (safetensors_header.hpp), any part of any tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shard_spec.hpp"
#include "io/safetensors_header.hpp"

namespace weft {

class SafetensorsFile {
 public:
  // Throws Error(data) where it is missing, cut off, or not of the format.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  // By increasing offset.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }

  // A box of a tensor of one or two dims (one of one dim is one row), row by row, into `out`. Reads
  // windows of some MiB. Throws Error(data) where the file has become shorter.
  void read_box(const SafetensorsTensor& tensor, const Box& box, std::uint32_t* out) const;

 private:
  std::string path_;
  std::uint64_t data_offset_ = 0;
  std::vector<SafetensorsTensor> tensors_;
};

}  // namespace weft
