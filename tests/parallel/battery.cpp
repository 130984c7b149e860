#include "battery.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel/comm/communicator.hpp"
#include "tree_reference.hpp"

namespace weft {

namespace {

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

std::vector<int> all_ranks(const Transport& transport) {
  std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

template <class T>
constexpr Precision precision_of = sizeof(T) == 4 ? Precision::f32 : Precision::f64;

// The maximal nodes of a rank's leaves as buffers.
template <class T>
struct Nodes {
  Nodes(Range leaves, index_t num_leaves, index_t count) {
    for (const Range node : reference::nodes_in(leaves, num_leaves)) {
      buffers.push_back(reference::hostile_sums<T>(node, count));
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> result;
    for (auto& buffer : buffers) result.push_back(buffer.data());
    return result;
  }
  std::vector<std::vector<T>> buffers;
};

template <class T>
std::vector<T> sum_of_tree(index_t num_leaves, index_t count) {
  return reference::hostile_sums<T>({0, num_leaves}, count);
}

template <class T>
void expect_bits(const std::vector<T>& got, const T* expected, const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(T)) == 0) continue;
    throw std::runtime_error(what + ": element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
                             std::to_string(expected[i]));
  }
}

std::string text(const Communicator& comm, std::string_view what, Algorithm algorithm, index_t leaves, index_t count) {
  return std::string(what) + " by " + std::string(name_of(algorithm)) + ", rank " + std::to_string(comm.rank()) +
         " of " + std::to_string(comm.size()) + ", " + std::to_string(leaves) + " leaves, " + std::to_string(count) +
         " elements";
}

// EXACT section 2, for counts that cut evenly.
index_t bytes_by_formula(Algorithm algorithm, index_t size, index_t num_nodes, index_t vector_bytes) {
  if (algorithm == Algorithm::tree_small) return (size - 1) * num_nodes * vector_bytes;
  return (num_nodes + 1) * (size - 1) * vector_bytes / size;
}

template <class T>
void check_all_reduce(Communicator& comm, Algorithm algorithm, index_t num_leaves, index_t count, bool in_place) {
  const std::string what = text(comm, "all-reduce", algorithm, num_leaves, count);
  const Range leaves = part_of(comm.rank(), comm.size(), num_leaves);
  Nodes<T> nodes(leaves, num_leaves, count);
  std::vector<T> output(static_cast<std::size_t>(count), T{7});
  in_place = in_place && !nodes.buffers.empty();
  std::vector<T>& result = in_place ? nodes.buffers.back() : output;

  AllReduce record{precision_of<T>, Order::tree, num_leaves, count, nodes.pointers(), result.data()};
  if (!can_run(algorithm, record, comm.size()) && comm.size() > 1) return;
  const std::uint64_t before = comm.bytes_sent();
  comm.force(algorithm);
  comm.start({"test.all_reduce", record}).wait();
  comm.force(Algorithm::automatic);

  expect_bits(result, sum_of_tree<T>(num_leaves, count).data(), what);
  if (count % (16 * comm.size()) != 0 || algorithm == Algorithm::automatic) return;
  const auto num_nodes = static_cast<index_t>(nodes.buffers.size());
  const index_t formula = bytes_by_formula(algorithm, comm.size(), num_nodes, count * static_cast<index_t>(sizeof(T)));
  expect(static_cast<index_t>(comm.bytes_sent() - before) == formula,
         what + ": sent " + std::to_string(comm.bytes_sent() - before) + " bytes, formula " + std::to_string(formula));
}

// Cuts by a hash: uneven, some slices empty.
std::vector<index_t> odd_cuts(index_t count, int size, std::uint64_t seed) {
  std::vector<index_t> cuts{0};
  for (int r = 1; r < size; ++r) {
    const index_t left = count - cuts.back();
    const auto hash = static_cast<index_t>(reference::mix(seed + static_cast<std::uint64_t>(r)) >> 1);
    cuts.push_back(cuts.back() + (hash % 3 == 0 ? 0 : hash % (left + 1) / 2));
  }
  cuts.push_back(count);
  return cuts;
}

template <class T>
void check_reduce_scatter(Communicator& comm, index_t num_leaves, index_t count) {
  const std::string what = text(comm, "reduce-scatter", Algorithm::tree_direct, num_leaves, count);
  Nodes<T> nodes(part_of(comm.rank(), comm.size(), num_leaves), num_leaves, count);
  const std::vector<index_t> cuts = odd_cuts(count, comm.size(), static_cast<std::uint64_t>(num_leaves));
  const auto rank = static_cast<std::size_t>(comm.rank());
  const index_t begin = cuts[rank], size = cuts[rank + 1] - begin;
  std::vector<T> output(static_cast<std::size_t>(size), T{7});
  const std::uint64_t before = comm.bytes_sent();
  ReduceScatter record{precision_of<T>, Order::tree, num_leaves, count, cuts, nodes.pointers(), output.data()};
  comm.start({"test.reduce_scatter", record}).wait();
  expect_bits(output, sum_of_tree<T>(num_leaves, count).data() + begin, what);
  const index_t sent = static_cast<index_t>(nodes.buffers.size()) * (count - size) * static_cast<index_t>(sizeof(T));
  expect(static_cast<index_t>(comm.bytes_sent() - before) == sent, what + ": bytes sent");
}

void check_tree(Communicator& comm, bool full) {
  const std::vector<index_t> some_leaves = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 64, 69};
  std::vector<index_t> all_leaves(69);
  std::iota(all_leaves.begin(), all_leaves.end(), 1);
  const std::vector<index_t> counts = {0, 1, 5, 37, 16 * comm.size()};
  for (const index_t leaves : full ? all_leaves : some_leaves) {
    // Every count for the shapes that differ most, one each for the rest.
    for (const index_t count : leaves <= 12 ? counts : std::vector<index_t>{16 * comm.size()}) {
      for (const auto algorithm : {Algorithm::tree_direct, Algorithm::tree_small, Algorithm::tree_halving}) {
        check_all_reduce<float>(comm, algorithm, leaves, count, leaves % 2 == 0);
        check_all_reduce<double>(comm, algorithm, leaves, count, leaves % 2 == 1);
      }
      check_reduce_scatter<float>(comm, leaves, count);
      check_reduce_scatter<double>(comm, leaves, count);
    }
  }
  for (const index_t leaves : {index_t{8}, index_t{12}}) {  // long enough for the automatic choices
    for (const index_t count : {index_t{5000}, index_t{100'003}}) {
      check_all_reduce<float>(comm, Algorithm::automatic, leaves, count, true);
      check_all_reduce<float>(comm, Algorithm::tree_halving, leaves, count, false);
      check_reduce_scatter<float>(comm, leaves, count);
    }
  }
}

// Small integers: any order gives the same sum.
template <class T>
void check_any_order(Communicator& comm, Algorithm algorithm, index_t count) {
  const std::string what = text(comm, "any order", algorithm, 0, count);
  const auto value = [](index_t rank, index_t i) { return static_cast<T>((rank * 31 + i * 7) % 101); };
  std::vector<T> input, expected, output(static_cast<std::size_t>(count));
  for (index_t i = 0; i < count; ++i) {
    input.push_back(value(comm.rank(), i));
    T sum = 0;
    for (index_t rank = 0; rank < comm.size(); ++rank) sum += value(rank, i);
    expected.push_back(sum);
  }
  std::vector<T> input_again = input, in_place = input;
  comm.force(algorithm);
  comm.start({"test.any", AllReduce{precision_of<T>, Order::any, 0, count, {input.data()}, output.data()}}).wait();
  comm.start({"test.any", AllReduce{precision_of<T>, Order::any, 0, count, {in_place.data()}, in_place.data()}}).wait();
  expect_bits(output, expected.data(), what);
  expect_bits(in_place, expected.data(), what + " in place");
  if (algorithm == Algorithm::ring || algorithm == Algorithm::tree_direct) {
    const auto cuts = odd_cuts(count, comm.size(), 5);
    const auto rank = static_cast<std::size_t>(comm.rank());
    std::vector<T> slice(static_cast<std::size_t>(cuts[rank + 1] - cuts[rank]));
    comm.start({"test.any", ReduceScatter{precision_of<T>, Order::any, 0, count, cuts, {input_again.data()}, slice.data()}})
        .wait();
    expect_bits(slice, expected.data() + cuts[rank], what + " scattered");
  }
  comm.force(Algorithm::automatic);
}

void check_all_gather(Communicator& comm, Algorithm algorithm, index_t longest, bool in_place) {
  const std::string what = text(comm, "all-gather", algorithm, 0, longest);
  std::vector<index_t> cuts{0};
  for (int rank = 0; rank < comm.size(); ++rank) cuts.push_back(cuts.back() + (rank % 3 == 1 ? 0 : longest / (rank + 1)));
  const auto byte = [](int rank, index_t i) { return static_cast<unsigned char>(rank * 41 + i * 3 + 1); };
  std::vector<unsigned char> input, expected, output(static_cast<std::size_t>(cuts.back()), 255);
  const auto me = static_cast<std::size_t>(comm.rank());
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    for (index_t i = 0; i < cuts[r + 1] - cuts[r]; ++i) expected.push_back(byte(rank, i));
  }
  for (index_t i = 0; i < cuts[me + 1] - cuts[me]; ++i) input.push_back(byte(comm.rank(), i));
  if (in_place) std::copy(input.begin(), input.end(), output.begin() + cuts[me]);
  const std::uint64_t before = comm.bytes_sent();
  comm.force(algorithm);
  comm.start({"test.all_gather", AllGather{cuts, in_place ? nullptr : input.data(), output.data()}}).wait();
  comm.force(Algorithm::automatic);
  expect(output == expected, what);
  if (algorithm == Algorithm::direct) {
    expect(comm.bytes_sent() - before == input.size() * static_cast<std::size_t>(comm.size() - 1), what + ": bytes sent");
  }
}

void check_broadcast(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{70'001}}) {
      std::vector<unsigned char> buffer(length, static_cast<unsigned char>(comm.rank()));
      comm.start({"test.broadcast", Broadcast{root, static_cast<index_t>(length), buffer.data()}}).wait();
      for (const auto byte : buffer) expect(byte == root, "broadcast from " + std::to_string(root));
    }
  }
}

void check_strings(Communicator& comm) {
  const auto word = [](int rank) { return rank == 1 ? std::string() : std::string(static_cast<std::size_t>(rank * 7 + 1), static_cast<char>('a' + rank)); };
  const std::vector<std::string> words = comm.all_gather_strings("test.strings", word(comm.rank()));
  expect(static_cast<int>(words.size()) == comm.size(), "strings: number");
  for (int rank = 0; rank < comm.size(); ++rank) expect(words[static_cast<std::size_t>(rank)] == word(rank), "strings: word");
  for (const std::string& empty : comm.all_gather_strings("test.no_strings", "")) expect(empty.empty(), "strings: empty");
}

// Collectives of two groups that are under way together, and waited for in different order by odd
// and even ranks.
void check_overlap(Transport& transport, Communicator& world) {
  std::vector<int> backwards = all_ranks(transport);
  std::reverse(backwards.begin(), backwards.end());
  Communicator other(transport, nullptr, "backwards", 9, backwards, world.progress());
  constexpr int num_buckets = 6;
  constexpr index_t count = 3000, leaves = 8;
  const std::vector<float> expected = sum_of_tree<float>(leaves, count);
  std::vector<Nodes<float>> nodes;
  std::vector<std::vector<float>> results(num_buckets, std::vector<float>(count));
  std::vector<Request> requests;
  for (int bucket = 0; bucket < num_buckets; ++bucket) {
    Communicator& comm = bucket % 2 ? other : world;
    nodes.emplace_back(part_of(comm.rank(), comm.size(), leaves), leaves, count);
    requests.push_back(comm.start({"test.bucket" + std::to_string(bucket),
                                   AllReduce{Precision::f32, Order::tree, leaves, count, nodes.back().pointers(),
                                             results[static_cast<std::size_t>(bucket)].data()}}));
    requests.front().test();
  }
  if (transport.rank() % 2) std::reverse(requests.begin(), requests.end());
  for (Request& request : requests) request.wait();
  for (const auto& result : results) expect_bits(result, expected.data(), "overlapping buckets");
}

void check_wrong_size(Transport& transport) {
  if (transport.size() < 2 || transport.rank() > 1) return;
  const Tag tag{50, 1};
  std::vector<std::byte> bytes(9);
  for (const auto& [sent, wanted] : {std::pair{3, 5}, std::pair{9, 5}}) {
    std::unique_ptr<Transfer> transfer;
    if (transport.rank() == 0) {
      transfer = transport.start_send(1, tag, std::span(bytes).first(static_cast<std::size_t>(sent)));
      while (!transfer->done()) {
      }
      continue;
    }
    transfer = transport.start_receive(0, tag, std::span(bytes).first(static_cast<std::size_t>(wanted)));
    std::string message;
    try {
      while (!transfer->done()) {
      }
    } catch (const Error& error) {
      expect(error.code() == ExitCode::failed, "wrong size: exit code");
      message = error.what();
    }
    expect(message.find("5") != std::string::npos && message.find(std::to_string(sent)) != std::string::npos,
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
    transfers.push_back(transport.start_send(right, tags[static_cast<std::size_t>(i)],
                                             std::as_bytes(std::span(&sent[static_cast<std::size_t>(i)], 1))));
  }
  for (const int i : {3, 0, 2, 1}) {
    transfers.push_back(transport.start_receive(left, tags[static_cast<std::size_t>(i)],
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
  check_tree(comm, full);
  for (const index_t count : {index_t{0}, index_t{1}, index_t{40}, index_t{70'000}}) {
    for (const auto algorithm : {Algorithm::automatic, Algorithm::ring, Algorithm::tree_direct}) {
      check_any_order<float>(comm, algorithm, count);
      check_any_order<double>(comm, algorithm, count);
    }
  }
  for (const auto algorithm : {Algorithm::direct, Algorithm::ring, Algorithm::automatic}) {
    for (const index_t longest : {index_t{0}, index_t{1}, index_t{50}, index_t{700'000}}) {
      check_all_gather(comm, algorithm, longest, false);
      check_all_gather(comm, algorithm, longest, true);
    }
  }
  check_broadcast(comm);
  check_strings(comm);
  for (int i = 0; i < 20; ++i) comm.barrier();
  check_overlap(transport, comm);
  comm.barrier();
  expect(trace.own_ns(Activity::communication) > 0, "communication is traced");
}

}  // namespace weft
