// What the threads of StreamWriter and ExtentReader share with their callers: buffers that go
// round.
#pragma once

#include <sys/mman.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "io/file.hpp"

namespace weft {

inline constexpr std::size_t mib = std::size_t{1} << 20;

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

}  // namespace weft
