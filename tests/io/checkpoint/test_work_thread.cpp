// The thread that saves while steps go on.
#include <catch2/catch.hpp>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "io/checkpoint/work_thread.hpp"

using namespace weft;

TEST_CASE("work is done by one other thread, one piece after the other", "[work_thread]") {
  WorkThread thread;
  CHECK(thread.is_done());
  thread.wait();
  std::vector<std::thread::id> by;
  for (std::size_t i = 1; i <= 100; ++i) {
    thread.start([&by](const std::stop_token&) { by.push_back(std::this_thread::get_id()); });
    thread.wait();
    CHECK(thread.is_done());
    REQUIRE(by.size() == i);
    CHECK(by[i - 1] == by[0]);
  }
  CHECK(by[0] != std::this_thread::get_id());
}

TEST_CASE("what is under way is seen to be, until it is done", "[work_thread]") {
  std::atomic<bool> may_end{false};
  WorkThread thread;
  thread.start([&](const std::stop_token&) { may_end.wait(false); });
  CHECK_FALSE(thread.is_done());
  may_end = true;
  may_end.notify_all();
  thread.wait();
  CHECK(thread.is_done());
}

TEST_CASE("its end asks the work to stop, and waits for it", "[work_thread]") {
  bool was_asked = false;
  {
    WorkThread thread;
    thread.start([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      was_asked = true;
    });
  }
  CHECK(was_asked);
}
