// See the header. The calls go straight to the kernel, so that no other definition is asked.
#include "tests/io/system_calls.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace weft::test {

namespace {

std::atomic<bool> is_armed{false};
Call call_of_fault{};
int reason_of_fault = 0, first_call = 0, end_call = 0;
std::atomic<int> num_calls_so_far{0};

std::atomic<bool> is_held{false};
std::atomic<Call> held_call{};

// 0: as always; else what SystemFault::reason says. Changes of the disk count for Call::any.
int fault_of(Call call) {
  if (held_call == call) is_held.wait(true);
  if (!is_armed) return 0;
  const bool changes_disk =
      call != Call::pread && call != Call::fcntl && call != Call::close && call != Call::flock;
  if (call_of_fault != call && !(call_of_fault == Call::any && changes_disk)) return 0;
  const int number = num_calls_so_far++;
  if (number < first_call || number >= end_call) return 0;
  if (reason_of_fault == SystemFault::die) ::_exit(SystemFault::exit_status);
  if (reason_of_fault == SystemFault::half_then_eio)
    return number == first_call ? SystemFault::half : EIO;
  return reason_of_fault;
}

template <typename... Arguments>
long pass_on(Call call, long number, Arguments... arguments) {
  const int fault = fault_of(call);
  if (fault > 0) {
    errno = fault;
    return -1;
  }
  return ::syscall(number, arguments...);
}

std::size_t cut(int fault, std::size_t size) {
  return fault == SystemFault::half && size > 1 ? size / 2 : size;
}

}  // namespace

SystemFault::SystemFault(Call call, int reason, int first, int count) {
  call_of_fault = call;
  reason_of_fault = reason;
  first_call = first;
  end_call = first + count;
  num_calls_so_far = 0;
  is_armed = true;
}

SystemFault::~SystemFault() { is_armed = false; }

int SystemFault::num_calls() const { return num_calls_so_far; }

SystemHold::SystemHold(Call call) {
  held_call = call;
  is_held = true;
}

void SystemHold::release() {
  is_held = false;
  is_held.notify_all();
}

}  // namespace weft::test

using weft::test::Call;
using weft::test::pass_on;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return static_cast<int>(pass_on(Call::open, SYS_openat, AT_FDCWD, path, flags, mode));
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  const long argument = va_arg(more, long);
  va_end(more);
  return static_cast<int>(pass_on(Call::fcntl, SYS_fcntl, fd, command, argument));
}

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t offset) {
  const int fault = weft::test::fault_of(Call::pwrite);
  if (fault > 0) {
    errno = fault;
    return -1;
  }
  return ::syscall(SYS_pwrite64, fd, bytes, weft::test::cut(fault, size), offset);
}

ssize_t pread(int fd, void* bytes, std::size_t size, off_t offset) {
  const int fault = weft::test::fault_of(Call::pread);
  if (fault > 0) {
    errno = fault;
    return -1;
  }
  return ::syscall(SYS_pread64, fd, bytes, weft::test::cut(fault, size), offset);
}

int fsync(int fd) { return static_cast<int>(pass_on(Call::fsync, SYS_fsync, fd)); }

int close(int fd) {
  const int fault = weft::test::fault_of(Call::close);
  const auto status = static_cast<int>(::syscall(SYS_close, fd));
  if (fault <= 0) return status;
  errno = fault;  // as the system does it: closed all the same
  return -1;
}

int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(pass_on(Call::mkdir, SYS_mkdir, path, mode));
}

int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(pass_on(Call::rename, SYS_rename, from, to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return static_cast<int>(
      pass_on(Call::rename, SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int link(const char* from, const char* to) noexcept {
  return static_cast<int>(pass_on(Call::link, SYS_link, from, to));
}

int unlink(const char* path) noexcept {
  return static_cast<int>(pass_on(Call::unlink, SYS_unlink, path));
}

int rmdir(const char* path) noexcept {
  return static_cast<int>(pass_on(Call::rmdir, SYS_rmdir, path));
}

int flock(int fd, int operation) noexcept {
  return static_cast<int>(pass_on(Call::flock, SYS_flock, fd, operation));
}

}  // extern "C"
