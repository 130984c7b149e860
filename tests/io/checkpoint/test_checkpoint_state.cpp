// States saved on one layout and loaded on another (ranks as threads): every element has the bits
// that the test knows it by, nothing else is written, and what is read is little more than what is
// held.
#include <catch2/catch.hpp>

#include <mutex>
#include <set>

#include "io/checkpoint/checkpoint_diff.hpp"
#include "io/checkpoint/verify.hpp"
#include "parallel/comm/local_transport.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

// Other models each time the seed below is changed; a failure prints what it was.
constexpr std::uint64_t first_seed = 4100;
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t num_models = 4;
#else
constexpr std::uint64_t num_models = 40;
#endif

// Loads on `layout`, compares every bit; returns "" or the first fault. `save_again`: as step.
std::string load_and_compare(const SomeModel& model, const StateLayout& layout,
                             const std::string& path, std::uint64_t salt,
                             const std::string& folder = "", index_t save_again = 0) {
  std::mutex mutex;
  std::string fault;
  on_state_ranks(model, layout, [&](StateRank& rank) {
    rank.clear();
    LoadResult result;
    std::string mine = rank.load(path, result);
    if (mine.empty()) mine = rank.difference(salt);
    if (save_again > 0) {
      const SaveResult saved = rank.save(folder, save_again);
      if (mine.empty()) mine = saved.fault;
    }
    const std::lock_guard lock(mutex);
    if (fault.empty() && !mine.empty())
      fault = "rank " + std::to_string(rank.mesh.world_rank()) + ": " + mine;
  });
  return fault;
}

bool are_equal(const std::string& a, const std::string& b) {
  const auto all = diff_checkpoints(open_checkpoint(a), open_checkpoint(b));
  return !all.empty() && std::all_of(all.begin(), all.end(), [](const TensorDifference& one) {
    return one.difference == TensorDifference::Kind::equal;
  });
}

}  // namespace

TEST_CASE("from any layout to any other and back, bit for bit", "[checkpoint][state]") {
  for (std::uint64_t seed = first_seed; seed < first_seed + num_models; ++seed) {
    RandomParameters random(seed);
    const SomeModel model = random_model(random, random.number(1, 9));
    const StateLayout a = random_layout(random), b = random_layout(random);
    INFO("seed " << seed << ", from " << a.text() << " to " << b.text());
    const TemporaryFolder folder;
    const std::string first = save_state(model, a, folder.path(), 1, seed);
    CHECK(verify_checkpoint(open_checkpoint(first)).faults.empty());
    CHECK(load_and_compare(model, b, first, seed, folder.path(), 2) == "");
    const std::string second = folder / step_folder_name(2);
    CHECK(load_and_compare(model, a, second, seed, folder.path(), 3) == "");
    const std::string third = folder / step_folder_name(3);
    CHECK(are_equal(first, second));
    CHECK(are_equal(first, third));

    std::set<std::string> states, ids;
    for (const std::string& path : {first, second, third}) {
      const Checkpoint checkpoint = open_checkpoint(path);
      states.insert(checkpoint.index.state_fingerprint());
      CHECK(checkpoint.manifest.state_fingerprint == checkpoint.index.state_fingerprint());
      ids.insert(checkpoint.manifest.id);
      CHECK(checkpoint.index.progress == progress_at(checkpoint.manifest.step));
      CHECK(checkpoint.index.identity == some_identity());
    }
    CHECK(states.size() == 1);
    CHECK(ids.size() == 3);
    // A layout of its own writes the other state, and it is told apart.
    const std::string other = save_state(model, b, folder.path(), 4, seed + 1000);
    CHECK(states.count(open_checkpoint(other).index.state_fingerprint()) == 0);
    CHECK_FALSE(are_equal(first, other));
  }
}

TEST_CASE("a writer's later saves are as good as its first", "[checkpoint][state]") {
  RandomParameters random(7);
  const SomeModel model = random_model(random, 6);
  const StateLayout layout{.shards = 2, .tp = 2, .dp = 2};
  const TemporaryFolder folder;
  on_state_ranks(model, layout, [&](StateRank& rank) {
    CheckpointOptions options;
    options.folder = folder.path();
    options.retention.keep = 100;
    CheckpointWriter writer(rank.mesh.world(), options, {});
    Communicator& dp = rank.mesh.axis("dp");
    Communicator& tp = rank.mesh.axis("tp");
    for (const index_t step : {1, 2, 3}) {
      rank.fill(static_cast<std::uint64_t>(step));
      // The last time replicas write each other's part, so that every shard is another file.
      const int part = step < 3 ? dp.rank() : 1 - dp.rank();
      const FlatRanges share =
          share_to_write(rank.parameters, tp.rank(), tp.size(), part, dp.size());
      const SaveResult saved = writer.save(rank.state(), share, progress_at(step));
      if (!saved.is_saved || !saved.fault.empty()) throw std::runtime_error(saved.fault);
    }
  });
  for (const index_t step : {1, 2, 3}) {
    const std::string path = folder / step_folder_name(step);
    const Checkpoint checkpoint = open_checkpoint(path);
    CHECK(verify_checkpoint(checkpoint).faults.empty());
    CHECK(load_and_compare(model, {.shards = 2}, path, static_cast<std::uint64_t>(step)) == "");
    for (std::size_t file = 0; file < checkpoint.index.files.size(); ++file) {
      const std::string name = checkpoint.file_path(static_cast<index_t>(file));
      const hdf5::Reader shard(read_all(name), name);
      CHECK(shard.root_text("id") == checkpoint.manifest.id);
      CHECK(shard.root_integers("step") == std::vector{static_cast<std::uint64_t>(step)});
    }
  }
}

TEST_CASE("the index has each tensor with its kinds and shape, whatever the layout",
          "[checkpoint][state]") {
  const SomeModel model{{"qkv", cut({72, 5}, 0, {{"q", "k", "v"}, 2})},
                        {"up", cut({7, 10}, 1)},
                        {"norm", whole({9})},
                        {"one", cut({1}, 0)}};
  std::set<std::string> lists;
  for (const StateLayout& layout :
       {StateLayout{.shards = 12, .tp = 4, .dp = 3, .zero = true}, StateLayout{},
        StateLayout{.shards = 3, .tp = 3, .dp = 2}, StateLayout{.shards = 2, .tp = 1, .dp = 7}}) {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = open_checkpoint(save_state(model, layout, folder.path(), 1, 9));
    std::string list;
    for (const TensorRecord& tensor : checkpoint.index.tensors)
      list += tensor.name + " " + tensor.kind + " " + tensor.global.text() + "\n";
    lists.insert(list);
    CHECK(checkpoint.index.files.size() == static_cast<std::size_t>(layout.num_ranks()));
    CHECK(checkpoint.index.num_elements() == 3 * (72 * 5 + 7 * 10 + 9 + 1));
  }
  const std::string wanted = [] {
    std::string list;
    const std::vector<std::pair<std::string, Shape>> tensors{{"k", {24, 5}},  {"norm", {9}},
                                                             {"one", {1}},    {"q", {24, 5}},
                                                             {"up", {7, 10}}, {"v", {24, 5}}};
    for (const auto& [name, shape] : tensors) {
      for (const char* kind : {"exp_avg", "exp_avg_sq", "value"})
        list += name + " " + kind + " " + shape.text() + "\n";
    }
    return list;
  }();
  CHECK(lists == std::set<std::string>{wanted});
}

TEST_CASE("a rank reads little more than it holds", "[checkpoint][state]") {
  SomeModel model;
  for (int i = 0; i < 3; ++i) {
    const std::string block = "block." + std::to_string(i);
    model.push_back({block + ".up", cut({768, 512}, 0)});
    model.push_back({block + ".down", cut({512, 768}, 1)});
    model.push_back({block + ".norm", whole({512})});
  }
  const auto layout = [](int tp, int dp, bool zero, index_t bucket) {
    return StateLayout{.shards = 4, .tp = tp, .dp = dp, .zero = zero, .bucket_bytes = bucket};
  };
  constexpr index_t mib = index_t{1} << 20;
  const TemporaryFolder folder;
  index_t step = 0;
  for (const StateLayout& from : {layout(2, 2, true, 4 * mib), layout(1, 3, true, 4 * mib)}) {
    ++step;
    on_state_ranks(model, from, [&](StateRank& rank) { rank.save(folder.path(), step); });
    const std::string path = folder / step_folder_name(step);
    for (const StateLayout& to :
         {layout(2, 2, true, 4 * mib), layout(2, 4, true, 4 * mib), layout(4, 1, false, mib),
          layout(1, 2, true, 4 * mib), layout(1, 1, false, mib)}) {
      INFO("from " << from.text() << " to " << to.text());
      std::mutex mutex;
      std::string faults;
      double most = 0.0;
      on_state_ranks(model, to, [&](StateRank& rank) {
        LoadResult result;
        const std::string fault = rank.load(path, result);
        index_t held = 0;
        for (const StateKind& kind : rank.state().kinds) {
          for (const HeldBox& box : boxes_in(rank.parameters, kind.held))
            held += 4 * box.box.box.num_elements();
        }
        const std::lock_guard lock(mutex);
        faults += fault;
        if (static_cast<index_t>(result.bytes_held) != held) faults += "another count of bytes";
        most = std::max(most, static_cast<double>(result.bytes_read) / static_cast<double>(held));
      });
      CHECK(faults == "");
      CHECK(most >= 1.0);
      CHECK(most <= 1.1);
    }
  }
}

TEST_CASE("another model's checkpoint is refused by name", "[checkpoint][state]") {
  const SomeModel saved{{"up", cut({8, 6}, 0)}, {"down", whole({5})}};
  const TemporaryFolder folder;
  const std::string path = save_state(saved, {.shards = 2, .tp = 2}, folder.path(), 1, 1);
  const auto fault_of = [&](const SomeModel& model) {
    std::mutex mutex;
    std::set<std::string> faults;
    on_state_ranks(model, {.dp = 2}, [&](StateRank& rank) {
      LoadResult result;
      std::string fault;
      const auto error = error_of([&] { fault = rank.load(path, result); });
      if (error) fault = error->code() == ExitCode::usage ? error->what() : "another code";
      const std::lock_guard lock(mutex);
      faults.insert(fault);
    });
    return faults.size() == 1 ? *faults.begin() : "ranks differ";
  };
  CHECK(fault_of(saved) == "");
  CHECK_THAT(fault_of({{"up", cut({8, 7}, 0)}, {"down", whole({5})}}),
             Catch::Contains("up (value)") && Catch::Contains(Shape{8, 6}.text()) &&
                 Catch::Contains(Shape{8, 7}.text()));
  CHECK_THAT(fault_of({{"up", whole({8, 6})}, {"more", whole({5})}}),
             Catch::Contains("more (value)") && Catch::Contains("found none"));
  CHECK_THAT(fault_of({{"up", whole({8, 6})}}), Catch::Contains("down"));
}

TEST_CASE("a tensor that no rank has is another model's, and nothing is loaded",
          "[checkpoint][state]") {
  const NamedParameter up{"up", cut({8, 6}, 0)}, down{"down", whole({5})}, last{"last", whole({3})};
  const TemporaryFolder folder;
  const std::string path =
      save_state({up, down, last}, {.shards = 2, .tp = 2}, folder.path(), 1, 1);
  // Ranks with models of their own, as stages have; with the state 9, or only a part of its kinds.
  const auto faults_of = [&](const std::vector<SomeModel>& stages, std::size_t num_kinds = 3) {
    std::vector<std::string> faults(stages.size());
    run_ranks(static_cast<int>(stages.size()), [&](Transport& transport) {
      const auto at = static_cast<std::size_t>(transport.rank());
      StateRank rank(stages[at], {.dp = static_cast<int>(stages.size())}, transport);
      rank.fill(9);
      LocalState state = rank.state();
      state.kinds.erase(state.kinds.begin() + static_cast<std::ptrdiff_t>(num_kinds),
                        state.kinds.end());
      LoadResult result;
      faults[at] = rank.load(path, state, result);
      // The checkpoint's state is 1.
      const std::string difference = rank.difference(faults[at].empty() ? 1 : 9);
      if (!difference.empty()) faults[at] += " and the state is neither: " + difference;
    });
    return std::set<std::string>(faults.begin(), faults.end());
  };
  CHECK(faults_of({{up, down, last}}) == std::set<std::string>{""});
  CHECK(faults_of({{up}, {down, last}}) == std::set<std::string>{""});
  CHECK(faults_of({{up}, {down}, {last}}) == std::set<std::string>{""});

  const auto told = [&](const std::set<std::string>& faults, const std::string& tensor,
                        const std::string& count) {
    REQUIRE(faults.size() == 1);
    CHECK_THAT(*faults.begin(), Catch::StartsWith(path + ": it has the tensor " + tensor) &&
                                    Catch::Contains(count + " of its 9 tensors") &&
                                    !Catch::Contains("neither"));
  };
  told(faults_of({{up, down}}), "last (exp_avg)", "3");
  told(faults_of({{up}, {down}}), "last (exp_avg)", "3");
  told(faults_of({{last}, {last}, {last}}), "down (exp_avg)", "6");
  // Without moments, as plain SGD is.
  told(faults_of({{up, down, last}}, 1), "down (exp_avg)", "6");
  told(faults_of({{up}, {last, down}}, 1), "down (exp_avg)", "6");
}
