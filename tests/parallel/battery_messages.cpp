// Messages between two members of a group: every pair, many under way at once, between collectives,
// waited for in another order than started, and wrong ones.
#include <algorithm>

#include "tests/parallel/battery_parts.hpp"

namespace weft::battery {

namespace {

using Bytes = std::vector<unsigned char>;

// Message `number` from `from` to `to`. Lengths: none, one byte, a page and more than any eager
// limit.
Bytes message_of(int from, int to, int number) {
  constexpr std::size_t lengths[] = {0, 1, 5000, 300'001};
  Bytes bytes(lengths[(static_cast<std::size_t>(number) + static_cast<std::size_t>(from)) % 4]);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(from * 67 + to * 31 + number * 7 + static_cast<int>(i));
  return bytes;
}

Send send_of(int peer, const Bytes& bytes) {
  return {peer, static_cast<index_t>(bytes.size()), bytes.data()};
}
Receive receive_of(int peer, Bytes& bytes) {
  return {peer, static_cast<index_t>(bytes.size()), bytes.data()};
}

// Every rank sends `num_messages` to every other one, with a collective in between.
void check_pairs(Communicator& comm) {
  constexpr int num_messages = 5;
  std::vector<Bytes> sent, expected, received;
  std::vector<std::pair<int, bool>> starts;  // peer, is_send
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    for (int number = 0; number < num_messages; ++number) {
      sent.push_back(message_of(comm.rank(), peer, number));
      expected.push_back(message_of(peer, comm.rank(), number));
      received.emplace_back(expected.back().size(), 255);
      starts.push_back({peer, true});
    }
  }
  std::uint64_t num_bytes = 0;
  for (const Bytes& bytes : sent) num_bytes += bytes.size();
  const std::uint64_t before = comm.bytes_sent();
  std::vector<Request> requests;
  // Odd ranks receive first: who starts first must not matter, nor does the order between peers.
  for (const bool sends : {comm.rank() % 2 == 0, comm.rank() % 2 != 0}) {
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const int peer = starts[i].first;
      requests.push_back(sends ? comm.start({"test.send", send_of(peer, sent[i])})
                               : comm.start({"test.receive", receive_of(peer, received[i])}));
    }
    if (sends) continue;
    int value = comm.rank() == 0 ? 41 : 0;
    comm.start({"test.between", Broadcast{0, sizeof value, &value}}).wait();
    expect(value == 41, "a collective between messages");
  }
  if (comm.rank() % 3 == 1) std::reverse(requests.begin(), requests.end());
  for (Request& request : requests) request.wait();
  expect(received == expected, "messages between all pairs, rank " + std::to_string(comm.rank()));
  const std::uint64_t by_broadcast = comm.bytes_sent() - before - num_bytes;
  expect(by_broadcast <= sizeof(int) * static_cast<std::size_t>(comm.size()), "bytes sent");
}

// Two members talk, the others do not even know, while calls are compared.
void check_others_are_not_involved(Communicator& comm) {
  if (comm.size() < 2) return;
  comm.verify_calls(true);
  const int last = comm.size() - 1;
  for (int number = 0; number < 3; ++number) {
    Bytes bytes = message_of(0, last, number);
    const Bytes expected = bytes;
    if (comm.rank() == 0) comm.start({"test.there", send_of(last, bytes)}).wait();
    if (comm.rank() == last) {
      std::fill(bytes.begin(), bytes.end(), 255);
      comm.start({"test.here", receive_of(0, bytes)}).wait();
      expect(bytes == expected, "a message between two of many");
    }
  }
  comm.barrier();
  comm.verify_calls(false);
}

// Both sizes in the receiver's error; also where one of them is none.
void check_sizes(Communicator& comm) {
  if (comm.size() < 2 || comm.rank() > 1) return;
  Bytes bytes(9);
  for (const auto& [sent, wanted] : {std::pair{3, 5}, std::pair{9, 5}, std::pair{0, 5}}) {
    if (comm.rank() == 0) {
      comm.start({"test.too_long", Send{1, sent, bytes.data()}}).wait();
      continue;
    }
    std::string message;
    try {
      comm.start({"test.too_short", Receive{0, wanted, bytes.data()}}).wait();
    } catch (const Error& error) {
      message = error.what();
      expect(error.code() == ExitCode::failed, "sizes: exit code");
    }
    for (const std::string& part : {std::string("receive 'test.too_short'"), std::string("rank 0"),
                                    std::to_string(sent), std::to_string(wanted)})
      expect(message.find(part) != std::string::npos, "sizes: '" + message + "' lacks " + part);
  }
}

}  // namespace

void check_messages(Communicator& comm) {
  for (int round = 0; round < 3; ++round) check_pairs(comm);
  check_others_are_not_involved(comm);
  check_sizes(comm);
}

}  // namespace weft::battery
