// All-reduce and reduce-scatter: every algorithm against the recursion, and bytes against the
// formula.
#include <numeric>

#include "tests/parallel/battery_parts.hpp"

namespace weft::battery {

namespace {

// EXACT section 2, for counts that cut evenly.
index_t bytes_by_formula(Algorithm algorithm, index_t size, index_t num_nodes,
                         index_t vector_bytes) {
  if (algorithm == Algorithm::tree_small) return (size - 1) * num_nodes * vector_bytes;
  return (num_nodes + 1) * (size - 1) * vector_bytes / size;
}

template <class T>
void check_all_reduce(Communicator& comm, Algorithm algorithm, index_t num_leaves, index_t count,
                      bool in_place) {
  const std::string what = text(comm, "all-reduce", algorithm, num_leaves, count);
  const Range leaves = part_of(comm.rank(), comm.size(), num_leaves);
  Nodes<T> nodes(leaves, num_leaves, count);
  std::vector<T> output(static_cast<std::size_t>(count), T{7});
  in_place = in_place && !nodes.buffers.empty();
  std::vector<T>& result = in_place ? nodes.buffers.back() : output;

  AllReduce record{precision_of<T>, Order::tree,      num_leaves,
                   count,           nodes.pointers(), result.data()};
  if (!can_run(algorithm, record, comm.size()) && comm.size() > 1) return;
  const std::uint64_t before = comm.bytes_sent();
  comm.force(algorithm);
  comm.start({"test.all_reduce", record}).wait();
  comm.force(Algorithm::automatic);

  expect_bits(result, sum_of_tree<T>(num_leaves, count).data(), what);
  if (count % (16 * comm.size()) != 0 || algorithm == Algorithm::automatic) return;
  const auto num_nodes = static_cast<index_t>(nodes.buffers.size());
  const index_t formula =
      bytes_by_formula(algorithm, comm.size(), num_nodes, count * static_cast<index_t>(sizeof(T)));
  expect(static_cast<index_t>(comm.bytes_sent() - before) == formula,
         what + ": sent " + std::to_string(comm.bytes_sent() - before) + " bytes, formula " +
             std::to_string(formula));
}

// Cuts by a hash: uneven, some slices empty.
std::vector<index_t> odd_cuts(index_t count, int size, std::uint64_t seed) {
  std::vector<index_t> cuts{0};
  for (int r = 1; r < size; ++r) {
    const index_t left = count - cuts.back();
    const auto hash =
        static_cast<index_t>(reference::mix(seed + static_cast<std::uint64_t>(r)) >> 1);
    cuts.push_back(cuts.back() + (hash % 3 == 0 ? 0 : hash % (left + 1) / 2));
  }
  cuts.push_back(count);
  return cuts;
}

template <class T>
void check_reduce_scatter(Communicator& comm, index_t num_leaves, index_t count) {
  const std::string what = text(comm, "reduce-scatter", Algorithm::tree_direct, num_leaves, count);
  Nodes<T> nodes(part_of(comm.rank(), comm.size(), num_leaves), num_leaves, count);
  const std::vector<index_t> cuts =
      odd_cuts(count, comm.size(), static_cast<std::uint64_t>(num_leaves));
  const auto rank = static_cast<std::size_t>(comm.rank());
  const index_t begin = cuts[rank], size = cuts[rank + 1] - begin;
  std::vector<T> output(static_cast<std::size_t>(size), T{7});
  const std::uint64_t before = comm.bytes_sent();
  ReduceScatter record{precision_of<T>,  Order::tree,  num_leaves, count, cuts,
                       nodes.pointers(), output.data()};
  comm.start({"test.reduce_scatter", record}).wait();
  expect_bits(output, sum_of_tree<T>(num_leaves, count).data() + begin, what);
  const index_t sent =
      static_cast<index_t>(nodes.buffers.size()) * (count - size) * static_cast<index_t>(sizeof(T));
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
      for (const auto algorithm :
           {Algorithm::tree_direct, Algorithm::tree_small, Algorithm::tree_halving}) {
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
  const auto value = [](index_t rank, index_t i) {
    return static_cast<T>((rank * 31 + i * 7) % 101);
  };
  std::vector<T> input, expected, output(static_cast<std::size_t>(count));
  for (index_t i = 0; i < count; ++i) {
    input.push_back(value(comm.rank(), i));
    T sum = 0;
    for (index_t rank = 0; rank < comm.size(); ++rank) sum += value(rank, i);
    expected.push_back(sum);
  }
  std::vector<T> input_again = input, in_place = input;
  comm.force(algorithm);
  comm.start({"test.any",
              AllReduce{precision_of<T>, Order::any, 0, count, {input.data()}, output.data()}})
      .wait();
  comm.start({"test.any",
              AllReduce{precision_of<T>, Order::any, 0, count, {in_place.data()}, in_place.data()}})
      .wait();
  expect_bits(output, expected.data(), what);
  expect_bits(in_place, expected.data(), what + " in place");
  if (algorithm == Algorithm::ring || algorithm == Algorithm::tree_direct) {
    const auto cuts = odd_cuts(count, comm.size(), 5);
    const auto rank = static_cast<std::size_t>(comm.rank());
    std::vector<T> slice(static_cast<std::size_t>(cuts[rank + 1] - cuts[rank]));
    comm.start(
            {"test.any",
             ReduceScatter{
                 precision_of<T>, Order::any, 0, count, cuts, {input_again.data()}, slice.data()}})
        .wait();
    expect_bits(slice, expected.data() + cuts[rank], what + " scattered");
  }
  comm.force(Algorithm::automatic);
}

}  // namespace

void check_reductions(Communicator& comm, bool full) {
  check_tree(comm, full);
  for (const index_t count : {index_t{0}, index_t{1}, index_t{40}, index_t{70'000}}) {
    for (const auto algorithm : {Algorithm::automatic, Algorithm::ring, Algorithm::tree_direct}) {
      check_any_order<float>(comm, algorithm, count);
      check_any_order<double>(comm, algorithm, count);
    }
  }
}

}  // namespace weft::battery
