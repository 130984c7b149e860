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
  Job(int num_ranks, const std::string& program, const std::string& arguments, std::string mark,
      const std::string& before = {});
  ~Job();  // kills what still runs
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Looks for the ranks' processes until all are there; fails the test where they do not come.
  void find_ranks(int num_ranks);
  // The same for ranks that may have ended before: how many were seen in `time`, or until the
  // launcher's end.
  int find_ranks_within(int num_ranks, Clock::duration time);

  bool kill_rank(int rank);  // one that was found; false: it had ended
  bool ended_within(int rank, Clock::duration time) const;
  bool launcher_ended_within(Clock::duration time);

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
  std::map<int, Rank> ranks_;
};

}  // namespace weft::test
