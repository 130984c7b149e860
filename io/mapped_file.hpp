// A whole file in memory, read-only and shared: all ranks of a node read the same page cache, and
// nothing is copied until a sample is used. Not for files that change while they are open (a file
// that is cut short under a running job ends it with SIGBUS).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weft {

class MappedFile {
 public:
  // Throws Error(data) with the system's reason if the file cannot be opened or mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  // Valid as long as this object.
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace weft
