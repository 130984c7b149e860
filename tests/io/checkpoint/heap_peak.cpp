// See the header. glibc lets a program define these functions (its manual, "Replacing malloc"), and
// has its own under other names. What C++ and Kokkos allocate comes through them.
#include "tests/io/checkpoint/heap_peak.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace weft::test {

namespace {

std::atomic<bool> is_watched{false};
std::atomic<std::ptrdiff_t> bytes_now{0}, most_bytes{0}, largest{0};

void raise(std::atomic<std::ptrdiff_t>& most, std::ptrdiff_t value) {
  std::ptrdiff_t before = most;
  while (before < value && !most.compare_exchange_weak(before, value)) {
  }
}

void* taken(void* memory) {
  if (!memory || !is_watched) return memory;
  const auto size = static_cast<std::ptrdiff_t>(::malloc_usable_size(memory));
  raise(most_bytes, bytes_now += size);
  raise(largest, size);
  return memory;
}

void given_back(void* memory) {
  if (memory && is_watched) bytes_now -= static_cast<std::ptrdiff_t>(::malloc_usable_size(memory));
}

}  // namespace

HeapPeak::HeapPeak() {
  bytes_now = most_bytes = largest = 0;
  is_watched = true;
}
HeapPeak::~HeapPeak() { is_watched = false; }
std::size_t HeapPeak::peak_bytes() const { return static_cast<std::size_t>(most_bytes.load()); }
std::ptrdiff_t HeapPeak::bytes_in_use() const { return bytes_now; }
std::size_t HeapPeak::largest_bytes() const { return static_cast<std::size_t>(largest.load()); }

}  // namespace weft::test

using weft::test::given_back;
using weft::test::taken;

extern "C" {

void* malloc(std::size_t size) noexcept { return taken(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) noexcept {
  return taken(__libc_calloc(count, size));
}
void* realloc(void* memory, std::size_t size) noexcept {
  given_back(memory);
  return taken(__libc_realloc(memory, size));
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return taken(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return taken(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  void* const made = taken(__libc_memalign(alignment, size));
  if (!made) return ENOMEM;
  *memory = made;
  return 0;
}
void free(void* memory) noexcept {
  given_back(memory);
  __libc_free(memory);
}

}  // extern "C"
