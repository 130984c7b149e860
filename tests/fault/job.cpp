#include "tests/fault/job.hpp"

#include <catch2/catch.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace weft::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Job::Job(int num_ranks, const std::string& program, const std::string& arguments, std::string mark,
         const std::string& before, Launcher launcher)
    : program_(program), mark_(std::move(mark)), output_(mark_ + ".out") {
  const bool recovers = launcher == Launcher::leaves_survivors;
  // The shell in between tells the exit code, which such an mpirun keeps to itself.
  const std::string rank =
      recovers ? "sh -c '" + before + "\"" + program +
                     "\" \"$@\"; echo \"rank $OMPI_COMM_WORLD_RANK exits with $?\" >&2' sh"
               : before + program;
  const std::string command =
      std::string(recovers ? "WEFT_MPIRUN_OPTIONS=--enable-recovery " : "") +
      "exec " WEFT_LAUNCHER " " + std::to_string(num_ranks) + " " + rank + " " + arguments + " >" +
      output_ + " 2>&1";
  launcher_ = fork();
  if (launcher_ == 0) {
    execl("/bin/bash", "bash", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
}

Job::~Job() {
  for (auto& [rank, process] : ranks_) {
    syscall(SYS_pidfd_send_signal, process.handle, SIGKILL, nullptr, 0);
    close(process.handle);
  }
  if (launcher_ > 0 && !launcher_ended_within(20s)) kill(launcher_, SIGKILL);
}

int Job::find_ranks_within(int num_ranks, Clock::duration time) {
  for (const auto begin = Clock::now(); Clock::now() - begin < time;) {
    for (const auto& entry : fs::directory_iterator("/proc")) look_at(entry.path());
    if (static_cast<int>(ranks_.size()) == num_ranks || launcher_ended_within(20ms)) break;
  }
  return static_cast<int>(ranks_.size());
}

void Job::find_ranks(int num_ranks) {
  const int found = find_ranks_within(num_ranks, 30s);
  if (found < num_ranks) FAIL("found " << found << " of " << num_ranks << " ranks; " << output());
}

bool Job::signal_rank(int rank, int number) {
  return syscall(SYS_pidfd_send_signal, ranks_.at(rank).handle, number, nullptr, 0) == 0;
}

bool Job::kill_rank(int rank) { return signal_rank(rank, SIGKILL); }

// It is this process' child, so its number means nobody else until it was waited for.
void Job::signal_launcher(int number) {
  if (launcher_ > 0) kill(launcher_, number);
}

bool Job::ended_within(int rank, Clock::duration time) const {
  pollfd event{ranks_.at(rank).handle, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return poll(&event, 1, static_cast<int>(std::max<long>(0, ms))) == 1;
}

bool Job::launcher_ended_within(Clock::duration time) {
  if (launcher_ < 0) return true;
  for (const auto begin = Clock::now(); Clock::now() - begin < time;) {
    int status = 0;
    if (waitpid(launcher_, &status, WNOHANG) == launcher_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      launcher_ = -1;
      return true;
    }
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

std::string Job::output() const { return read_file(output_); }

void Job::look_at(const fs::path& process) {
  const std::string name = process.filename();
  if (name.find_first_not_of("0123456789") != std::string::npos) return;
  const int pid = std::atoi(name.c_str());
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) return;
  // What is read now is of the process behind the handle, or of none.
  const int rank = rank_of(process);
  if (rank < 0 || ranks_.contains(rank)) {
    close(handle);
  } else {
    ranks_[rank] = {pid, handle};
  }
}

int Job::rank_of(const fs::path& process) const {
  std::error_code error;
  if (fs::read_symlink(process / "exe", error) != program_) return -1;
  if (read_file(process / "cmdline").find(mark_) == std::string::npos) return -1;
  const std::string variable = "OMPI_COMM_WORLD_RANK=";
  const std::string environment = '\0' + read_file(process / "environ");
  const auto at = environment.find('\0' + variable);
  if (at == std::string::npos) return -1;
  return std::atoi(environment.c_str() + at + 1 + variable.size());
}

}  // namespace weft::test
