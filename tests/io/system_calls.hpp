// The system calls of a test program, with faults on demand: the k-th call of one kind fails, does
// half of its work, or is the process's last. The program's own definitions of these functions come
// before the C library's; linked in, they change nothing until a fault is armed.
#pragma once

namespace weft::test {

enum class Call {
  open,
  fcntl,
  pwrite,
  pread,
  fsync,
  close,
  mkdir,
  rename,  // with the one that replaces nothing
  link,
  unlink,
  rmdir,
  flock,
  any
};

// While it lives, the calls from number `first` on (0 is the next one), `count` of them, of one
// kind misbehave; of any thread. One at a time.
class SystemFault {
 public:
  static constexpr int half = -1;  // as `reason`: reads or writes the half (at least a byte)
  static constexpr int die = -2;   // ends the process before the call
  static constexpr int half_then_eio = -3;  // the first one the half, those after it EIO

  SystemFault(Call call, int reason, int first = 0, int count = 1);
  ~SystemFault();
  SystemFault(const SystemFault&) = delete;
  SystemFault& operator=(const SystemFault&) = delete;

  int num_calls() const;                  // of its kind so far
  static constexpr int exit_status = 77;  // of a process that died
};

// From its making until release() all calls of one kind wait, of any thread: for what must be done
// before something else goes on. One at a time.
class SystemHold {
 public:
  explicit SystemHold(Call call);
  ~SystemHold() { release(); }
  SystemHold(const SystemHold&) = delete;
  SystemHold& operator=(const SystemHold&) = delete;

  void release();
};

}  // namespace weft::test
