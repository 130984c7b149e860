// A large file, fast: written once from front to back by a thread of its own that works while the
// caller computes. Linux; the thread never calls Kokkos.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace weft {

// A new file of a known size. Goes past the page cache (O_DIRECT) in large aligned writes where the
// file system can, else through it. Every fault of the system is an Error(failed) with its reason,
// thrown by the next call of write() or by finish(); nothing is retried as if it had worked.
class StreamWriter {
 public:
  // Creates `path`, which must not exist.
  StreamWriter(std::string path, std::uint64_t num_bytes);
  ~StreamWriter();  // ends the thread; without finish() the file stays as it is
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  // Appends a copy. In all, exactly num_bytes.
  void write(const void* bytes, std::size_t size);
  // The same without the copy: memory for the next `size` bytes, aligned as their place in the file
  // is up to 64; append() then takes them.
  std::byte* room(std::size_t size);
  void append();
  // Waits until all is written, syncs the file to the disk, closes it.
  void finish();

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace weft
