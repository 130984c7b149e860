// Preloaded into a process, this library counts what it does to files below one folder and, at one
// of these operations, kills it, makes the operation fail or copies the disk: the tests' stand-in
// for a crash, a full or failing disk and a power cut at a chosen moment. README.md has the
// environment variables.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fault/disk_image.hpp"

namespace {

using weft::test::DiskImages;

enum class Deed {
  none,
  ask_to_stop,
  kill_before,
  kill_half,
  kill_after,
  fail,
  cut_short,
  slow,
  snapshot
};

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

std::string link_target(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = readlink(link.c_str(), target, sizeof(target));
  return size < 0 ? std::string() : std::string(target, static_cast<std::size_t>(size));
}

// What the environment asks for, read at the first operation.
struct Orders {
  bool is_program = false;  // not the launcher, nor a shell between it and the program
  std::string folder;
  std::string rank;
  std::string log;
  std::string said;      // a file that gets what the program says
  std::string unsynced;  // files, folders or all: what is never synced, though it is said to be
  Deed deed = Deed::none;
  int error = 0;  // of Deed::fail
  bool from_then_on = false;
  long at = -1;

  Orders()
      : folder(variable("WEFT_FAULT_FOLDER")),
        rank(variable("OMPI_COMM_WORLD_RANK", "0")),
        log(variable("WEFT_FAULT_LOG")),
        said(variable("WEFT_FAULT_SAID")),
        unsynced(variable("WEFT_FAULT_NO_SYNC")) {
    const std::string end = "/" + variable("WEFT_FAULT_PROGRAM", "weft");
    const std::string program = link_target("/proc/self/exe");
    is_program = program.ends_with(end);
    const std::string whose = variable("WEFT_FAULT_RANK", "0");
    if (whose == rank || whose == "all") read_deed(variable("WEFT_FAULT_DO", "record"));
  }

  void read_deed(std::string word) {
    at = std::atol(variable("WEFT_FAULT_AT", "-1").c_str());
    if (word.ends_with("-on")) {
      from_then_on = true;
      word.resize(word.size() - 3);
    }
    const struct {
      const char* word;
      Deed deed;
      int error;
    } known[] = {{"record", Deed::none, 0},         {"kill-before", Deed::kill_before, 0},
                 {"kill-half", Deed::kill_half, 0}, {"kill-after", Deed::kill_after, 0},
                 {"short", Deed::cut_short, 0},     {"enospc", Deed::fail, ENOSPC},
                 {"edquot", Deed::fail, EDQUOT},    {"eio", Deed::fail, EIO},
                 {"term", Deed::ask_to_stop, 0},    {"slow", Deed::slow, 0},
                 {"snapshot", Deed::snapshot, 0}};
    for (const auto& one : known) {
      if (word != one.word) continue;
      deed = one.deed;
      error = one.error;
      return;
    }
    dprintf(STDERR_FILENO, "file_faults: WEFT_FAULT_DO=%s is unknown\n", word.c_str());
    _exit(99);
  }

  bool concerns(const std::string& path) const {
    if (!is_program || folder.empty() || !path.starts_with(folder)) return false;
    return path.size() == folder.size() || path[folder.size()] == '/';
  }
  bool is_now(long index) const { return from_then_on ? index >= at : index == at; }
};

std::atomic<long> num_operations{0};

const Orders& orders() {
  static const Orders orders;
  return orders;
}

[[noreturn]] void die() {
  for (;;) syscall(SYS_kill, getpid(), SIGKILL);
}

// A line "rank index operation bytes outcome path", whole also among several writers.
void note(long index, const char* name, std::size_t bytes, const std::string& outcome,
          const std::string& path) {
  if (orders().log.empty()) return;
  const std::string line = orders().rank + " " + std::to_string(index) + " " + name + " " +
                           std::to_string(bytes) + " " + outcome + " " + path + "\n";
  const long fd = syscall(SYS_openat, AT_FDCWD, orders().log.c_str(),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || syscall(SYS_write, fd, line.data(), line.size()) < 0) die();
  syscall(SYS_close, fd);
}

// A line more: the operation as "cut-before" or "cut-after", for the bytes how many the program had
// said, the image as the path.
void take_image(const DiskImages& images, const DiskImages::Turn& turn, long index,
                const char* when, const char* operation) {
  struct stat status;
  const std::size_t said = stat(orders().said.c_str(), &status) == 0 ? status.st_size : 0;
  const auto image = images.take(turn);
  if (!image) {
    dprintf(STDERR_FILENO, "file_faults: the disk cannot be copied\n");
    die();
  }
  note(index, when, said, operation, image->path);
}

std::string path_of(int fd) { return link_target("/proc/self/fd/" + std::to_string(fd)); }

std::string path_at(int folder, const char* path) {
  if (path[0] == '/') return path;
  return (folder == AT_FDCWD ? link_target("/proc/self/cwd") : path_of(folder)) + "/" + path;
}

// Half of a write, such that a file opened with O_DIRECT takes it.
std::size_t half_of(int fd, std::size_t bytes) {
  const std::size_t half = bytes / 2;
  return (fcntl(fd, F_GETFL) & O_DIRECT) != 0 ? half / 4096 * 4096 : half;
}

struct Operation {
  const char* name;
  std::string path;
  bool takes_space = true;  // a full disk lets files be deleted
  // Of a write: the file and the bytes that are asked for.
  int fd = -1;
  std::size_t bytes = 0;
};

// Does the operation by `act(bytes)`, or what the orders say. `refuse()`: what must be done though
// it fails.
template <typename Act, typename Refuse>
auto carry_out(const Operation& operation, Act act, Refuse refuse) -> decltype(act(std::size_t{})) {
  if (!orders().concerns(operation.path)) return act(operation.bytes);
  const long index = num_operations.fetch_add(1);
  const auto tell = [&](const std::string& outcome) {
    const int kept = errno;
    note(index, operation.name, operation.bytes, outcome, operation.path);
    errno = kept;
  };
  const std::size_t half = operation.fd >= 0 ? half_of(operation.fd, operation.bytes) : 0;
  const bool is_full = orders().error == ENOSPC || orders().error == EDQUOT;
  switch (orders().is_now(index) ? orders().deed : Deed::none) {
    case Deed::ask_to_stop:
      syscall(SYS_kill, getpid(), SIGTERM);
      break;
    case Deed::slow:
      usleep(50'000);
      break;
    case Deed::kill_before:
      tell("killed-before");
      die();
    case Deed::kill_half:
      if (half > 0) act(half);
      tell("killed-half");
      die();
    case Deed::kill_after:
      act(operation.bytes);
      tell("killed-after");
      die();
    case Deed::fail:
      if (is_full && !operation.takes_space) break;
      refuse();
      tell("failed");
      errno = orders().error;
      return -1;
    case Deed::cut_short:
      if (half == 0) break;
      tell("short");
      return act(half);
    case Deed::snapshot: {
      // No other operation goes on meanwhile, of no rank.
      static const DiskImages images;
      const DiskImages::Turn turn(images);
      take_image(images, turn, index, "cut-before", operation.name);
      const auto result = act(operation.bytes);
      const int kept = errno;
      take_image(images, turn, index, "cut-after", operation.name);
      errno = kept;
      tell(result < 0 ? "refused" : "ok");
      return result;
    }
    case Deed::none:
      break;
  }
  const auto result = act(operation.bytes);
  tell(result < 0 ? "refused" : "ok");
  return result;
}

template <typename Act>
auto carry_out(const Operation& operation, Act act) {
  return carry_out(operation, act, [] {});
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using OpenAt = int(int, const char*, int, ...);

int open_at(const char* name, int folder, const char* path, int flags, va_list rest) {
  const bool creates = (flags & O_CREAT) != 0;
  const mode_t mode = creates || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
  static OpenAt* const real = next<OpenAt>("openat");
  if (!creates) return real(folder, path, flags, mode);
  return carry_out({name, path_at(folder, path)},
                   [&](std::size_t) { return real(folder, path, flags, mode); });
}

// The first `bytes` bytes of a list of buffers.
std::vector<iovec> front_of(const iovec* buffers, int count, std::size_t bytes) {
  std::vector<iovec> front;
  for (int i = 0; i < count && bytes > 0; ++i) {
    front.push_back({buffers[i].iov_base, std::min(bytes, buffers[i].iov_len)});
    bytes -= front.back().iov_len;
  }
  return front;
}

std::size_t size_of(const iovec* buffers, int count) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += buffers[i].iov_len;
  return bytes;
}

// A sync that is not done.
bool is_left_out(int fd) {
  const std::string& which = orders().unsynced;
  struct stat status;
  if (which.empty() || !orders().concerns(path_of(fd)) || fstat(fd, &status) != 0) return false;
  return which == "all" || which == (S_ISDIR(status.st_mode) ? "folders" : "files");
}

}  // namespace

// What stands below replaces the system's functions of the same names.
extern "C" {

#define WEFT_OPEN(NAME, PARAMETERS, FOLDER)                    \
  int NAME PARAMETERS {                                        \
    va_list rest;                                              \
    va_start(rest, flags);                                     \
    const int fd = open_at("open", FOLDER, path, flags, rest); \
    va_end(rest);                                              \
    return fd;                                                 \
  }
WEFT_OPEN(open, (const char* path, int flags, ...), AT_FDCWD)
WEFT_OPEN(open64, (const char* path, int flags, ...), AT_FDCWD)
WEFT_OPEN(openat, (int folder, const char* path, int flags, ...), folder)
WEFT_OPEN(openat64, (int folder, const char* path, int flags, ...), folder)

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  return carry_out({"write", path_of(fd), true, fd, size},
                   [&](std::size_t n) { return real(fd, bytes, n); });
}

#define WEFT_PWRITE(NAME)                                                               \
  ssize_t NAME(int fd, const void* bytes, size_t size, off_t offset) {                  \
    static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite"); \
    return carry_out({"pwrite", path_of(fd), true, fd, size},                           \
                     [&](std::size_t n) { return real(fd, bytes, n, offset); });        \
  }
WEFT_PWRITE(pwrite)
WEFT_PWRITE(pwrite64)

ssize_t writev(int fd, const iovec* buffers, int count) {
  static auto* const real = next<ssize_t(int, const iovec*, int)>("writev");
  return carry_out({"writev", path_of(fd), true, fd, size_of(buffers, count)}, [&](std::size_t n) {
    const std::vector<iovec> front = front_of(buffers, count, n);
    return real(fd, front.data(), static_cast<int>(front.size()));
  });
}

#define WEFT_PWRITEV(NAME)                                                                    \
  ssize_t NAME(int fd, const iovec* buffers, int count, off_t offset) {                       \
    static auto* const real = next<ssize_t(int, const iovec*, int, off_t)>("pwritev");        \
    return carry_out({"pwritev", path_of(fd), true, fd, size_of(buffers, count)},             \
                     [&](std::size_t n) {                                                     \
                       const std::vector<iovec> front = front_of(buffers, count, n);          \
                       return real(fd, front.data(), static_cast<int>(front.size()), offset); \
                     });                                                                      \
  }
WEFT_PWRITEV(pwritev)
WEFT_PWRITEV(pwritev64)

#define WEFT_FTRUNCATE(NAME)                                                                   \
  int NAME(int fd, off_t size) noexcept {                                                      \
    static auto* const real = next<int(int, off_t)>("ftruncate");                              \
    return carry_out({"ftruncate", path_of(fd)}, [&](std::size_t) { return real(fd, size); }); \
  }
WEFT_FTRUNCATE(ftruncate)
WEFT_FTRUNCATE(ftruncate64)

#define WEFT_FALLOCATE(NAME)                                                     \
  int NAME(int fd, int mode, off_t offset, off_t size) {                         \
    static auto* const real = next<int(int, int, off_t, off_t)>("fallocate");    \
    return carry_out({"fallocate", path_of(fd)},                                 \
                     [&](std::size_t) { return real(fd, mode, offset, size); }); \
  }
WEFT_FALLOCATE(fallocate)
WEFT_FALLOCATE(fallocate64)

// This one returns the error.
#define WEFT_POSIX_FALLOCATE(NAME)                                                  \
  int NAME(int fd, off_t offset, off_t size) {                                      \
    static auto* const real = next<int(int, off_t, off_t)>("posix_fallocate");      \
    const int kept = errno;                                                         \
    const int done = carry_out({"posix_fallocate", path_of(fd)}, [&](std::size_t) { \
      errno = real(fd, offset, size);                                               \
      return errno == 0 ? 0 : -1;                                                   \
    });                                                                             \
    const int error = done == 0 ? 0 : errno;                                        \
    errno = kept;                                                                   \
    return error;                                                                   \
  }
WEFT_POSIX_FALLOCATE(posix_fallocate)
WEFT_POSIX_FALLOCATE(posix_fallocate64)

#define WEFT_FSYNC(NAME)                                                           \
  int NAME(int fd) {                                                               \
    static auto* const real = next<int(int)>(#NAME);                               \
    return carry_out({#NAME, path_of(fd)},                                         \
                     [&](std::size_t) { return is_left_out(fd) ? 0 : real(fd); }); \
  }
WEFT_FSYNC(fsync)
WEFT_FSYNC(fdatasync)

// Of files opened for writing. One that fails has closed the file all the same.
int close(int fd) {
  static auto* const real = next<int(int)>("close");
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return real(fd);
  return carry_out(
      {"close", path_of(fd)}, [&](std::size_t) { return real(fd); }, [&] { real(fd); });
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  static auto* const real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const std::string source = path_at(from_folder, from), target = path_at(to_folder, to);
  const auto act = [&](std::size_t) { return real(from_folder, from, to_folder, to, flags); };
  if (!orders().concerns(source) && !orders().concerns(target)) return act(0);
  return carry_out({"rename", source + " -> " + target}, act);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return renameat2(from_folder, from, to_folder, to, 0);
}
int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(int, const char*, mode_t)>("mkdirat");
  return carry_out({"mkdir", path_at(folder, path)},
                   [&](std::size_t) { return real(folder, path, mode); });
}
int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  return carry_out({(flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", path_at(folder, path), false},
                   [&](std::size_t) { return real(folder, path, flags); });
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  struct stat status;
  const bool is_folder = lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
  return unlinkat(AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0);
}

}  // extern "C"
