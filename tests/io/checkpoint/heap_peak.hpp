// How much memory the whole program takes from the heap meanwhile, on all its threads. A test
// program that links this has its malloc watched; not for sanitized builds, which have their own.
#pragma once

#include <cstddef>

namespace weft::test {

// One at a time.
class HeapPeak {
 public:
  HeapPeak();
  ~HeapPeak();
  HeapPeak(const HeapPeak&) = delete;
  HeapPeak& operator=(const HeapPeak&) = delete;

  // The most that was taken and not yet given back since it was made.
  std::size_t peak_bytes() const;
  // What is taken now and was not when it was made.
  std::ptrdiff_t bytes_in_use() const;
  // The largest piece that was taken at once.
  std::size_t largest_bytes() const;
};

}  // namespace weft::test
