// What happens when a rank dies, stalls, or calls something else than its peers.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parallel/comm/communicator.hpp"
#include "parallel/comm/local_transport.hpp"
#include "tests/parallel/errors.hpp"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

TEST_CASE("a rank that throws releases the others within a second, and its cause comes out") {
  std::atomic<int> num_released{0};
  const auto begin = Clock::now();
  const auto run = [&] {
    run_ranks(4, [&](Transport& transport) {
      Communicator comm(transport, nullptr, "world", 0, all_ranks(transport));
      comm.barrier();
      if (transport.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others sleep by now
        throw Error(ExitCode::data, "the disk is gone");
      }
      const Error error = error_of([&] { comm.barrier(); });
      num_released += error.code() == ExitCode::peer &&
                      contains(error.what(), "rank 2: the disk is gone") &&
                      contains(error.what(), "barrier");
    });
  };
  const Error error = error_of(run);
  REQUIRE(error.code() == ExitCode::data);
  REQUIRE(error.what() == std::string("the disk is gone"));
  REQUIRE(num_released == 3);
  REQUIRE(Clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE("exceptions that are no Errors come out as they are") {
  REQUIRE_THROWS_AS(run_ranks(3,
                              [](Transport& transport) {
                                Communicator comm(transport, nullptr, "world", 0,
                                                  all_ranks(transport));
                                if (transport.rank() == 1) throw std::out_of_range("nine");
                                comm.barrier();
                              }),
                    std::out_of_range);
}

TEST_CASE("a deadline names group, collective, number and the rank that is missing") {
  WaitOptions wait;
  wait.deadline = std::chrono::milliseconds(60);
  std::string message;
  run_ranks(3, [&](Transport& transport) {
    Communicator comm(transport, nullptr, "tp", 0, {2, 1, 0}, std::make_shared<Progress>(wait));
    comm.barrier();
    if (transport.rank() != 2) return;
    float value = 0;
    AllReduce sum{Precision::f32, Order::tree, 3, 1, {&value}, &value};
    const Error error = error_of([&] { comm.start({"row_linear.forward.reduce", sum}).wait(); });
    if (error.code() == ExitCode::peer) message = error.what();
  });
  CAPTURE(message);
  REQUIRE(contains(message, "'tp'"));
  REQUIRE(contains(message, "'row_linear.forward.reduce'"));
  REQUIRE(contains(message, "number 1 "));
  REQUIRE((contains(message, "for rank 1 of the group (world rank 1)") ||
           contains(message, "for rank 2 of the group (world rank 0)")));
}

TEST_CASE("ranks that disagree about the size are told both sizes") {
  const Error error = error_of([&] {
    run_ranks(2, [](Transport& transport) {
      Communicator comm(transport, nullptr, "dp", 0, all_ranks(transport));
      std::vector<char> buffer(100);
      const index_t bytes = transport.rank() == 0 ? 60 : 80;
      comm.start({"publish", Broadcast{0, bytes, buffer.data()}}).wait();
      comm.barrier();
    });
  });
  REQUIRE(error.code() == ExitCode::failed);
  REQUIRE(contains(error.what(), "publish"));
  REQUIRE(contains(error.what(), "60"));
  REQUIRE(contains(error.what(), "80"));
}

TEST_CASE("records that contradict themselves are refused before any message") {
  run_ranks(2, [](Transport& transport) {
    Communicator comm(transport, nullptr, "dp", 0, all_ranks(transport));
    std::vector<float> v(8);
    const auto refuse = [&](const CollectiveRecord& record, const std::string& part) {
      const Error error = error_of([&] { comm.start({"wrong", record}).wait(); });
      if (!contains(error.what(), part) || !contains(error.what(), "wrong")) throw error;
    };
    refuse(AllReduce{Precision::f32, Order::tree, 3, 8, {v.data(), v.data(), v.data()}, v.data()},
           "nodes");
    refuse(AllReduce{Precision::f32, Order::any, 0, 8, {}, v.data()}, "inputs");
    refuse(AllReduce{Precision::f32, Order::tree, 0, 8, {v.data()}, v.data()}, "leaves");
    refuse(AllReduce{Precision::f32, Order::tree, 2, 8, {nullptr}, v.data()}, "null");
    refuse(AllReduce{Precision::f32, Order::tree, 2, 8, {v.data()}, nullptr}, "null");
    refuse(ReduceScatter{Precision::f32, Order::tree, 2, 8, {0, 8}, {v.data()}, v.data()}, "cuts");
    refuse(ReduceScatter{Precision::f32, Order::tree, 2, 8, {0, 9, 8}, {v.data()}, v.data()},
           "cuts");
    refuse(ReduceScatter{Precision::f32, Order::tree, 2, 8, {0, 4, 7}, {v.data()}, v.data()},
           "cuts");
    refuse(AllGather{{}, v.data(), v.data()}, "cuts");
    refuse(Broadcast{2, 4, v.data()}, "root");
    comm.force(Algorithm::ring);
    refuse(AllReduce{Precision::f32, Order::tree, 2, 8, {v.data()}, v.data()}, "ring");
    comm.force(Algorithm::automatic);
    comm.barrier();  // still in step with the other rank
  });
}

TEST_CASE("calls are compared on demand: equal sizes under different names are found") {
  std::atomic<int> num_found{0};
  run_ranks(3, [&](Transport& transport) {
    Communicator comm(transport, nullptr, "dp", 0, all_ranks(transport));
    comm.verify_calls(true);
    comm.barrier();
    int value = 7;
    const std::string name = transport.rank() == 1 ? "loss" : "norm";
    const Error error = error_of([&] { comm.start({name, Broadcast{0, 4, &value}}).wait(); });
    num_found += contains(error.what(), "'loss'") && contains(error.what(), "'norm'");
  });
  REQUIRE(num_found == 3);
}

TEST_CASE("a rank that is not in a group cannot make it") {
  run_ranks(2, [](Transport& transport) {
    if (error_of([&] {
          Communicator(transport, nullptr, "dp", 0, {1 - transport.rank()});
        }).code() != ExitCode::failed) {
      throw std::runtime_error("made");
    }
  });
}

TEST_CASE("a message under way may be withdrawn by an exception, and its buffer is left alone") {
  LocalWorld world(2);
  const auto a = world.make_transport(0), b = world.make_transport(1);
  std::vector<std::byte> gone(4, std::byte{1}), kept(4), sent(4, std::byte{9});
  a->start_receive(1, {0, 0}, gone).reset();
  const auto send = b->start_send(0, {0, 0}, sent);
  REQUIRE_FALSE(send->done());
  const auto receive = a->start_receive(1, {0, 0}, kept);
  REQUIRE(receive->done());
  REQUIRE(send->done());
  REQUIRE(kept == sent);
  REQUIRE(gone == std::vector<std::byte>(4, std::byte{1}));
}

}  // namespace weft
