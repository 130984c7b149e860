// The library's handles and statuses as C++ has them: for the files that implement hdf5_file.hpp,
// and for no other.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace weft::hdf5 {

// What to say, and with which exit code, where a call fails.
struct Place {
  ExitCode code;
  std::string text;
};

// With the library's own reason, of the call nearest to the fault.
[[noreturn]] void fail(const Place& place);

// Every status of the library goes through here.
template <class Status>
Status check(Status status, const Place& place) {
  if (status < 0) [[unlikely]]
    fail(place);
  return status;
}

// Owns one of the library's handles.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id(hid_t id, Close closer, const Place& place) : id_(check(id, place)), close_(closer) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  // Some faults are told only when a handle is closed.
  void close(const Place& place) { check(close_(std::exchange(id_, -1)), place); }

 private:
  hid_t id_;
  Close close_;
};

// The library is one thread's at a time, whether this build of it knows threads or not: rank
// threads and writer threads take turns. Held by every function of hdf5_file.hpp; not recursive.
class Turn {
 public:
  Turn();

 private:
  std::lock_guard<std::mutex> lock_;
};

// In every call, first.
void start_library();

// For files in memory.
Id file_access(H5F_close_degree_t close_degree, const Place& place);

}  // namespace weft::hdf5
