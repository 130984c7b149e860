// A file of the system that has a path and no disk: what a library does to it can neither fill a
// disk nor be half there after a kill. Only pages that are written take memory. Linux.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Every fault of the system is an Error(failed).
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;  // of this process alone, while this object lives
  std::uint64_t num_bytes() const;
  std::string read(std::uint64_t offset, std::uint64_t size) const;
  void append(const std::string& bytes) const;

 private:
  int fd_;
};

}  // namespace weft
