// Plain text for language models: a file's bytes are its tokens, and a sample is a window of them
// with what follows each. It knows bytes and parts; no encoding, no words.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/range.hpp"
#include "io/mapped_file.hpp"

namespace weft {

class ByteText {
 public:
  enum class Part { training, validation, test };
  static constexpr index_t num_tokens_in_all = 256;  // a token is a byte: 0..255

  // In which proportion the file is cut, front to back; so 90, 5 and 5 are percent.
  struct Shares {
    index_t training = 90;
    index_t validation = 5;
    index_t test = 5;
  };

  // Opens a file; or a folder, or its subfolder text/, that holds a single *.txt. `window`: tokens
  // a sample. Throws Error(data) on a file that cannot be read or is empty; Error(usage) on shares
  // that are none, on a window below 1, and where a part that has a share has no whole sample.
  ByteText(const std::string& path, index_t window, const Shares& shares);

  const std::string& path() const { return file_.path(); }
  std::span<const std::uint8_t> bytes() const { return file_.bytes(); }  // of the whole file
  index_t window() const { return window_; }
  // Bytes of the file: of n in all, from floor(n * shares before it / all shares) to the same with
  // its own share. Parts do not overlap, and no sample reaches out of its part.
  Range bytes_of(Part part) const;
  // Windows lie side by side; the last bytes of a part that fill none are in no sample.
  index_t num_samples(Part part) const;

  // Sample i of a part that begins at byte b: tokens are bytes b + i*window .. b + (i+1)*window -
  // 1, targets the byte after each. Both [window]. Any number of threads may read.
  void read_into(Part part, index_t index, std::span<std::int32_t> tokens,
                 std::span<std::int32_t> targets) const;

  // 32 hexadecimal digits that tell this data from other data: a hash of the file's bytes.
  std::string fingerprint() const;

 private:
  MappedFile file_;
  index_t window_;
  Shares shares_;
};

}  // namespace weft
