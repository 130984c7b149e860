// Saves that go on while the state already changes (ranks as threads, each with a writer's thread):
// what is written is the state of start(), in the same bytes as a save that is waited for, and a
// failing disk costs no more than there.
#include <catch2/catch.hpp>

#include <cerrno>
#include <filesystem>
#include <mutex>

#include "io/checkpoint/checkpoint_diff.hpp"
#include "io/checkpoint/verify.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace fs = std::filesystem;

namespace {

const SomeModel& model() {
  static const SomeModel some{
      {"up", cut({12, 4}, 0)}, {"down", cut({5, 12}, 1)}, {"norm", whole({30})}};
  return some;
}
const StateLayout grid{.shards = 2, .tp = 2, .dp = 2, .zero = true};

void require_saved(const SaveResult& result) {
  if (!result.is_saved || !result.fault.empty())
    throw std::runtime_error("not saved: " + result.fault);
}

bool has_staging(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(".staging")) return true;
  }
  return false;
}

// All that the two have but ids and times: tensors, boxes, and each block of numbers with its place
// in the file and its checksum.
void check_same_content(const std::string& a, const std::string& b) {
  const Checkpoint one = open_checkpoint(a), other = open_checkpoint(b);
  CHECK(one.manifest.state_fingerprint == other.manifest.state_fingerprint);
  CHECK(one.index.tensors == other.index.tensors);
  CHECK(one.index.progress == other.index.progress);
  REQUIRE(one.index.pieces == other.index.pieces);
  REQUIRE(one.index.blocks.size() == other.index.blocks.size());
  for (const PieceRecord& piece : one.index.pieces) {
    for (index_t i = blocks_of(piece).begin; i < blocks_of(piece).end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(one.index.blocks[at] == other.index.blocks[at]);
    }
  }
  CHECK(verify_checkpoint(one).num_faults == 0);
}

// What all ranks were told; fails where they were told different things.
class Told {
 public:
  void add(const SaveResult& result) {
    const std::lock_guard lock(mutex_);
    results_.push_back(result);
  }
  const SaveResult& result() const {
    for (const SaveResult& one : results_) {
      CHECK(one.is_saved == results_[0].is_saved);
      CHECK(one.fault == results_[0].fault);
      CHECK(one.step == results_[0].step);
      CHECK(one.num_bytes == results_[0].num_bytes);
    }
    return results_.at(0);
  }

 private:
  std::mutex mutex_;
  std::vector<SaveResult> results_;
};

}  // namespace

TEST_CASE("a state that changes once start() has returned is saved as it was",
          "[checkpoint][async]") {
  RandomParameters random(5200);
  for (int i = 0; i < 12; ++i) {
    const SomeModel some = i == 0 ? model() : random_model(random, random.number(1, 6));
    const StateLayout layout = i == 0 ? grid : random_layout(random);
    INFO(layout.text());
    const TemporaryFolder folder, awaited;
    // The shards are opened before the first of their numbers is looked at.
    SystemHold hold(Call::open);
    on_state_ranks(some, layout, [&](StateRank& rank) {
      const auto writer = rank.make_async_writer(folder.path());
      rank.fill(1);
      if (writer->start(rank.state(), progress_at(3))) throw std::runtime_error("over at once");
      rank.fill(2);
      for (int poll = 0; poll < 3; ++poll) {
        if (writer->poll()) throw std::runtime_error("over while its file is not open");
      }
      if (rank.mesh.world().rank() == 0) hold.release();
      const SaveResult saved = writer->wait();
      require_saved(saved);
      if (saved.step != 3 || !saved.is_in_background) throw std::runtime_error("another save");
      if (const std::string other = rank.difference(2); !other.empty())
        throw std::runtime_error("saving changed the state: " + other);
      rank.clear();
      LoadResult loaded;
      if (const std::string fault = rank.load(saved.path, loaded); !fault.empty())
        throw std::runtime_error(fault);
      if (const std::string other = rank.difference(1); !other.empty())
        throw std::runtime_error(other);
    });
    check_same_content(folder.path() + "/" + step_folder_name(3),
                       save_state(some, layout, awaited.path(), 3, 1));
  }
}

TEST_CASE("saves follow one another in the same memory", "[checkpoint][async]") {
  const TemporaryFolder folder;
  on_state_ranks(model(), grid, [&](StateRank& rank) {
    Communicator& world = rank.mesh.world();
    const auto in_use = [&] { return rank.context.arena.in_use(MemoryKind::workspace); };
    const auto before = in_use();
    const auto writer = rank.make_async_writer(folder.path(), 2);
    const auto wanted = static_cast<std::uint64_t>(rank.share().num_elements()) * sizeof(float) *
                        rank.state().kinds.size();
    if (in_use() - before != wanted)
      throw std::runtime_error("staging is not the share of all kinds");
    for (index_t step = 1; step <= 6; ++step) {
      rank.fill(static_cast<std::uint64_t>(step));
      const std::uint64_t sent = world.bytes_sent();
      if (writer->poll() || world.bytes_sent() != sent)
        throw std::runtime_error("a poll said something while none was under way");
      if (writer->start(rank.state(), progress_at(step))) throw std::runtime_error("over at once");
      rank.fill(99);
      // Polled to its end, or waited for; then one that is waited for from its start.
      std::optional<SaveResult> saved;
      while (step % 2 == 0 && !saved) saved = writer->poll();
      require_saved(saved ? *saved : writer->wait());
      if (writer->is_under_way()) throw std::runtime_error("under way after its end");
      if (step == 4) require_saved(writer->save(rank.state(), rank.share(), progress_at(40)));
    }
    if (in_use() - before != wanted ||
        rank.context.arena.peak_of(MemoryKind::workspace) != in_use())
      throw std::runtime_error("staging grew");
  });
  // The one of step 40 is newer than those of 5 and 6 for the order of steps, and stays.
  std::vector<index_t> steps;
  for (const CheckpointPlace& place : list_checkpoints(folder.path())) {
    steps.push_back(place.step);
    const auto salt = static_cast<std::uint64_t>(place.step == 40 ? 99 : place.step);
    const TemporaryFolder awaited;
    check_same_content(place.path, save_state(model(), grid, awaited.path(), place.step, salt));
  }
  CHECK(steps == std::vector<index_t>{40, 6, 5});
}

TEST_CASE("whichever call fails in the background, nothing is lost", "[checkpoint][async]") {
  struct Fault {
    Call call;
    int reason;
    const char* name;
  };
  for (const Fault& fault : {Fault{Call::open, EACCES, "open"},
                             {Call::pwrite, ENOSPC, "pwrite"},
                             {Call::fsync, EIO, "fsync"},
                             {Call::mkdir, ENOSPC, "mkdir"},
                             {Call::rename, ENOSPC, "rename"},
                             {Call::close, EIO, "close"}}) {
    int num_failed = 0;
    bool was_hit = true;
    for (int k = 0; was_hit && k < 200; ++k) {
      INFO(fault.name << ", call " << k);
      const TemporaryFolder folder;
      Told told, again;
      std::optional<SystemFault> armed;
      on_state_ranks(model(), grid, [&](StateRank& rank) {
        Communicator& world = rank.mesh.world();
        const auto writer = rank.make_async_writer(folder.path(), 2);
        const auto save = [&](index_t step) {
          rank.fill(static_cast<std::uint64_t>(step));
          std::optional<SaveResult> saved = writer->start(rank.state(), progress_at(step));
          rank.fill(99);
          return saved ? *saved : writer->wait();
        };
        require_saved(save(1));
        require_saved(save(2));
        world.barrier();
        if (world.rank() == 0) armed.emplace(fault.call, fault.reason, k);
        world.barrier();
        told.add(save(3));
        world.barrier();
        if (world.rank() == 0) {
          was_hit = armed->num_calls() > k;
          armed.reset();
        }
        world.barrier();
        again.add(save(4));
      });
      const SaveResult& result = told.result();
      const bool is_told = !result.is_saved || !result.fault.empty();
      if (is_told) CHECK(was_hit);
      if (!result.is_saved) ++num_failed;
      CHECK(result.is_saved == fs::exists(folder.path() + "/" + step_folder_name(3)));
      CHECK(again.result().is_saved);
      CHECK(again.result().fault.empty());
      CHECK_FALSE(has_staging(folder.path()));
      for (const CheckpointPlace& place : list_checkpoints(folder.path())) {
        INFO(place.path);
        CHECK(verify_checkpoint(open_checkpoint(place.path)).num_faults == 0);
      }
      CHECK(list_checkpoints(folder.path()).size() >= 2);
    }
    INFO(fault.name);
    CHECK(num_failed > 0);
    CHECK_FALSE(was_hit);
  }
}

TEST_CASE("a writer that ends drops the save under way", "[checkpoint][async]") {
  const TemporaryFolder folder;
  on_state_ranks(model(), grid, [&](StateRank& rank) {
    const auto writer = rank.make_async_writer(folder.path());
    rank.fill(1);
    if (writer->start(rank.state(), progress_at(1))) throw std::runtime_error("over at once");
  });
  CHECK(list_checkpoints(folder.path()).empty());
  sweep(folder.path());  // another rank's file may have come after rank 0's end
  CHECK_FALSE(has_staging(folder.path()));
  const TemporaryFolder awaited;
  CHECK(save_state(model(), grid, folder.path(), 2, 5) ==
        folder.path() + "/" + step_folder_name(2));
}
