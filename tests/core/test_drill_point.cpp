// The order that `weft drill` hands to a rank: its text, and that it is carried out once, by the
// rank, at the point and the step that it names, and nowhere else.
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "core/drill_point.hpp"
#include "core/error.hpp"

namespace {

using namespace weft;

// How a process of its own ends that got the order: 1000 + N: by signal N, else its exit code.
int end_of(const std::string& order, int rank, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(drill::order_variable, order.c_str(), 1);
    drill::arm(rank);
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

int train_to_step(index_t last) {
  for (index_t step = 1; step <= last; ++step) {
    drill::reach_step(step);
    drill::reach("forward");
    drill::reach_stage("commit", false);
    drill::reach_stage("commit", true);
  }
  return 7;
}

}  // namespace

TEST_CASE("a drill's order is carried out at its point, from its step on, by its rank") {
  const std::string order = "kill at=save.commit.done rank=1 step=4";
  CHECK(end_of(order, 1, [] { return train_to_step(4); }) == 1000 + SIGKILL);
  CHECK(end_of(order, 1, [] { return train_to_step(3); }) == 7);
  CHECK(end_of(order, 0, [] { return train_to_step(9); }) == 7);
  CHECK(end_of("", 1, [] { return train_to_step(9); }) == 7);
  CHECK(end_of("term at=step rank=0 step=2", 0, [] { return train_to_step(2); }) == 1000 + SIGTERM);
  const auto write = [] {
    drill::reach_step(6);
    try {
      drill::reach("save.shard");
    } catch (const Error&) {
      drill::reach("save.shard");  // once
      return 5;
    }
    return 7;
  };
  CHECK(end_of("full at=save.shard rank=2 step=6", 2, write) == 5);
  CHECK(end_of("full at=save.shard rank=2 step=7", 2, write) == 7);
}

TEST_CASE("a drill's timer reaches a rank that waits for something else") {
  CHECK(end_of("kill at=time rank=0 seconds=0.05", 0, [] {
          sleep(20);
          return 7;
        }) == 1000 + SIGKILL);
}

TEST_CASE("a drill's order as text, and back") {
  const drill::Order at_step{.deed = drill::Deed::stop, .at = "update", .rank = 3, .step = 12};
  CHECK(drill::to_text(at_step) == "stop at=update rank=3 step=12");
  CHECK(drill::parse_order(drill::to_text(at_step)) == at_step);
  const drill::Order at_time{.at = "time", .rank = 1, .seconds = 0.375};
  CHECK(drill::to_text(at_time) == "kill at=time rank=1 seconds=0.375");
  CHECK(drill::parse_order(drill::to_text(at_time)) == at_time);
  for (const char* wrong : {"maim at=step", "kill", "kill at=lunch", "kill at=step rank=x",
                            "kill at=step rank=-1", "kill at=step when=4", "full at=step step=3"}) {
    INFO(wrong);
    CHECK_THROWS_AS(drill::parse_order(wrong), Error);
  }
}
