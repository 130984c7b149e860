// The thread behind the class, with its ring of buffers; see the header.
#include "io/stream_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "io/file.hpp"
#include "io/stream_ring.hpp"

namespace weft {

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
    check_next(size);
    while (size > 0) {
      Buffer& buffer = buffer_to_fill();
      const std::size_t part = std::min(size, buffer_bytes - buffer.size);
      std::memcpy(buffer.bytes.data() + buffer.size, bytes, part);
      take(part);
      bytes += part;
      size -= part;
    }
  }

  std::byte* room(std::size_t size) {
    check_next(size);
    room_bytes_ = size;
    Buffer& buffer = buffer_to_fill();
    is_room_apart_ = size > buffer_bytes - buffer.size;
    if (!is_room_apart_) return buffer.bytes.data() + buffer.size;
    // It would lie in two buffers.
    apart_.reserve(size + most_misalignment);
    return apart_.data() + buffer.size % most_misalignment;
  }

  void append() {
    const std::size_t size = std::exchange(room_bytes_, 0);
    if (!is_room_apart_) {
      take(size);
    } else {
      write(apart_.data() + current_->size % most_misalignment, size);
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
  static constexpr std::size_t most_misalignment = 64;
  struct Buffer {
    AlignedBuffer bytes;
    std::size_t size = 0;
  };

  void check_next(std::size_t size) {
    ring_.rethrow_failure();
    require(size <= num_bytes_ - num_taken_, ExitCode::failed,
            fmt::format("{}: expected {} bytes in all, found {} more to be written after {}",
                        file_.path(), num_bytes_, size, num_taken_));
  }

  // What lies behind the bytes of the current buffer is now theirs.
  void take(std::size_t size) {
    current_->size += size;
    num_taken_ += size;
    if (current_->size == buffer_bytes) pass_on();
  }

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
    std::exception_ptr failure = exception_of([this] { write_all(); });
    if (failure) ring_.fail(std::move(failure));  // the caller is told
  }

  void write_all() {
    std::uint64_t offset = 0;
    while (Buffer* const buffer = ring_.wait_for_filled()) {
      file_.write_at(offset, {buffer->bytes.data(), buffer->size});
      offset += buffer->size;
      ring_.emptied();
    }
  }

  const std::uint64_t num_bytes_;
  DirectFile file_;
  std::uint64_t num_taken_ = 0;  // the caller's, as all up to ring_
  Buffer* current_ = nullptr;
  std::size_t room_bytes_ = 0;
  bool is_room_apart_ = false;
  AlignedBuffer apart_;
  Ring<Buffer, 3> ring_;
  std::thread thread_;  // last: everything above exists before it starts
};

StreamWriter::StreamWriter(std::string path, std::uint64_t num_bytes)
    : thread_(std::make_unique<Thread>(std::move(path), num_bytes)) {}

StreamWriter::~StreamWriter() = default;

void StreamWriter::write(const void* bytes, std::size_t size) {
  thread_->write(static_cast<const std::byte*>(bytes), size);
}

std::byte* StreamWriter::room(std::size_t size) { return thread_->room(size); }

void StreamWriter::append() { thread_->append(); }

void StreamWriter::finish() { thread_->finish(); }

}  // namespace weft
