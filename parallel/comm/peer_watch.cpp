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
#include <fstream>
#include <sstream>
#include <utility>

#include "core/error.hpp"

namespace weft {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Field 22 of /proc/PID/stat. The second field may hold blanks and brackets: count from its end.
std::string start_time_of(int pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const auto end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream fields(line.substr(end_of_name + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return field;
}

std::string link_target(const char* path) {
  char text[256];
  const ssize_t length = readlink(path, text, sizeof text);
  return length < 0 ? std::string() : std::string(text, static_cast<std::size_t>(length));
}

std::string host_name() {
  char text[256] = {};
  return gethostname(text, sizeof text - 1) == 0 ? text : "?";
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
          .start_time = start_time_of(getpid()),
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
      options_(options),
      stop_event_(eventfd(0, EFD_CLOEXEC)),
      report_event_(eventfd(0, EFD_CLOEXEC)) {
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
    const bool is_gone = process.number() < 0 && errno == ESRCH;
    // After the handle: it holds the process that has the id now.
    if (is_gone || (process.number() >= 0 && start_time_of(other.pid) != other.start_time)) {
      set_cause(name_of(rank) + " has died");
      raise_event(report_event_.number());
    } else if (process.number() >= 0) {
      handles_.push_back({rank, std::move(process)});
    }
  }
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
    set_cause(name_of(rank) + " is lost: " + why);
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

void PeerWatch::set_cause(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  if (cause_.empty()) cause_ = cause;  // the first one counts
}

void PeerWatch::fail() const {
  const std::lock_guard lock(mutex_);
  throw Error(ExitCode::peer, cause_);
}

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
  for (const Handle& handle : handles_) events.push_back({handle.process.number(), POLLIN, 0});
  while (poll(events.data(), events.size(), -1) < 0) {
    if (errno != EINTR) return false;
  }
  if (events[0].revents) return false;
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    if (events[i + 2].revents) set_cause(name_of(handles_[i].rank) + " has died");
  }
  return true;
}

void PeerWatch::run() {
  if (!wait_for_death() || stops_within(options_.grace)) return;
  has_death_.store(true, std::memory_order_release);
  if (stops_within(options_.patience)) return;
  if (take_last_word()) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "rank %d ends the run: %s, while rank %d was not in a collective\n", rank_,
                 cause_.c_str(), rank_);
    std::fflush(stderr);
  }
  _exit(static_cast<int>(ExitCode::peer));
}

}  // namespace weft
