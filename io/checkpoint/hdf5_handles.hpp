// The library's handles and statuses as C++ has them: for the files that implement hdf5_file.hpp,
// and for no other.
#pragma once

#include <fmt/format.h>
#include <hdf5.h>

#include <cassert>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "io/checkpoint/hdf5_file.hpp"

namespace weft::hdf5 {

// What to say, and with which exit code, where a call fails.
struct Place {
  ExitCode code;
  std::string text;
};

inline herr_t keep_innermost(unsigned, const H5E_error2_t* entry, void* text) {
  if (entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

[[noreturn]] inline void fail(const Place& place) {
  // The last entry of this direction is the call nearest to the fault.
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Error(place.code, fmt::format("{}: HDF5 {} says '{}'", place.text, library_version(),
                                      reason.empty() ? "nothing more" : reason));
}

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

// The library's own handler at exit crashes after failed writes, and its printed stacks are no
// message for a user.
inline void start_library() {
  static const bool started = [] {
    const Place place{ExitCode::failed, "cannot start HDF5"};
    check(H5dont_atexit(), place);
    check(H5open(), place);
    return true;
  }();
  assert(started);
  (void)started;
  // In every call: a library that knows threads keeps this for each of them.
  check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), {ExitCode::failed, "cannot start HDF5"});
}

// For files in memory: the other drivers look for the file that a path in /proc links to.
inline Id file_access(H5F_close_degree_t close_degree, const Place& place) {
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, place);
  check(H5Pset_fapl_stdio(access), place);
  check(H5Pset_fclose_degree(access, close_degree), place);
  return access;
}

}  // namespace weft::hdf5
