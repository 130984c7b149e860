// The thread behind the class, with its ring of buffers; see the header.
#include "io/extent_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <list>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "io/stream_ring.hpp"

namespace weft {

namespace {

// A regular file opened for reading. Errors: Error(data).
class InputFile {
 public:
  // Without O_NONBLOCK a pipe by that name would hold us for ever.
  explicit InputFile(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail("open", errno);
    struct stat status {};
    const int reason = ::fstat(fd_, &status) == 0 ? 0 : errno;
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (reason == 0 && S_ISREG(status.st_mode)) return;
    ::close(fd_);  // no destructor runs after a throw from here
    if (reason != 0) fail("read the size of", reason);
    throw Error(
        ExitCode::data,
        fmt::format("{}: expected a regular file, found something else by its name", path_));
  }
  ~InputFile() { ::close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  int descriptor() const { return fd_; }

  struct Result {
    std::size_t num_bytes = 0;  // from the front on
    int reason = 0;             // why there are no more; 0: the file ends there
  };
  Result read_at(std::uint64_t offset, std::byte* into, std::size_t size) const {
    Result result;
    while (result.num_bytes < size) {
      const auto place = static_cast<off_t>(offset + result.num_bytes);
      const ssize_t got = ::pread(fd_, into + result.num_bytes, size - result.num_bytes, place);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) result.reason = errno;
      if (got <= 0) break;
      result.num_bytes += static_cast<std::size_t>(got);
    }
    return result;
  }
  [[noreturn]] void fail(const char* what, int reason) const {
    throw Error(ExitCode::data,
                fmt::format("cannot {} {}: {}", what, path_, std::strerror(reason)));
  }

 private:
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
};

// The files read last, open.
class OpenFiles {
 public:
  const InputFile& get(const std::string& path) {
    const auto found = std::find_if(files_.begin(), files_.end(),
                                    [&](const InputFile& file) { return file.path() == path; });
    if (found != files_.end()) {
      files_.splice(files_.begin(), files_, found);
    } else {
      if (files_.size() == most) files_.pop_back();
      files_.emplace_front(path);
    }
    return files_.front();
  }

 private:
  static constexpr std::size_t most = 8;
  std::list<InputFile> files_;  // the last one used first
};

}  // namespace

// The thread reads as many extents into a buffer as fit, those that touch in the file by one call;
// the caller takes them from there one by one, so that small extents cost no hand-over each.
// Through the page cache, since the system's own read-ahead keeps the disk as busy as several
// O_DIRECT reads in flight would, and small extents share pages. One thread: two that take turns in
// one file break the read-ahead, and read at a third of the speed. POSIX_FADV_SEQUENTIAL and larger
// chunks gained nothing; chunks of 4 MiB no longer stay in the processor's cache until they are
// used.
class ExtentReader::Thread {
 public:
  explicit Thread(std::vector<Extent> extents)
      : extents_(std::move(extents)), thread_([this] { run(); }) {}
  ~Thread() {
    ring_.end();
    thread_.join();
  }

  std::span<const std::byte> next() {
    while (true) {
      if (current_ == nullptr) current_ = wait_for_chunk();
      if (num_given_ < current_->parts.size()) return current_->parts[num_given_++];
      const std::exception_ptr failure = std::exchange(current_->failure, nullptr);
      num_given_ = 0;
      current_ = nullptr;
      ring_.emptied();
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  static constexpr std::size_t chunk_bytes = mib;
  // Extents that follow one another; then, if there was one, the fault of the extent after them.
  struct Chunk {
    AlignedBuffer bytes;
    std::vector<std::span<const std::byte>> parts;
    std::exception_ptr failure;
  };

  Chunk* wait_for_chunk() {
    Chunk* const chunk = ring_.wait_for_filled();
    if (chunk != nullptr) return chunk;
    ring_.rethrow_failure();
    throw Error(ExitCode::failed,
                fmt::format("asked for an extent beyond the last one, {} in all", extents_.size()));
  }

  void run() {
    std::exception_ptr failure = exception_of([this] { read_all(); });
    if (failure) ring_.fail(std::move(failure));  // told by next(), after what was ready
  }

  void read_all() {
    std::size_t at = 0;
    while (at < extents_.size()) {
      Chunk* const chunk = ring_.wait_for_free();
      if (chunk == nullptr) return;
      at = fill(*chunk, at);
      ring_.filled();
    }
    ring_.end();
  }

  // Returns the extent to go on with.
  std::size_t fill(Chunk& chunk, std::size_t first) {
    chunk.parts.clear();
    const std::size_t last = end_of_chunk(first);
    std::size_t num_bytes = 0;
    for (std::size_t i = first; i < last; ++i) num_bytes += extents_[i].num_bytes;
    chunk.bytes.reserve(std::max(num_bytes, chunk_bytes));
    std::byte* into = chunk.bytes.data();
    for (std::size_t i = first; i < last;) {
      const std::size_t end = end_of_run(i, last);
      const std::size_t done = read_run(chunk, i, end, into);
      if (chunk.failure) return done + 1;
      for (; i < end; ++i) into += extents_[i].num_bytes;
    }
    return last;
  }

  std::size_t end_of_chunk(std::size_t first) const {
    std::size_t i = first, num_bytes = extents_[first].num_bytes;
    while (++i < extents_.size() && num_bytes + extents_[i].num_bytes <= chunk_bytes)
      num_bytes += extents_[i].num_bytes;
    return i;
  }

  // Of extents that touch in one file.
  std::size_t end_of_run(std::size_t first, std::size_t last) const {
    std::size_t i = first + 1;
    while (i < last && extents_[i].path == extents_[first].path &&
           extents_[i].offset == extents_[i - 1].offset + extents_[i - 1].num_bytes)
      ++i;
    return i;
  }

  // Returns `end`, or the extent that could not be read; its fault is then the chunk's.
  std::size_t read_run(Chunk& chunk, std::size_t first, std::size_t end, std::byte* into) {
    std::size_t i = first;
    chunk.failure = exception_of([&] {
      const InputFile& file = files_.get(extents_[first].path);
      const std::uint64_t begin = extents_[first].offset;
      const std::uint64_t size = extents_[end - 1].offset + extents_[end - 1].num_bytes - begin;
      const InputFile::Result there = file.read_at(begin, into, size);
      for (; i < end; ++i) {
        const Extent& extent = extents_[i];
        const std::uint64_t at = extent.offset - begin;
        if (at + extent.num_bytes > there.num_bytes) throw_missing(extent, file, begin, there);
        chunk.parts.emplace_back(into + at, extent.num_bytes);
      }
    });
    return i;
  }

  [[noreturn]] static void throw_missing(const Extent& extent, const InputFile& file,
                                         std::uint64_t begin, InputFile::Result there) {
    if (there.reason != 0) file.fail("read", there.reason);
    throw Error(ExitCode::data,
                fmt::format("{}: expected {} bytes from byte {} on, found the file's end after {} "
                            "bytes: it was cut off",
                            extent.path, extent.num_bytes, extent.offset,
                            std::min(begin + there.num_bytes, file.size())));
  }

  std::vector<Extent> extents_;
  Chunk* current_ = nullptr;  // the caller's, as num_given_
  std::size_t num_given_ = 0;
  OpenFiles files_;  // the thread's
  Ring<Chunk, 3> ring_;
  std::thread thread_;  // last: everything above exists before it starts
};

ExtentReader::ExtentReader(std::vector<Extent> extents)
    : thread_(std::make_unique<Thread>(std::move(extents))) {}

ExtentReader::~ExtentReader() = default;

std::span<const std::byte> ExtentReader::next() { return thread_->next(); }

std::string read_whole_file(const std::string& path, std::uint64_t most_bytes) {
  const InputFile file(path);
  require(file.size() <= most_bytes, ExitCode::data,
          fmt::format("{}: expected at most {} bytes, found {}: it is not what its name says", path,
                      most_bytes, file.size()));
  std::string bytes(file.size(), '\0');
  const InputFile::Result there =
      file.read_at(0, reinterpret_cast<std::byte*>(bytes.data()), bytes.size());
  if (there.reason != 0) file.fail("read", there.reason);
  bytes.resize(there.num_bytes);
  require(bytes.size() == file.size(), ExitCode::data,
          fmt::format("{}: expected {} bytes, found {}: it changes while it is read", path,
                      file.size(), bytes.size()));
  return bytes;
}

void drop_from_cache(const std::string& path) {
  // Only advice: where the file is missing, the read that follows says so.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace weft
