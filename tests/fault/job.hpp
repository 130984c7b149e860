// Ranks of the program under a launcher that leaves survivors alone (mpirun --enable-recovery), for
// tests that kill some of them. Kills only processes that it has recognised as its own run's, by a
// handle that cannot mean another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

namespace weft::test {

class Job {
 public:
  using Clock = std::chrono::steady_clock;

  // `mark` appears in the ranks' arguments and in no other process'. `before`: shell words that
  // the program follows. What the ranks print goes to `mark`.out.
  // `as_it_is`: the launcher deals with ranks as it does for users, and its exit code counts.
  enum class Launcher { leaves_survivors, as_it_is };
  Job(int num_ranks, const std::string& program, const std::string& arguments, std::string mark,
      const std::string& before = {}, Launcher launcher = Launcher::leaves_survivors);
  ~Job();  // kills what still runs
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Looks for the ranks' processes until all are there; fails the test where they do not come.
  void find_ranks(int num_ranks);
  // The same for ranks that may have ended before: how many were seen in `time`, or until the
  // launcher's end.
  int find_ranks_within(int num_ranks, Clock::duration time);

  bool signal_rank(int rank, int number);  // one that was found; false: it had ended
  bool kill_rank(int rank);                // the same with SIGKILL
  void signal_launcher(int number);        // nothing where it has ended
  bool ended_within(int rank, Clock::duration time) const;
  bool launcher_ended_within(Clock::duration time);
  // Once it has ended; 128 + N after signal N.
  int launcher_exit_code() const { return exit_code_; }

  int pid(int rank) const { return ranks_.at(rank).pid; }
  std::string output() const;

 private:
  struct Rank {
    int pid = -1;
    int handle = -1;  // pidfd
  };
  void look_at(const std::filesystem::path& process);
  int rank_of(const std::filesystem::path& process) const;  // -1: not a rank of this job

  std::string program_, mark_, output_;
  pid_t launcher_ = -1;
  int exit_code_ = -1;
  std::map<int, Rank> ranks_;
};

}  // namespace weft::test
