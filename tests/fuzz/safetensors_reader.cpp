// The header of a safetensors file: the first 8 bytes are how many bytes of tensors come behind it.
#include <map>

#include "io/safetensors_header.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/readers.hpp"

namespace weft::test {

namespace {

using Wide = unsigned __int128;

// Little-endian, as the format's own length.
std::string in_8_bytes(std::uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  return bytes;
}

std::uint64_t from_8_bytes(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

// Four for each element; stops growing beyond what any file has.
Wide bytes_of(const SafetensorsTensor& tensor) {
  Wide bytes = 4;
  for (const std::uint64_t extent : tensor.shape) {
    if (extent == 0) return 0;
    if (bytes >> 64 == 0) bytes *= extent;
  }
  return bytes;
}

// Of tensors in any order: none outside, none in another, no byte in none.
std::string cover_fault_of(const std::vector<SafetensorsTensor>& tensors,
                           std::uint64_t data_bytes) {
  std::map<std::uint64_t, std::uint64_t> end_of;  // of those that have bytes, by their begin
  Wide sum = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.begin > tensor.end || tensor.end > data_bytes) return "a tensor lies outside";
    if (bytes_of(tensor) != tensor.end - tensor.begin) return "a tensor has not its shape's bytes";
    if (tensor.begin == tensor.end) continue;
    if (!end_of.emplace(tensor.begin, tensor.end).second) return "two tensors begin at a byte";
    sum += tensor.end - tensor.begin;
  }
  if (sum != data_bytes) return "the tensors' bytes are not as many as there are";
  for (auto at = end_of.begin(); at != end_of.end(); ++at)
    if (std::next(at) != end_of.end() && at->second > std::next(at)->first)
      return "two tensors overlap";
  return "";
}

void take_safetensors_header(std::string_view bytes) {
  if (bytes.size() < 8) return;
  const std::uint64_t data_bytes = from_8_bytes(bytes);
  std::vector<SafetensorsTensor> tensors;
  if (!is_taken(ExitCode::data,
                [&] { tensors = decode_safetensors_header(bytes.substr(8), data_bytes, "f"); }))
    return;
  const std::string fault = cover_fault_of(tensors, data_bytes);
  expect(fault.empty(), "taken, but " + fault);
  std::map<std::string, int> times;
  for (const SafetensorsTensor& tensor : tensors)
    expect(++times[tensor.name] == 1, "a name comes twice: " + tensor.name);
  const std::string again = encode_safetensors_header(tensors);
  expect(again.size() % 8 == 0 && from_8_bytes(again) == again.size() - 8,
         "a header's length is not its own");
  expect(decode_safetensors_header(std::string_view(again).substr(8), data_bytes, "f") == tensors,
         "a header changes its form");
}

// As the format's description has them, not by our writer.
std::vector<std::string> safetensors_header_seeds() {
  return {in_8_bytes(0) + "{}",
          in_8_bytes(24) + R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})",
          in_8_bytes(16) + R"({"b":{"data_offsets":[4,16],"shape":[3],"dtype":"F32"},)"
                           R"("__metadata__":{"format":"pt","x":"y"},)"
                           R"("\u00e9 \"":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                           R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}}   )",
          in_8_bytes(~std::uint64_t{0} - 3) +
              R"({"a":{"dtype":"F32","shape":[4611686018427387903],)"
              R"("data_offsets":[0,18446744073709551612]}})",
          // Two that overlap beside a hole: as many bytes as there are, and the right end.
          in_8_bytes(16) + R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                           R"("c":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})"};
}

}  // namespace

FuzzedReader safetensors_header_reader() {
  return {"safetensors_header", take_safetensors_header, safetensors_header_seeds};
}

}  // namespace weft::test
