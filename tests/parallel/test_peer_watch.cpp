// Deaths of processes that the test makes and kills itself.
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "parallel/comm/peer_watch.hpp"

namespace weft {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const PeerWatch::Options quick{.grace = 20ms, .patience = 60s};

// A process that does nothing, and its identity.
class Child {
 public:
  Child() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left behind where the test goes down
      const std::string text = ProcessIdentity::mine().text();
      [[maybe_unused]] const auto written = write(ends[1], text.data(), text.size());
      for (;;) pause();
    }
    close(ends[1]);
    char text[512];
    const ssize_t length = read(ends[0], text, sizeof text);
    close(ends[0]);
    if (length <= 0) throw std::runtime_error("the child did not say who it is");
    identity_ = ProcessIdentity::from_text(std::string(text, static_cast<std::size_t>(length)));
  }
  ~Child() { end(); }

  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  const ProcessIdentity& identity() const { return identity_; }

 private:
  pid_t pid_ = -1;
  ProcessIdentity identity_;
};

// While it lives the process can open `num_more` files, as under a low ulimit -n.
class FewDescriptors {
 public:
  explicit FewDescriptors(int num_more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    // New ones get the lowest free numbers.
    std::vector<int> taken;
    for (int i = 0; i <= num_more; ++i) taken.push_back(dup(0));
    for (const int descriptor : taken) close(descriptor);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(taken.back());
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::string death_within(const PeerWatch& watch, std::chrono::milliseconds time) {
  for (const auto begin = Clock::now(); Clock::now() - begin < time;) {
    try {
      watch.require_alive();
    } catch (const Error& error) {
      REQUIRE(error.code() == ExitCode::peer);
      return error.what();
    }
    std::this_thread::sleep_for(1ms);
  }
  return {};
}

}  // namespace

TEST_CASE("an identity survives the way to another rank") {
  const ProcessIdentity mine = ProcessIdentity::mine();
  const ProcessIdentity copy = ProcessIdentity::from_text(mine.text());
  REQUIRE(copy.pid == getpid());
  REQUIRE_FALSE(copy.boot_id.empty());
  REQUIRE_FALSE(copy.start_time.empty());
  REQUIRE(copy.text() == mine.text());
}

TEST_CASE("a process that dies is named, and soon") {
  Child first, second;
  PeerWatch watch(1, {first.identity(), ProcessIdentity::mine(), second.identity()}, quick);
  REQUIRE(watch.is_one_host());
  REQUIRE(death_within(watch, 100ms).empty());
  second.end();
  REQUIRE(death_within(watch, 1s) == watch.name_of(2) + " has died");
  REQUIRE(watch.name_of(2).find("rank 2 (pid " + std::to_string(second.identity().pid) +
                                " on host ") == 0);
  first.end();  // the first one counts
  REQUIRE(death_within(watch, 100ms) == watch.name_of(2) + " has died");
}

TEST_CASE("a process that died before the watch began is named") {
  Child child;
  child.end();
  PeerWatch watch(0, {ProcessIdentity::mine(), child.identity()}, quick);
  REQUIRE(death_within(watch, 1s) == watch.name_of(1) + " has died");
}

TEST_CASE("another process under the same id is not the peer") {
  Child child;
  ProcessIdentity earlier = child.identity();
  earlier.start_time = "17";
  PeerWatch watch(0, {ProcessIdentity::mine(), earlier}, quick);
  REQUIRE(death_within(watch, 1s) == watch.name_of(1) + " has died");
}

// Sanitizers open files of their own and take the want of descriptors for broken objects.
#ifndef WEFT_SANITIZED

// The kernel's handle is not to be had: /proc must do, for a zombie too.
TEST_CASE("without descriptors to spare a death is seen all the same") {
  Child child;
  auto few = std::make_unique<FewDescriptors>(2);
  PeerWatch watch(0, {ProcessIdentity::mine(), child.identity()}, quick);
  REQUIRE(death_within(watch, 300ms).empty());
  few.reset();
  REQUIRE(death_within(watch, 300ms).empty());
  kill(child.identity().pid, SIGKILL);  // nobody has waited for it
  REQUIRE(death_within(watch, 1s) == watch.name_of(1) + " has died");
}

TEST_CASE("a watch that cannot be is an error, not a blind one") {
  Child child;
  const std::vector<ProcessIdentity> processes{ProcessIdentity::mine(), child.identity()};
  std::string message;
  for (const int num_more : {0, 1}) {
    const FewDescriptors few(num_more);
    try {
      PeerWatch(0, processes, quick);
    } catch (const Error& error) {
      message = error.what();
    }
    REQUIRE(message.find("ulimit -n") != std::string::npos);
  }
}

#endif

TEST_CASE("what a connection says gives way to what the kernel says") {
  Child child;
  PeerWatch watch(0, {ProcessIdentity::mine(), child.identity()},
                  {.grace = 200ms, .patience = 60s});
  watch.report_lost(1, "UCX says so");
  REQUIRE_FALSE(watch.has_death_within(20ms));
  child.end();
  REQUIRE(watch.has_death_within(1s));
  REQUIRE(watch.cause() == watch.name_of(1) + " has died");
}

TEST_CASE("one rank a host waits for the others' ends") {
  Child first, second;
  ProcessIdentity far = second.identity();
  far.boot_id = "another";
  PeerWatch last(2, {first.identity(), second.identity(), ProcessIdentity::mine()}, quick);
  PeerWatch middle(1, {first.identity(), ProcessIdentity::mine(), second.identity()}, quick);
  PeerWatch blind(1, {first.identity(), ProcessIdentity::mine(), far}, quick);
  REQUIRE_FALSE(middle.is_first_alive());
  REQUIRE_FALSE(middle.others_end_within(20ms));
  first.end();
  REQUIRE(middle.is_first_alive());
  REQUIRE_FALSE(last.is_first_alive());
  REQUIRE_FALSE(middle.others_end_within(20ms));
  second.end();
  REQUIRE(last.is_first_alive());
  REQUIRE(middle.others_end_within(1s));
  REQUIRE_FALSE(blind.others_end_within(20ms));
}

TEST_CASE("ids of another host or namespace mean nothing here") {
  Child child;
  ProcessIdentity far = child.identity(), hidden = child.identity();
  far.boot_id = "another";
  hidden.pid_namespace = "pid:[1]";
  PeerWatch watch(0, {ProcessIdentity::mine(), far, hidden}, quick);
  REQUIRE_FALSE(watch.is_one_host());
  child.end();
  REQUIRE(death_within(watch, 150ms).empty());
  watch.report_lost(1, "UCX says so");
  REQUIRE(death_within(watch, 1s) == watch.name_of(1) + " is lost: UCX says so");
}

TEST_CASE("an ending after stop is none, and neither is one within the grace") {
  Child child;
  PeerWatch watch(0, {ProcessIdentity::mine(), child.identity()}, {.grace = 10s, .patience = 60s});
  child.end();
  REQUIRE(death_within(watch, 100ms).empty());
  watch.stop();
  watch.stop();
  REQUIRE_FALSE(watch.has_death());
}

// The exit code of a process that watches `peer`, leaves, sees it die, and comes to its end or does
// not.
int exit_code_of_leaver(Child& peer, bool comes_to_its_end) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t leaver = fork();
  if (leaver == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    PeerWatch watch(0, {ProcessIdentity::mine(), peer.identity()},
                    {.grace = 20ms, .patience = 60s, .leaving_patience = 500ms});
    watch.leave();
    if (write(ready[1], "x", 1) != 1) _exit(99);
    std::this_thread::sleep_for(comes_to_its_end ? 200ms : 20000ms);
    if (watch.has_death()) _exit(98);
    watch.stop();
    _exit(0);
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  peer.end();
  int status = 0;
  REQUIRE(waitpid(leaver, &status, 0) == leaver);
  close(ready[0]);
  close(ready[1]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("who leaves need not mind an ending, but must follow it") {
  Child first, second;
  CHECK(exit_code_of_leaver(first, true) == 0);
  const auto begin = Clock::now();
  CHECK(exit_code_of_leaver(second, false) == static_cast<int>(ExitCode::peer));
  CHECK(Clock::now() - begin < 10s);
}

TEST_CASE("one message a process") {
  PeerWatch watch(0, {ProcessIdentity::mine()});
  REQUIRE(watch.take_last_word());
  REQUIRE_FALSE(watch.take_last_word());
}

}  // namespace weft
