// What a transport must do where ranks are processes, started by apps/launch.sh: the exit code is
// the verdict. No test framework: its assertions say nothing about the other ranks.
//
//   rank_program TRANSPORT WHAT, where WHAT is
//     battery  the battery, then sessions of fewer ranks and two transports side by side
//     stopped  rank 1 is stopped: the deadline, and nothing else, ends a wait
//     absent   rank 1 is stopped before the transport is made: the session's deadline ends that
//     abort    rank 1 ends the run; the others wait for a message
//     dropped  transfers are dropped before they are done
//     busy     all ranks say so and then call nothing for a minute
//     chatty   all ranks say so and then exchange messages without end
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "parallel/comm/communicator.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "tests/parallel/battery.hpp"

namespace {

using namespace weft;

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

void check_fewer_ranks(Session& session, std::string_view name, int num_ranks) {
  const auto part = session.first_ranks(num_ranks);
  expect((part != nullptr) == (session.rank() < num_ranks), "who is among the first ranks");
  if (part) {
    expect(part->size() == num_ranks && part->rank() == session.rank(), "ranks keep their numbers");
    const auto transport = make_transport(name, *part);
    Communicator comm(*transport, nullptr, "part", 0, all_ranks(*transport));
    for (int i = 0; i < 20; ++i) comm.barrier();
  }
  session.all_gather("the end of a part", {});
}

void check_side_by_side(Session& session, std::string_view name) {
  const auto first = make_transport(name, session);
  const auto second = make_transport(session.own_transport(), session);
  const auto third = make_transport(name, session);
  for (Transport* const transport : {first.get(), second.get(), third.get()}) {
    Communicator comm(*transport, nullptr, "side", 0, all_ranks(*transport));
    const auto texts = comm.all_gather_strings("texts", std::string(100'000, 'a'));
    expect(static_cast<int>(texts.size()) == session.size(), "texts of all ranks");
  }
}

void run_battery_of(Session& session, std::string_view name) {
  {
    const auto transport = make_transport(name, session);
    expect(transport->name() == name, "the transport's name");
    run_battery(*transport, false);
  }
  for (int num_ranks = 1; num_ranks <= session.size(); ++num_ranks) {
    check_fewer_ranks(session, name, num_ranks);
  }
  check_side_by_side(session, name);
}

void require_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    expect(message.find(part) != std::string::npos, "the deadline says: " + message);
  }
}

// Rank 0 has seen what it should; ranks that came to theirs earlier must not end the run for it.
void leave_it_to_rank_0(Session& session) {
  if (session.rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(30));
  session.abort(session.rank() == 0 ? ExitCode::stopped : ExitCode::failed, "as it should");
}

void check_stopped(Session& session, std::string_view name) {
  const auto transport = make_transport(name, session);
  const std::vector<std::string> pids = session.all_gather("pids", std::to_string(getpid()));
  WaitOptions wait;
  wait.deadline = std::chrono::milliseconds(700);
  Communicator comm(*transport, nullptr, "tp", 2, all_ranks(*transport),
                    std::make_shared<Progress>(wait));
  comm.barrier();
  if (session.rank() == 1) raise(SIGSTOP);
  std::string message;
  try {
    std::vector<float> values(100'000);
    AllReduce sum{Precision::f32,  Order::any,   0, static_cast<index_t>(values.size()),
                  {values.data()}, values.data()};
    comm.start({"row_linear.forward.reduce", sum}).wait();
  } catch (const Error& error) {
    expect(error.code() == ExitCode::peer, "a deadline's exit code");
    message = error.what();
  }
  if (session.rank() == 0) {
    require_parts(message,
                  {"'tp'", "'row_linear.forward.reduce'", "number 1 ", "(world rank 1)", "0.7"});
    kill(std::stoi(pids[1]), SIGCONT);
  }
  leave_it_to_rank_0(session);
}

void check_absent(Session& session, std::string_view name) {
  const std::vector<std::string> pids = session.all_gather("pids", std::to_string(getpid()));
  session.set_deadline(std::chrono::milliseconds(700));
  if (session.rank() == 1) raise(SIGSTOP);
  std::string message;
  try {
    make_transport(name, session);
  } catch (const Error& error) {
    expect(error.code() == ExitCode::peer, "a deadline's exit code");
    message = error.what();
  }
  if (session.rank() == 0) {
    require_parts(message, {"0.7", "all 3 ranks", "the opening of", "comm.timeout_s"});
    kill(std::stoi(pids[1]), SIGCONT);
  }
  leave_it_to_rank_0(session);
}

void check_abort(Session& session, std::string_view name) {
  const auto transport = make_transport(name, session);
  Communicator comm(*transport, nullptr, "world", 0, all_ranks(*transport));
  comm.barrier();
  if (session.rank() == 1) transport->abort(ExitCode::data, "the disk is gone");
  comm.barrier();
}

// Until a test kills one of the ranks.
void run_on(Session& session, std::string_view name, std::string_view what) {
  const auto transport = make_transport(name, session);
  Communicator comm(*transport, nullptr, "world", 0, all_ranks(*transport));
  comm.barrier();
  if (session.rank() == 0) std::fprintf(stderr, "all are %s\n", std::string(what).c_str());
  if (what == "busy") std::this_thread::sleep_for(std::chrono::seconds(60));
  while (what == "chatty") comm.barrier();
}

// A receive that has met nothing, and messages too long to be sent before they are asked for.
void check_dropped(Session& session, std::string_view name) {
  {
    const auto transport = make_transport(name, session);
    const int peer = session.rank() ^ 1;
    if (peer < session.size()) {
      std::vector<std::byte> gone(100), long_one(4 << 20, std::byte{1}), received(100);
      transport->start_receive(peer, {7, 1}, gone).reset();
      const auto receive = transport->start_receive(peer, {7, 2}, received);
      const auto send = transport->start_send(peer, {7, 2}, std::span(long_one).first(100));
      while (!receive->done() || !send->done()) {
      }
      expect(received[99] == std::byte{1} && gone[0] == std::byte{0}, "what was received");
      transport->start_send(peer, {7, 3}, long_one).reset();
    }
  }
  check_side_by_side(session, name);
}

void run(Session& session, std::string_view name, std::string_view what) {
  if (what == "battery") return run_battery_of(session, name);
  if (what == "stopped") return check_stopped(session, name);
  if (what == "absent") return check_absent(session, name);
  if (what == "abort") return check_abort(session, name);
  if (what == "busy" || what == "chatty") return run_on(session, name, what);
  if (what == "dropped") return check_dropped(session, name);
  throw std::runtime_error("what is '" + std::string(what) + "'?");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;  // more: marks, by which a test finds its processes
  const auto session = weft::make_session(&argc, &argv);
  try {
    run(*session, argv[1], argv[2]);
  } catch (const weft::Error& error) {
    session->abort(error.code(), error.what());
  } catch (const std::exception& error) {
    session->abort(weft::ExitCode::failed, error.what());
  }
  if (session->rank() == 0) std::printf("%s passed on %d ranks\n", argv[2], session->size());
  return 0;
}
