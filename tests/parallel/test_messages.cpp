// Messages between two members of a group: their numbers, their errors, and that they may be
// dropped on the way out of an exception. What every transport must do with them is in
// battery_messages.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "parallel/comm/communicator.hpp"
#include "parallel/comm/local_transport.hpp"
#include "tests/parallel/errors.hpp"

namespace weft {

namespace {

// Notes the tags and is done at once.
class TagRecorder final : public Transport {
 public:
  struct Start {
    bool is_send;
    int peer;
    Tag tag;
  };

  int rank() const override { return 1; }
  int size() const override { return 3; }
  std::string_view name() const override { return "recorder"; }
  std::unique_ptr<Transfer> start_send(int peer, Tag tag, std::span<const std::byte>) override {
    starts.push_back({true, peer, tag});
    return std::make_unique<Done>();
  }
  std::unique_ptr<Transfer> start_receive(int peer, Tag tag, std::span<std::byte>) override {
    starts.push_back({false, peer, tag});
    return std::make_unique<Done>();
  }
  void abort(ExitCode, const std::string&) noexcept override {}

  std::vector<Start> starts;

 private:
  struct Done final : Transfer {
    bool done() override { return true; }
  };
};

// A message that comes in parts, one a poll; the transport counts them or it does not.
class PartsTransport final : public Transport {
 public:
  PartsTransport(int num_parts, bool counts) : num_parts_(num_parts), counts_(counts) {}

  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::string_view name() const override { return "parts"; }
  std::unique_ptr<Transfer> start_send(int, Tag, std::span<const std::byte>) override {
    return std::make_unique<Parts>(*this);
  }
  std::unique_ptr<Transfer> start_receive(int, Tag, std::span<std::byte>) override {
    return std::make_unique<Parts>(*this);
  }
  std::uint64_t num_events() const override { return counts_ ? num_come_ : 0; }
  void abort(ExitCode, const std::string&) noexcept override {}

 private:
  struct Parts final : Transfer {
    explicit Parts(PartsTransport& from) : transport(from) {}
    bool done() override {
      ++transport.num_come_;
      return ++num_come == transport.num_parts_;
    }
    PartsTransport& transport;
    int num_come = 0;
  };

  int num_parts_;
  bool counts_;
  std::uint64_t num_come_ = 0;
};

}  // namespace

TEST_CASE("who waits for a message does not sleep while parts of it come") {
  // 20 polls; each that sees nothing move is followed by a nap of 20 ms.
  const auto seconds = [](bool counts) {
    using namespace std::chrono_literals;
    WaitOptions wait{.num_spins = 0, .num_yields = 0, .first_nap = 20ms, .longest_nap = 20ms};
    PartsTransport transport(20, counts);
    Communicator comm(transport, nullptr, "tp", 1, all_ranks(transport),
                      std::make_shared<Progress>(wait));
    const auto begin = std::chrono::steady_clock::now();
    char byte = 0;
    comm.start({"m", Receive{0, 1, &byte}}).wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  CHECK(seconds(false) >= 0.3);  // a nap takes no less than its time
  CHECK(seconds(true) < 0.3);
}

TEST_CASE("messages count by peer and direction, and share no number with a collective") {
  TagRecorder transport;
  Communicator comm(transport, nullptr, "pp", 3, all_ranks(transport));
  char byte = 0;
  const auto sequence_after = [&](const CollectiveRecord& record) {
    comm.start({"m", record}).wait();
    return transport.starts.back().tag.sequence;
  };
  CHECK(sequence_after(Send{0, 1, &byte}) == 1);
  CHECK(sequence_after(Send{2, 1, &byte}) == 1);
  CHECK(sequence_after(Receive{2, 1, &byte}) == 1);
  CHECK(sequence_after(Broadcast{1, 1, &byte}) == 0);
  CHECK(sequence_after(Send{2, 1, &byte}) == 3);
  CHECK(sequence_after(Broadcast{1, 1, &byte}) == 2);
  CHECK(sequence_after(Receive{2, 1, &byte}) == 3);
  CHECK(sequence_after(Receive{0, 1, &byte}) == 1);
  // The lowest bit tells the two apart, which no transport cuts off.
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(sequence_after(Broadcast{1, 1, &byte}) % 2 == 0);
    REQUIRE(sequence_after(Send{0, 1, &byte}) % 2 == 1);
  }
  for (const TagRecorder::Start& start : transport.starts) REQUIRE(start.tag.group == 3);
}

TEST_CASE("a message that nobody sends or takes names group, number and both ends") {
  WaitOptions wait;
  wait.deadline = std::chrono::milliseconds(60);
  const bool is_send = GENERATE(false, true);
  std::string message;
  run_ranks(3, [&](Transport& transport) {
    Communicator comm(transport, nullptr, "pp", 0, {2, 1, 0}, std::make_shared<Progress>(wait));
    if (transport.rank() == 0) return;
    char byte = 0;
    const int me = comm.rank();  // 1: world rank 1, 0: world rank 2
    if (me == 0) {
      comm.start({"first", Receive{1, 1, &byte}}).wait();
      comm.start({"first", Send{1, 1, &byte}}).wait();
      return;
    }
    comm.start({"first", Send{0, 1, &byte}}).wait();
    comm.start({"first", Receive{0, 1, &byte}}).wait();
    const CollectiveRecord lost =
        is_send ? CollectiveRecord(Send{0, 1, &byte}) : CollectiveRecord(Receive{0, 1, &byte});
    const Error error = error_of([&] { comm.start({"pipeline.lost", lost}).wait(); });
    if (error.code() == ExitCode::peer) message = error.what();
  });
  CAPTURE(message);
  REQUIRE(contains(message, is_send ? "send 'pipeline.lost' (number 1 to rank 0 of group 'pp')"
                                    : "receive 'pipeline.lost' (number 1 from rank 0 of group"));
  REQUIRE(contains(message, "waited"));
  REQUIRE(contains(message, "for rank 0 of the group (world rank 2)"));
  REQUIRE(contains(message, is_send ? "the receive that belongs to" : "the send that belongs to"));
}

TEST_CASE("messages that contradict themselves are refused and count for nothing") {
  run_ranks(2, [](Transport& transport) {
    Communicator comm(transport, nullptr, "pp", 0, all_ranks(transport));
    char byte = static_cast<char>(transport.rank());
    const int me = comm.rank(), peer = 1 - me;
    const auto refuse = [&](const CollectiveRecord& record, const std::string& part) {
      const Error error = error_of([&] { comm.start({"wrong", record}).wait(); });
      if (!contains(error.what(), part) || !contains(error.what(), "wrong")) throw error;
    };
    refuse(Send{me, 1, &byte}, "group of 2");
    refuse(Send{2, 1, &byte}, "rank 2");
    refuse(Receive{-1, 1, &byte}, "rank -1");
    refuse(Send{peer, 1, nullptr}, "null");
    refuse(Receive{peer, 1, nullptr}, "null");
    refuse(Receive{peer, -1, &byte}, "-1 bytes");
    comm.force(Algorithm::ring);  // of collectives only
    Request send = comm.start({"right", Send{peer, 1, &byte}});
    char other = 9;
    comm.start({"right", Receive{peer, 1, &other}}).wait();
    send.wait();
    if (other != peer) throw std::runtime_error("another message came");
  });
}

TEST_CASE("messages are dropped by an exception without a trace in their buffers") {
  std::atomic<int> num_ended{0};
  const Error error = error_of([&] {
    run_ranks(3, [&](Transport& transport) {
      Communicator comm(transport, nullptr, "pp", 0, all_ranks(transport));
      const int next = (comm.rank() + 1) % 3, previous = (comm.rank() + 2) % 3;
      std::vector<char> out(100'000, 1), in(100'000, 0);
      try {
        const Request send = comm.start({"out", Send{next, 100'000, out.data()}});
        Request receive = comm.start({"in", Receive{previous, 100'000, in.data()}});
        if (comm.rank() == 1) {
          throw Error(ExitCode::data, "stage 1 fell over");
        }
        receive.wait();
        comm.barrier();
      } catch (...) {
        ++num_ended;
        throw;
      }
    });
  });
  REQUIRE(num_ended == 3);
  REQUIRE(error.what() == std::string("stage 1 fell over"));
}

TEST_CASE("what a wait counts as is the record's to say") {
  Trace trace;
  run_ranks(2, [&](Transport& transport) {
    const bool waits = transport.rank() == 1;
    Communicator comm(transport, waits ? &trace : nullptr, "pp", 0, all_ranks(transport));
    char byte = 0;
    if (waits) {
      comm.start({"idle", Receive{0, 1, &byte}, Activity::bubble}).wait();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      comm.start({"late", Send{1, 1, &byte}}).wait();
    }
  });
  REQUIRE(trace.own_ns(Activity::bubble) > 20'000'000);
  REQUIRE(trace.own_ns(Activity::bubble) > trace.own_ns(Activity::communication));
}

}  // namespace weft
