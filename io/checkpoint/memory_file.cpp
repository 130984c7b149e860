#include "io/checkpoint/memory_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weft {
namespace {

[[noreturn]] void fail(const char* what, int reason) {
  throw Error(
      ExitCode::failed,
      fmt::format("cannot {} a file in memory: {}; checkpoints need memfd_create, /proc and "
                  "room for their metadata in memory",
                  what, std::strerror(reason)));
}

}  // namespace

MemoryFile::MemoryFile() : fd_(::memfd_create("weft", MFD_CLOEXEC)) {
  if (fd_ < 0) fail("make", errno);
}

MemoryFile::~MemoryFile() { ::close(fd_); }

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

std::uint64_t MemoryFile::num_bytes() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("ask the size of", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::string MemoryFile::read(std::uint64_t offset, std::uint64_t size) const {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) fail("read past the end of", EINVAL);
    if (n < 0 && errno != EINTR) fail("read", errno);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return bytes;
}

void MemoryFile::append(const std::string& bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) fail("write", errno);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

}  // namespace weft
