// Processes, found by their parents in /proc; see the header.
#include "apps/drill_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/drill_point.hpp"
#include "core/error.hpp"

namespace weft {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> was_interrupted{false};

void note_interrupt(int /*signal*/) { was_interrupted = true; }

struct ProcessState {
  pid_t parent = 0;
  char state = '?';  // 'T': stopped; 'Z': ended, its parent does not know yet
};

// "PID (NAME) STATE PARENT ..."; a name may hold anything.
std::optional<ProcessState> state_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  if (!std::getline(file, line) || line.rfind(')') == std::string::npos) return std::nullopt;
  ProcessState found;
  if (std::sscanf(line.c_str() + line.rfind(')') + 1, " %c %d", &found.state, &found.parent) != 2)
    return std::nullopt;
  return found;
}

// All processes that this one has started, and those that they have.
std::map<pid_t, ProcessState> descendants() {
  std::map<pid_t, ProcessState> all, mine;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const pid_t pid = std::atoi(at->path().filename().c_str());
    if (pid <= 0) continue;
    if (const auto state = state_of(at->path())) all[pid] = *state;
  }
  for (bool grew = true; std::exchange(grew, false);) {
    for (const auto& [pid, process] : all) {
      const bool is_mine = process.parent == getpid() || mine.contains(process.parent);
      if (is_mine && mine.emplace(pid, process).second) grew = true;
    }
  }
  return mine;
}

bool runs_this_program(pid_t pid) {
  std::error_code error;
  const fs::path theirs = fs::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  return !error && theirs == fs::read_symlink("/proc/self/exe", error);
}

// Ends what is left, those too that are born meanwhile; a killed one is gone once waited for.
void kill_descendants() {
  for (const auto begin = Clock::now(); Clock::now() - begin < 20s;) {
    for (const auto& [pid, process] : descendants()) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(-1, &status, WNOHANG) > 0) {
    }
    if (descendants().empty()) return;
    std::this_thread::sleep_for(10ms);
  }
}

// A launcher that has ranks on other machines ends them only where it is asked to.
void ask_to_end(pid_t launcher) {
  ::kill(launcher, SIGTERM);
  const auto begin = Clock::now();
  while (Clock::now() - begin < 3s && ::waitpid(launcher, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(10ms);
}

// Ranks on this machine that still work, and those that are stopped.
void kill_if_only_stopped_are_left() {
  std::vector<pid_t> stopped;
  for (const auto& [pid, process] : descendants()) {
    if (process.state == 'Z' || !runs_this_program(pid)) continue;
    if (process.state != 'T') return;
    stopped.push_back(pid);
  }
  for (const pid_t pid : stopped) ::kill(pid, SIGKILL);
}

[[noreturn]] void become(const DrillJob& job) {
  ::setpgid(0, 0);                     // the terminal's Ctrl-C is the drill's alone
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // if the drill itself is killed
  const int nothing = ::open("/dev/null", O_RDONLY);
  const int output = ::open(job.output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
  if (nothing < 0 || output < 0) _exit(127);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (job.order.empty()) {
    ::unsetenv(drill::order_variable);
  } else {
    ::setenv(drill::order_variable, job.order.c_str(), 1);
  }
  // The launcher's words are the user's, for the shell; ours pass by it unread.
  const std::string command = "exec " + job.launcher + " \"$@\"";
  std::vector<const char*> words = {"sh", "-c", command.c_str(), "sh"};
  for (const std::string& argument : job.arguments) words.push_back(argument.c_str());
  words.push_back(nullptr);
  ::execv("/bin/sh", const_cast<char* const*>(words.data()));
  _exit(127);
}

}  // namespace

DrillSignals::DrillSignals() {
  was_interrupted = false;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

bool DrillSignals::is_interrupted() { return was_interrupted; }

DrillEnd run_to_its_end(const DrillJob& job) {
  const auto begin = Clock::now();
  const pid_t launcher = ::fork();
  require(launcher >= 0, ExitCode::failed,
          fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (launcher == 0) become(job);
  DrillEnd end;
  for (int round = 1;; ++round) {
    int status = 0;
    const bool has_ended = ::waitpid(launcher, &status, WNOHANG) == launcher;
    end.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (has_ended) {
      end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    const bool is_late = job.deadline_s > 0.0 && end.seconds > job.deadline_s;
    const bool looks_now = round % 10 == 0;
    end.is_interrupted = was_interrupted;
    end.is_hang =
        !end.is_interrupted && (is_late || (looks_now && job.watch && !job.watch(end.seconds)));
    if (end.is_hang || end.is_interrupted) break;
    if (job.stops_a_rank && looks_now) kill_if_only_stopped_are_left();
    std::this_thread::sleep_for(20ms);
  }
  if (end.is_hang || end.is_interrupted) ask_to_end(launcher);
  kill_descendants();
  if (end.is_hang || end.is_interrupted) end.exit_code = 128 + SIGKILL;
  return end;
}

}  // namespace weft
