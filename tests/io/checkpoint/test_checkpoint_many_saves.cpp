// A run that saves for weeks takes no more memory, descriptors or threads after its last save than
// after its hundredth. WEFT_MANY_SAVES: how many saves, 1000 for all that was asked.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>

#include "tests/io/checkpoint/heap_peak.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace fs = std::filesystem;

namespace {

constexpr index_t first_saves = 100;

index_t num_saves() {
  const char* const text = std::getenv("WEFT_MANY_SAVES");
  return text && *text ? std::atol(text) : 300;
}

index_t entries_of(const std::string& folder) {
  index_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

// What the process has, all ranks together.
struct Holdings {
  index_t heap_bytes = 0;      // in use, beside what was before
  index_t resident_bytes = 0;  // VmRSS
  index_t descriptors = 0;
  index_t threads = 0;
};

Holdings holdings(const HeapPeak& heap) {
  Holdings now{.descriptors = entries_of("/proc/self/fd"),
               .threads = entries_of("/proc/self/task")};
  now.heap_bytes = heap.bytes_in_use();
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word == "VmRSS:" && file >> now.resident_bytes) now.resident_bytes *= 1024;
  }
  REQUIRE(now.resident_bytes > 0);
  return now;
}

std::ostream& operator<<(std::ostream& text, const Holdings& all) {
  return text << all.resident_bytes / 1024 << " KiB resident, " << all.heap_bytes
              << " bytes of heap in use, " << all.descriptors << " descriptors, " << all.threads
              << " threads";
}

const SomeModel& model() {
  static const SomeModel some{
      {"up", cut({64, 64}, 0)}, {"down", cut({64, 64}, 1)}, {"norm", whole({300})}};
  return some;
}

// save(rank, number of the save); two ranks, half of the state each.
template <typename MakeSave>
void require_flat(const MakeSave& make_save) {
  const TemporaryFolder folder;
  Holdings before, first, last;
  const HeapPeak heap;
  const index_t count = num_saves();
  on_state_ranks(model(), {.shards = 2, .dp = 2, .zero = true}, [&](StateRank& rank) {
    Communicator& world = rank.mesh.world();
    // All ranks rest while one looks.
    const auto look = [&](Holdings& at) {
      world.barrier();
      if (world.rank() == 0) at = holdings(heap);
      world.barrier();
    };
    const auto save = make_save(rank, folder.path());
    rank.fill(1);
    look(before);
    for (index_t i = 1; i <= count; ++i) {
      // Two steps in turn, of which the second retires the first: losses are state and would grow,
      // and HDF5 keeps some freed memory for each size that it once needed.
      const index_t step = 200 + i % 2;
      if (world.rank() == 0 && step == 200) fs::remove_all(folder / step_folder_name(201));
      const SaveResult saved = save(progress_at(step));
      if (!saved.is_saved || !saved.fault.empty())
        throw std::runtime_error("not saved: " + saved.fault);
      if (i == first_saves) look(first);
    }
    look(last);
  });
  WARN("before " << before << "\nafter " << first_saves << " saves " << first << "\nafter " << count
                 << " " << last);
  REQUIRE(count > first_saves);
  CHECK(last.descriptors == first.descriptors);
  CHECK(last.threads == first.threads);
  // One number more each save would be found.
  CHECK(last.heap_bytes - first.heap_bytes < (count - first_saves) * index_t{8});
  // A page each save would be found, of 4 KiB; the allocator's own moods are below that.
  CHECK(last.resident_bytes - first.resident_bytes < (count - first_saves) * index_t{4096});
  CHECK(list_checkpoints(folder.path()).size() == 1);
}

}  // namespace

TEST_CASE("saves that are waited for leave nothing behind", "[checkpoint][many]") {
  require_flat([](StateRank& rank, const std::string& folder) {
    const CheckpointOptions options{.folder = folder,
                                    .retention = {.keep = 1},
                                    .read_back = true,
                                    .program = "0.0",
                                    .plan_name = "some",
                                    .layout = "some"};
    const auto writer =
        std::make_shared<CheckpointWriter>(rank.mesh.world(), options, some_identity());
    return [&rank, writer](const RunProgress& progress) {
      return writer->save(rank.state(), rank.share(), progress);
    };
  });
}

TEST_CASE("saves beside the steps leave nothing behind", "[checkpoint][many]") {
  require_flat([](StateRank& rank, const std::string& folder) {
    const std::shared_ptr<CheckpointWriter> writer = rank.make_async_writer(folder, 1);
    return [&rank, writer](const RunProgress& progress) {
      std::optional<SaveResult> saved = writer->start(rank.state(), progress);
      for (int poll = 0; poll < 3 && !saved; ++poll) saved = writer->poll();
      return saved ? *saved : writer->wait();
    };
  });
}
