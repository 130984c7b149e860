// The threads behind the two classes, each with a ring of buffers; see the header.
#include "io/stream_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "io/file.hpp"

namespace weft {

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// Memory as O_DIRECT wants it; grows by forgetting what was in it. Large ones ask for huge pages:
// the system pins each page for each O_DIRECT write, and with pages of 4 KiB that costs a quarter
// of the disk's speed.
class AlignedBuffer {
 public:
  void reserve(std::size_t size) {
    if (size <= capacity_) return;
    const std::size_t unit = size < huge_page_bytes ? DirectFile::alignment : huge_page_bytes;
    const std::size_t rounded = (size + unit - 1) / unit * unit;
    bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(unit, rounded)));
    capacity_ = bytes_ ? rounded : 0;
    if (!bytes_) throw std::bad_alloc();
    if (unit == huge_page_bytes) ::madvise(bytes_.get(), rounded, MADV_HUGEPAGE);  // only advice
  }
  std::byte* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  static constexpr std::size_t huge_page_bytes = 2 * mib;

  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t capacity_ = 0;
};

// A ring of slots between one thread that fills them and one that empties them. Counts only grow;
// slot i mod n belongs to the filler until filled() and to the emptier until emptied().
template <typename Slot, std::size_t num_slots>
class Ring {
 public:
  // The next slot to fill; null: the other side has ended.
  Slot* wait_for_free() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || filled_ - emptied_ < num_slots; });
    return ended_ ? nullptr : &slots_[filled_ % num_slots];
  }
  void filled() {
    change([this] { ++filled_; });
  }
  // The next slot to empty; null: none is left and none will come.
  Slot* wait_for_filled() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || filled_ > emptied_; });
    return filled_ > emptied_ ? &slots_[emptied_ % num_slots] : nullptr;
  }
  void emptied() {
    change([this] { ++emptied_; });
  }
  // Either side: no slot will be filled from now on.
  void end() {
    change([this] { ended_ = true; });
  }
  // As end(), for the thread's reason.
  void fail(std::exception_ptr failure) {
    change([&] {
      ended_ = true;
      failure_ = std::move(failure);
    });
  }
  void rethrow_failure() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <typename Change>
  void change(Change what) {
    {
      const std::lock_guard lock(mutex_);
      what();
    }
    changed_.notify_all();
  }

  std::array<Slot, num_slots> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t filled_ = 0;  // guarded by mutex_, as the following
  std::size_t emptied_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

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

// The caller fills buffers, the thread writes them. Three of 4 MiB: one being filled, one being
// written, one between so that neither waits for the other's moods. Of 1 to 8 MiB all did alike
// (perf/bench_stream_file); what made the difference was O_DIRECT, and huge pages.
class StreamWriter::Thread {
 public:
  Thread(std::string path, std::uint64_t num_bytes)
      : num_bytes_(num_bytes), file_(std::move(path)), thread_([this] { run(); }) {}
  ~Thread() {
    ring_.end();
    if (thread_.joinable()) thread_.join();
  }

  void write(const std::byte* bytes, std::size_t size) {
    ring_.rethrow_failure();
    require(size <= num_bytes_ - num_taken_, ExitCode::failed,
            fmt::format("{}: expected {} bytes in all, found {} more to be written after {}",
                        file_.path(), num_bytes_, size, num_taken_));
    while (size > 0) {
      Buffer& buffer = buffer_to_fill();
      const std::size_t part = std::min(size, buffer_bytes - buffer.size);
      std::memcpy(buffer.bytes.data() + buffer.size, bytes, part);
      buffer.size += part;
      num_taken_ += part;
      bytes += part;
      size -= part;
      if (buffer.size == buffer_bytes) pass_on();
    }
  }

  void finish() {
    if (current_ != nullptr) pass_on();
    ring_.end();
    if (thread_.joinable()) thread_.join();
    ring_.rethrow_failure();
    require(num_taken_ == num_bytes_, ExitCode::failed,
            fmt::format("{}: expected {} bytes in all, found {}: the file is not whole",
                        file_.path(), num_bytes_, num_taken_));
    try {
      file_.sync();
      file_.close();
    } catch (const Error&) {
      // For good: a second sync may succeed without having written anything.
      ring_.fail(std::current_exception());
      throw;
    }
  }

 private:
  static constexpr std::size_t buffer_bytes = 4 * mib;
  struct Buffer {
    AlignedBuffer bytes;
    std::size_t size = 0;
  };

  Buffer& buffer_to_fill() {
    if (current_ != nullptr) return *current_;
    Buffer* const free = ring_.wait_for_free();
    if (free == nullptr) {
      ring_.rethrow_failure();
      throw Error(ExitCode::failed, fmt::format("{}: written to after its end", file_.path()));
    }
    free->size = 0;
    free->bytes.reserve(std::min<std::uint64_t>(buffer_bytes, num_bytes_ - num_taken_));
    current_ = free;
    return *current_;
  }

  void pass_on() {
    current_ = nullptr;
    ring_.filled();
  }

  void run() {
    try {
      std::uint64_t offset = 0;
      while (Buffer* const buffer = ring_.wait_for_filled()) {
        file_.write_at(offset, {buffer->bytes.data(), buffer->size});
        offset += buffer->size;
        ring_.emptied();
      }
    } catch (...) {
      // The thread's top: the caller is told.
      ring_.fail(std::current_exception());
    }
  }

  const std::uint64_t num_bytes_;
  DirectFile file_;
  std::uint64_t num_taken_ = 0;  // the caller's, as current_
  Buffer* current_ = nullptr;
  Ring<Buffer, 3> ring_;
  std::thread thread_;  // last: everything above exists before it starts
};

StreamWriter::StreamWriter(std::string path, std::uint64_t num_bytes)
    : thread_(std::make_unique<Thread>(std::move(path), num_bytes)) {}

StreamWriter::~StreamWriter() = default;

void StreamWriter::write(const void* bytes, std::size_t size) {
  thread_->write(static_cast<const std::byte*>(bytes), size);
}

void StreamWriter::finish() { thread_->finish(); }

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
      const std::exception_ptr failure = current_->failure;
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
    try {
      std::size_t at = 0;
      while (at < extents_.size()) {
        Chunk* const chunk = ring_.wait_for_free();
        if (chunk == nullptr) return;
        at = fill(*chunk, at);
        ring_.filled();
      }
      ring_.end();
    } catch (...) {
      // The thread's top: the caller of next() is told, after what was ready.
      ring_.fail(std::current_exception());
    }
  }

  // Returns the extent to go on with.
  std::size_t fill(Chunk& chunk, std::size_t first) {
    chunk.parts.clear();
    chunk.failure = nullptr;
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
    try {
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
    } catch (const Error&) {
      chunk.failure = std::current_exception();
    }
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
