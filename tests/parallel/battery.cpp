#include "tests/parallel/battery.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/parallel/battery_parts.hpp"

namespace weft {

namespace {

using battery::expect;
using battery::Nodes;

// Collectives of two groups that are under way together, and waited for in different order by odd
// and even ranks.
void check_overlap(Transport& transport, Communicator& world) {
  std::vector<int> backwards = all_ranks(transport);
  std::reverse(backwards.begin(), backwards.end());
  Communicator other(transport, nullptr, "backwards", 9, backwards, world.progress());
  constexpr int num_buckets = 6;
  constexpr index_t count = 3000, leaves = 8;
  const std::vector<float> expected = battery::sum_of_tree<float>(leaves, count);
  std::vector<Nodes<float>> nodes;
  std::vector<std::vector<float>> results(num_buckets, std::vector<float>(count));
  std::vector<Request> requests;
  for (int bucket = 0; bucket < num_buckets; ++bucket) {
    Communicator& comm = bucket % 2 ? other : world;
    nodes.emplace_back(part_of(comm.rank(), comm.size(), leaves), leaves, count);
    requests.push_back(
        comm.start({"test.bucket" + std::to_string(bucket),
                    AllReduce{Precision::f32, Order::tree, leaves, count, nodes.back().pointers(),
                              results[static_cast<std::size_t>(bucket)].data()}}));
    requests.front().test();
  }
  if (transport.rank() % 2) std::reverse(requests.begin(), requests.end());
  for (Request& request : requests) request.wait();
  for (const auto& result : results)
    battery::expect_bits(result, expected.data(), "overlapping buckets");
}

void check_wrong_size(Transport& transport) {
  if (transport.size() < 2 || transport.rank() > 1) return;
  const Tag tag{50, 1};
  std::vector<std::byte> bytes(9);
  for (const auto& [sent, wanted] : {std::pair{3, 5}, std::pair{9, 5}}) {
    std::unique_ptr<Transfer> transfer;
    if (transport.rank() == 0) {
      transfer =
          transport.start_send(1, tag, std::span(bytes).first(static_cast<std::size_t>(sent)));
      while (!transfer->done()) {
      }
      continue;
    }
    transfer =
        transport.start_receive(0, tag, std::span(bytes).first(static_cast<std::size_t>(wanted)));
    std::string message;
    try {
      while (!transfer->done()) {
      }
    } catch (const Error& error) {
      expect(error.code() == ExitCode::failed, "wrong size: exit code");
      message = error.what();
    }
    expect(message.find("5") != std::string::npos &&
               message.find(std::to_string(sent)) != std::string::npos,
           "wrong size: " + message);
  }
}

void check_messages(Transport& transport) {
  if (transport.size() < 2) return;
  // Equal tags match in order of start, other tags and groups do not disturb.
  const int right = (transport.rank() + 1) % transport.size();
  const int left = (transport.rank() + transport.size() - 1) % transport.size();
  const std::vector<Tag> tags = {{60, 1}, {60, 1}, {61, 1}, {60, 0xffffffffu}};
  std::vector<int> sent = {10, 11, 12, 13}, received(4);
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (const int i : {0, 1, 2, 3}) {
    transfers.push_back(
        transport.start_send(right, tags[static_cast<std::size_t>(i)],
                             std::as_bytes(std::span(&sent[static_cast<std::size_t>(i)], 1))));
  }
  for (const int i : {3, 0, 2, 1}) {
    transfers.push_back(transport.start_receive(
        left, tags[static_cast<std::size_t>(i)],
        std::as_writable_bytes(std::span(&received[static_cast<std::size_t>(i)], 1))));
  }
  transfers.push_back(transport.start_send(right, {62, 0}, {}));
  transfers.push_back(transport.start_receive(left, {62, 0}, {}));
  for (const auto& transfer : transfers) {
    while (!transfer->done()) {
    }
  }
  expect(received == sent, "messages of equal and of different tags");
}

}  // namespace

void run_battery(Transport& transport, bool full) {
  Trace trace;
  Communicator comm(transport, &trace, "battery", 3, all_ranks(transport));
  check_messages(transport);
  comm.barrier();
  check_wrong_size(transport);
  battery::check_reductions(comm, full);
  battery::check_copies(comm);
  for (int i = 0; i < 20; ++i) comm.barrier();
  check_overlap(transport, comm);
  battery::check_messages(comm);
  comm.barrier();
  expect(trace.own_ns(Activity::communication) > 0, "communication is traced");
}

}  // namespace weft
