// What a load takes beside the state itself, and what cutting a checkpoint anew takes: a window,
// however large the tensors are, and whoever wrote them.
#include <catch2/catch.hpp>

#include <new>
#include <optional>

#include "io/checkpoint/reshard.hpp"
#include "tests/io/checkpoint/heap_peak.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

struct HeapUse {
  std::size_t peak_bytes = 0, largest_bytes = 0;  // of all ranks together; of one piece
};

// While all ranks load, without opening: an index grows with the number of blocks.
HeapUse use_of_load(const SomeModel& model, const StateLayout& layout, const std::string& path) {
  const Checkpoint checkpoint = open_checkpoint(path);
  HeapUse use;
  std::vector<std::string> faults(static_cast<std::size_t>(layout.num_ranks()));
  std::optional<HeapPeak> heap;
  on_state_ranks(model, layout, [&](StateRank& rank) {
    const int me = rank.mesh.world_rank();
    rank.mesh.world().barrier();
    if (me == 0) heap.emplace();
    rank.mesh.world().barrier();
    const LoadResult result = load_state(checkpoint, rank.state());
    faults[static_cast<std::size_t>(me)] =
        compare_fingerprints(checkpoint, result.sums, rank.axes());
    rank.mesh.world().barrier();
    if (me == 0) {
      use = {heap->peak_bytes(), heap->largest_bytes()};
      heap.reset();
    }
  });
  for (const std::string& fault : faults) CHECK(fault == "");
  return use;
}

}  // namespace

TEST_CASE("the heap is watched", "[checkpoint][state][memory]") {
  const HeapPeak heap;
  { const std::vector<char> some(3 * mib); }
  void* const aligned = ::operator new (5 * mib, std::align_val_t{64});
  { const std::vector<char> more(2 * mib); }
  ::operator delete (aligned, std::align_val_t{64});
  CHECK(heap.peak_bytes() >= 7 * mib);
  CHECK(heap.peak_bytes() < 8 * mib);
  CHECK(heap.largest_bytes() >= 5 * mib);
  CHECK(heap.largest_bytes() < 6 * mib);
}

TEST_CASE("a load takes a window of memory, not a tensor's", "[checkpoint][state][memory]") {
  // Pieces of the second lie strided in memory where tp cuts it. Tensors of 24 MiB, three of each
  // with the optimizer's; how much of its window a load fills depends on who is quicker, the disk
  // or the rank.
  constexpr index_t width = 1024, rows = 6144;
  const SomeModel model{{"up", cut({rows, width}, 0)}, {"down", cut({width, rows}, 1)}};
  const StateLayout one{.shards = 2}, two{.shards = 2, .tp = 2},
      slices{.shards = 2, .dp = 2, .zero = true, .bucket_bytes = index_t{4} << 20};
  for (const StateLayout& from : {one, two}) {
    const TemporaryFolder folder;
    on_state_ranks(model, from,
                   [&](StateRank& rank) { rank.save(folder.path(), rows, 100, false); });
    for (const StateLayout& to : {one, two, slices}) {
      const HeapUse use = use_of_load(model, to, folder / step_folder_name(rows));
      INFO("from " << from.text() << " to " << to.text() << ": at most " << use.peak_bytes
                   << " bytes, at once " << use.largest_bytes);
      CHECK(use.peak_bytes < static_cast<std::size_t>(to.num_ranks()) * 22 * mib);
      CHECK(use.largest_bytes < 8 * mib);
    }
  }
}

TEST_CASE("a reshard takes a window of memory, not a tensor's", "[checkpoint][state][memory]") {
  constexpr index_t width = 1024;
  const TemporaryFolder folder;
  const auto use_of_reshard = [&](index_t rows, index_t num_shards) {
    const SomeModel model{{"up", cut({rows, width}, 0)}, {"down", cut({width, rows}, 1)}};
    const std::string path = folder / step_folder_name(rows);
    on_state_ranks(model, {.shards = 2, .tp = 2},
                   [&](StateRank& rank) { rank.save(folder.path(), rows, 100, false); });
    const Checkpoint source = open_checkpoint(path);
    const auto shards = cut_evenly(source.index.tensors, num_shards);
    const HeapPeak heap;
    reshard(source, shards, {}, NewPlace(folder / ("made-" + std::to_string(rows)), rows));
    return HeapUse{heap.peak_bytes(), heap.largest_bytes()};
  };
  // 48 MiB of state, and 192.
  const HeapUse small = use_of_reshard(2048, 3), large = use_of_reshard(8192, 3);
  INFO("small " << small.peak_bytes << ", large " << large.peak_bytes << ", at once "
                << large.largest_bytes);
  CHECK(large.peak_bytes < small.peak_bytes + 2 * mib);
  CHECK(large.peak_bytes < 64 * mib);
  CHECK(large.largest_bytes < 9 * mib);
}
