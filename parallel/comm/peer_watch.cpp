#include "parallel/comm/peer_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/host_name.hpp"

namespace weft {

namespace {

// While the main thread waits for ends or for the verdict.
constexpr std::chrono::milliseconds poll_interval{5};
// Between looks at /proc for those processes that the kernel gives no handle of.
constexpr std::chrono::milliseconds blind_interval{200};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// From /proc/PID/stat; empty where that cannot be read.
struct ProcessState {
  std::string state, start_time;  // fields 3 and 22
};

// The second field may hold blanks and brackets: count from its end.
ProcessState state_of(int pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const auto end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream fields(line.substr(end_of_name + 1));
  ProcessState process;
  fields >> process.state;
  for (int number = 4; number <= 22; ++number) fields >> process.start_time;
  return process;
}

// As far as /proc tells: one that cannot be read (no descriptor left) is no news, and one that
// nobody has waited for yet (a zombie) has ended.
bool is_gone(const ProcessIdentity& process) {
  if (kill(process.pid, 0) != 0 && errno == ESRCH) return true;
  const ProcessState now = state_of(process.pid);
  if (now.start_time.empty()) return false;
  return now.start_time != process.start_time || now.state == "Z" || now.state == "X";
}

std::string link_target(const char* path) {
  char text[256];
  const ssize_t length = readlink(path, text, sizeof text);
  return length < 0 ? std::string() : std::string(text, static_cast<std::size_t>(length));
}

int make_event() {
  const int descriptor = eventfd(0, EFD_CLOEXEC);
  require(descriptor >= 0, ExitCode::failed,
          std::string("no descriptor for the watch over the other ranks (eventfd: ") +
              std::strerror(errno) + "); raise the limit on open files (ulimit -n)");
  return descriptor;
}

void raise_event(int descriptor) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof one);
}

}  // namespace

ProcessIdentity ProcessIdentity::mine() {
  return {.boot_id = first_line("/proc/sys/kernel/random/boot_id"),
          .pid_namespace = link_target("/proc/self/ns/pid"),
          .host = host_name(),
          .start_time = state_of(getpid()).start_time,
          .pid = getpid()};
}

std::string ProcessIdentity::text() const {
  return boot_id + '\n' + pid_namespace + '\n' + host + '\n' + start_time + '\n' +
         std::to_string(pid);
}

ProcessIdentity ProcessIdentity::from_text(const std::string& text) {
  std::istringstream lines(text);
  ProcessIdentity identity;
  std::string pid;
  for (std::string* line :
       {&identity.boot_id, &identity.pid_namespace, &identity.host, &identity.start_time, &pid})
    std::getline(lines, *line);
  require(!pid.empty(), ExitCode::failed, "a process identity of " + text);
  identity.pid = std::stoi(pid);
  return identity;
}

PeerWatch::Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

PeerWatch::PeerWatch(int rank, std::vector<ProcessIdentity> processes, Options options)
    : rank_(rank),
      processes_(std::move(processes)),
      options_(std::move(options)),
      stop_event_(make_event()),
      report_event_(make_event()) {
  if (processes_.size() == 1) return;
  open_handles();
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Only where ids and start times can be compared; about the others UCX must tell.
void PeerWatch::open_handles() {
  const ProcessIdentity& me = processes_[static_cast<std::size_t>(rank_)];
  for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
    const ProcessIdentity& other = processes_[static_cast<std::size_t>(rank)];
    const bool is_visible = other.boot_id == me.boot_id && !me.pid_namespace.empty() &&
                            other.pid_namespace == me.pid_namespace && !other.start_time.empty();
    if (rank == rank_ || !is_visible) continue;
    Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, other.pid, 0)));
    // After the handle: it holds the process that has the id now.
    const bool has_died = is_gone(other);
    if (has_died) {
      set_cause(rank, {});
      raise_event(report_event_.number());
    }
    handles_.push_back({rank, has_died ? Descriptor() : std::move(process)});
  }
}

bool PeerWatch::has_ended(const Handle& handle) const {
  if (handle.process.number() < 0)
    return is_gone(processes_[static_cast<std::size_t>(handle.rank)]);
  pollfd event{handle.process.number(), POLLIN, 0};
  return poll(&event, 1, 0) == 1;
}

bool PeerWatch::is_first_alive() const {
  return std::none_of(handles_.begin(), handles_.end(), [&](const Handle& handle) {
    return handle.rank < rank_ && !has_ended(handle);
  });
}

bool PeerWatch::others_end_within(std::chrono::milliseconds time) const {
  const bool sees_all = handles_.size() + 1 == processes_.size();
  const auto begin = std::chrono::steady_clock::now();
  do {
    const bool all_ended =
        sees_all && std::all_of(handles_.begin(), handles_.end(),
                                [&](const Handle& handle) { return has_ended(handle); });
    if (all_ended) return true;
    std::this_thread::sleep_for(poll_interval);
  } while (std::chrono::steady_clock::now() - begin < time);
  return false;
}

bool PeerWatch::has_death_within(std::chrono::milliseconds time) const {
  const auto begin = std::chrono::steady_clock::now();
  while (!has_death()) {
    if (std::chrono::steady_clock::now() - begin >= time) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

std::string PeerWatch::name_of(int rank) const {
  const ProcessIdentity& process = processes_[static_cast<std::size_t>(rank)];
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(process.pid) + " on host " +
         process.host + ")";
}

bool PeerWatch::is_one_host() const {
  return std::all_of(processes_.begin(), processes_.end(), [&](const ProcessIdentity& process) {
    return process.boot_id == processes_.front().boot_id && process.host == processes_.front().host;
  });
}

void PeerWatch::report_lost(int rank, const std::string& why) noexcept {
  try {
    set_cause(rank, why);
  } catch (...) {  // out of memory: the process handles and the deadline remain
    return;
  }
  raise_event(report_event_.number());
}

void PeerWatch::stop() noexcept {
  if (!thread_.joinable()) return;
  raise_event(stop_event_.number());
  thread_.join();
}

void PeerWatch::set_cause(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (cause_.rank < 0) cause_ = {rank, why};  // the first one counts
}

// A connection may break before the kernel tells of the process' end.
void PeerWatch::prefer_what_was_seen() {
  const std::lock_guard lock(mutex_);
  for (const Handle& handle : handles_) {
    if (handle.rank == cause_.rank && has_ended(handle)) cause_.why.clear();
  }
}

std::string PeerWatch::cause() const {
  const std::lock_guard lock(mutex_);
  if (cause_.rank < 0) return {};
  return name_of(cause_.rank) + (cause_.why.empty() ? " has died" : " is lost: " + cause_.why);
}

void PeerWatch::fail() const { throw Error(ExitCode::peer, cause()); }

bool PeerWatch::stops_within(std::chrono::milliseconds time) const {
  pollfd event{stop_event_.number(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&event, 1, static_cast<int>(time.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool PeerWatch::wait_for_death() {
  std::vector<pollfd> events{{stop_event_.number(), POLLIN, 0},
                             {report_event_.number(), POLLIN, 0}};
  bool has_blind_handle = false;
  for (const Handle& handle : handles_) {
    events.push_back({handle.process.number(), POLLIN, 0});  // a negative one is passed over
    has_blind_handle = has_blind_handle || handle.process.number() < 0;
  }
  const int interval = has_blind_handle ? static_cast<int>(blind_interval.count()) : -1;
  for (;;) {
    const int num_ready = poll(events.data(), events.size(), interval);
    if (num_ready < 0 && errno != EINTR) return false;
    if (num_ready < 0) continue;
    if (events[0].revents) return false;
    bool is_over = events[1].revents != 0;
    for (const Handle& handle : handles_) {
      if (!has_ended(handle)) continue;
      set_cause(handle.rank, {});
      is_over = true;
    }
    if (is_over) return true;
  }
}

void PeerWatch::run() {
  if (!wait_for_death() || stops_within(options_.grace)) return;
  prefer_what_was_seen();
  const bool is_leaving = is_leaving_.load(std::memory_order_acquire);
  if (!is_leaving) has_death_.store(true, std::memory_order_release);
  const auto patience = is_leaving ? options_.leaving_patience : options_.patience;
  if (stops_within(patience)) return;
  if (take_last_word()) {
    std::fprintf(stderr, "rank %d ends the run: %s; rank %d %s within %g s\n", rank_,
                 cause().c_str(), rank_,
                 is_leaving ? "was leaving, all work being done, and did not come to an end"
                            : "was at work of its own and did not come to a message",
                 std::chrono::duration<double>(patience).count());
    std::fflush(stderr);
  }
  if (options_.last_act) options_.last_act(*this);
  _exit(static_cast<int>(ExitCode::peer));
}

}  // namespace weft
