// A rank that dies ends all others within 5 s, each with exit code 4 and a message that names the
// dead one, under a launcher that does not kill the survivors (job.hpp).
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/job.hpp"
#include "tests/weft_process.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using weft::test::Job;
using Clock = Job::Clock;

std::string data() {
  const std::string folder = weft::test::test_folder() + "/small-cifar10";
  if (!fs::exists(folder + "/test_batch.bin")) {
    REQUIRE(weft::test::run_weft("data make cifar10 " + folder + " --rows 200").exit_code == 0);
  }
  return folder;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// All but the victim end in time, say who died, and exit with 4.
void require_end_of_survivors(Job& job, int num_ranks, int victim, Clock::time_point killed) {
  for (int rank = 0; rank < num_ranks; ++rank) {
    INFO("rank " << rank << " of " << num_ranks << ", victim " << victim);
    CHECK(job.ended_within(rank, killed + 5s - Clock::now()));
  }
  CHECK(job.launcher_ended_within(10s));
  const std::string text = job.output();
  INFO(text);
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (rank == victim) continue;
    const std::string me = "rank " + std::to_string(rank);
    INFO(me);
    CHECK(contains(text, me + " exits with 4"));
    const auto line = text.find(me + " ends the run: ");
    REQUIRE(line != std::string::npos);
    const std::string message = text.substr(line, text.find('\n', line) - line);
    CHECK(contains(message, "rank " + std::to_string(victim) + " (pid " +
                                std::to_string(job.pid(victim)) + " on host "));
    CHECK(contains(message, "has died"));
  }
}

const std::string small_plan = "cifar10-mlp.toml --set layout.tp=2 --set layout.dp=2";

std::string training(const std::string& plan, const std::string& transport,
                     const std::string& run) {
  return "train " WEFT_PLANS "/" + plan + " --data " + data() +
         " --set comm.transport=" + transport + " --run " + run +
         " --set \"task.split={train=900,validation=100,seed=7}\" --set run.steps=1000000";
}

void kill_once_there_is(const std::string& file, const std::string& transport, int victim,
                        const std::string& plan = small_plan) {
  const std::string run = weft::test::fresh_folder("dead-rank") + "/run";
  Job job(4, WEFT_PROGRAM, training(plan, transport, run), run);
  job.find_ranks(4);
  for (const auto begin = Clock::now();
       !fs::exists(run + "/" + file) || fs::file_size(run + "/" + file) == 0;) {
    if (Clock::now() - begin > 60s) FAIL("the run does not start: " << job.output());
    std::this_thread::sleep_for(1ms);
  }
  REQUIRE(job.kill_rank(victim));
  require_end_of_survivors(job, 4, victim, Clock::now());
}

const std::vector<std::string> transports = {
#ifdef WEFT_WITH_UCX
    "ucx",
#endif
    "mpi"};

}  // namespace

TEST_CASE("a rank killed while training") {
  for (const std::string& transport : transports) {
    for (const int victim : {3, 0}) {
      INFO(transport);
      kill_once_there_is("run.jsonl", transport, victim);
    }
  }
}

// A stage that waits for another's activations, of whom either may be the dead.
TEST_CASE("a rank of a pipeline killed while training") {
  for (const int victim : {1, 2}) {
    kill_once_there_is("run.jsonl", transports.front(), victim,
                       "cifar10-vit-12.toml --set layout.tp=2 --set layout.pp=2");
  }
}

TEST_CASE("a rank killed while the run starts") {
  for (const std::string& transport : transports) {
    INFO(transport);
    kill_once_there_is("plan.toml", transport, 2);
  }
}

TEST_CASE("a rank killed while a layout of fewer ranks runs: one of it, and one that waits") {
  for (const int victim : {1, 3}) {
    const std::string mark = weft::test::fresh_folder("dead-rank") + "/layouts";
    Job job(4, WEFT_PROGRAM,
            "layouts " WEFT_PLANS "/cifar10-mlp.toml --grid tp=2 --steps 1000000 --data " + data() +
                " --set \"task.split={train=900,validation=100,seed=7}\" --set task.path=" + mark,
            mark);
    job.find_ranks(4);
    // The first line of progress.
    for (const auto begin = Clock::now(); !contains(job.output(), ": step ");) {
      if (Clock::now() - begin > 60s) FAIL("the layout does not start: " << job.output());
      std::this_thread::sleep_for(10ms);
    }
    REQUIRE(job.kill_rank(victim));
    require_end_of_survivors(job, 4, victim, Clock::now());
  }
}

void kill_once_it_says(Job& job, int num_ranks, const std::string& text, int victim) {
  job.find_ranks(num_ranks);
  while (!contains(job.output(), text)) REQUIRE_FALSE(job.ended_within(0, 10ms));
  REQUIRE(job.kill_rank(victim));
}

#ifdef WEFT_WITH_UCX
// Here the connection breaks, and the message under way with it, before the watch tells of it.
TEST_CASE("a rank killed among messages over TCP") {
  setenv("UCX_TLS", "tcp,self", 1);
  for (const int victim : {0, 2}) {
    const std::string mark = weft::test::fresh_folder("dead-rank") + "/chatty";
    Job job(3, WEFT_RANK_PROGRAM, "ucx chatty " + mark, mark);
    kill_once_it_says(job, 3, "all are chatty", victim);
    require_end_of_survivors(job, 3, victim, Clock::now());
  }
  unsetenv("UCX_TLS");
}
#endif

// As a rank of another host that MPI tells nothing: rank 2 lives among processes of its own.
TEST_CASE("a rank that cannot know of a death is ended by those who do") {
  if (std::system("unshare --pid --fork true 2>/dev/null") != 0) {
    WARN("not tested: no PID namespaces to be had here");
    return;
  }
  for (const std::string what : {"chatty", "busy"}) {
    INFO(what);
    const std::string mark = weft::test::fresh_folder("dead-rank") + "/hidden";
    Job job(3, WEFT_RANK_PROGRAM, "mpi " + what + " " + mark, mark,
            "test $OMPI_COMM_WORLD_RANK = 2 && hide=\"unshare --pid --fork --kill-child\"; $hide ");
    kill_once_it_says(job, 3, "all are " + what, 1);
    const auto killed = Clock::now();
    CHECK(job.ended_within(0, killed + 5s - Clock::now()));
    CHECK(job.ended_within(2, killed + 5s - Clock::now()));
    CHECK(job.launcher_ended_within(10s));
    INFO(job.output());
    CHECK(contains(job.output(), "rank 0 ends the run: "));
    CHECK(contains(job.output(), "rank 1 (pid " + std::to_string(job.pid(1)) + " on host "));
  }
}

// Nothing that the survivors do would notice: only the watch can.
TEST_CASE("a rank killed while the others compute") {
  for (const std::string& transport : transports) {
    INFO(transport);
    const std::string mark = weft::test::fresh_folder("dead-rank") + "/busy";
    Job job(3, WEFT_RANK_PROGRAM, transport + " busy " + mark, mark);
    kill_once_it_says(job, 3, "all are busy", 1);
    require_end_of_survivors(job, 3, 1, Clock::now());
  }
}
