#include "io/checkpoint/hdf5_handles.hpp"

#include <fmt/format.h>

#include <cassert>

#include "io/checkpoint/hdf5_file.hpp"

namespace weft::hdf5 {

namespace {

herr_t keep_innermost(unsigned, const H5E_error2_t* entry, void* text) {
  if (entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Turn::Turn() : lock_(library_mutex()) {}

void fail(const Place& place) {
  // The last entry of this direction is the nearest.
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Error(place.code, fmt::format("{}: HDF5 {} says '{}'", place.text, library_version(),
                                      reason.empty() ? "nothing more" : reason));
}

// The library's own handler at exit crashes after failed writes, and its printed stacks are no
// message for a user.
void start_library() {
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

// The other drivers look for the file that a path in /proc links to.
Id file_access(H5F_close_degree_t close_degree, const Place& place) {
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, place);
  check(H5Pset_fapl_stdio(access), place);
  check(H5Pset_fclose_degree(access, close_degree), place);
  return access;
}

}  // namespace weft::hdf5
