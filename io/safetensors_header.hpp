// The header of a safetensors file (huggingface.co/docs/safetensors, "Format"): 8 bytes with the
// length of a JSON object, the object, and behind it the tensors' bytes without a gap:
//   {"__metadata__": {"format": "pt"},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct SafetensorsTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // none: a scalar
  // Of its bytes behind the header: f32, row-major, little-endian.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const SafetensorsTensor&, const SafetensorsTensor&) = default;
};

inline constexpr std::uint64_t safetensors_length_bytes = 8;
// Of what is no tensor in the object.
inline constexpr const char* safetensors_metadata_key = "__metadata__";
// The format's own limit.
inline constexpr std::uint64_t most_safetensors_header_bytes = 100'000'000;

// The JSON object, `data_bytes` the bytes behind it; tensors by increasing offset. Every fault is
// an Error(data) that names `path`, the tensor, what was expected and found: no object of this
// form, a name or key twice, another dtype than F32, a shape whose bytes are not those of the
// offsets, tensors that overlap or leave a hole, bytes behind the last one. Takes memory in
// proportion to `header` alone, and no stack for nested values.
std::vector<SafetensorsTensor> decode_safetensors_header(std::string_view header,
                                                         std::uint64_t data_bytes,
                                                         const std::string& path);

// The length and the object, filled up with spaces so that data begin on a multiple of 8.
std::string encode_safetensors_header(const std::vector<SafetensorsTensor>& tensors);

}  // namespace weft
