// Large files, fast: read by listed extents, by a thread of its own that works while the caller
// computes. Linux; the thread never calls Kokkos.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft {

struct Extent {
  std::string path;
  std::uint64_t offset = 0;
  std::size_t num_bytes = 0;
};

// Reads extents in their order, up to a few MiB ahead of the caller.
class ExtentReader {
 public:
  explicit ExtentReader(std::vector<Extent> extents);
  ~ExtentReader();
  ExtentReader(const ExtentReader&) = delete;
  ExtentReader& operator=(const ExtentReader&) = delete;

  // The bytes of the next extent; valid until the following call. Throws Error(data) where the file
  // is missing, unreadable or ends before the extent does.
  std::span<const std::byte> next();

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

// The whole of a small file. Throws Error(data) where it is missing, unreadable, or larger than
// `most_bytes`.
std::string read_whole_file(const std::string& path, std::uint64_t most_bytes);

// Tells the system that `path` is not needed in memory: the next read comes from the disk.
void drop_from_cache(const std::string& path);

}  // namespace weft
