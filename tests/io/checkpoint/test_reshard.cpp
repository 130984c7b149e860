// Checkpoints cut anew: as the ranks of the other layout would have cut them, or evenly; every
// element has the bits that the test knows it by; nothing is made of what is damaged.
#include <catch2/catch.hpp>

#include <filesystem>
#include <map>
#include <mutex>

#include "io/checkpoint/box_reader.hpp"
#include "io/checkpoint/reshard.hpp"
#include "io/checkpoint/verify.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace fs = std::filesystem;

namespace {

const ManifestTexts texts{.program = "0.0", .plan_name = "some", .layout = "other"};

CheckpointIndex reshard_to(const std::string& from, const std::vector<ShardCut>& shards,
                           const std::string& to) {
  const Checkpoint source = open_checkpoint(from);
  return reshard(source, shards, texts, NewPlace(to, source.manifest.step));
}

std::vector<ShardCut> even(const std::string& from, index_t num_shards) {
  return cut_evenly(open_checkpoint(from).index.tensors, num_shards);
}

std::vector<ShardCut> as_layout(const SomeModel& model, const StateLayout& layout,
                                const std::string& from) {
  const Checkpoint source = open_checkpoint(from);
  std::vector<ShardCut> shards(static_cast<std::size_t>(layout.num_ranks()));
  on_state_ranks(model, layout, [&](StateRank& rank) {
    shards[static_cast<std::size_t>(rank.mesh.world_rank())] =
        cut_of_rank(source.index.tensors, rank.parameters, rank.share());
  });
  return shards;
}

// "" or the first element that is not `salt`'s, in a model that loads it as one rank.
std::string difference(const SomeModel& model, const std::string& path, std::uint64_t salt) {
  std::string fault;
  on_state_ranks(model, {}, [&](StateRank& rank) {
    rank.clear();
    LoadResult result;
    fault = rank.load(path, result);
    if (fault.empty()) fault = rank.difference(salt);
  });
  return fault;
}

// What lies where, without what a file's metadata makes of it.
std::multimap<std::string, std::string> pieces_of(const std::string& path) {
  const Checkpoint checkpoint = open_checkpoint(path);
  std::multimap<std::string, std::string> pieces;
  for (const PieceRecord& piece : checkpoint.index.pieces) {
    const TensorRecord& tensor = checkpoint.tensor_of(piece);
    std::string box;
    for (const index_t edge :
         {piece.box.rows.begin, piece.box.rows.end, piece.box.cols.begin, piece.box.cols.end})
      box += " " + std::to_string(edge);
    pieces.emplace(checkpoint.file_of(piece).name, tensor.kind + " " + tensor.name + box);
  }
  return pieces;
}

std::map<std::string, std::string> bytes_in(const std::string& folder) {
  std::map<std::string, std::string> bytes;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes[entry.path()] = read_all(entry.path());
  }
  return bytes;
}

}  // namespace

TEST_CASE("cut for another layout as its own ranks would", "[checkpoint][reshard]") {
  for (std::uint64_t seed = 7300; seed < 7320; ++seed) {
    RandomParameters random(seed);
    const SomeModel model = random_model(random, 6);
    const StateLayout from = random_layout(random);
    StateLayout to = random_layout(random);
    to.shards = from.shards;
    to.tp = std::min<int>(to.tp, static_cast<int>(to.shards));
    INFO("seed " << seed << " from " << from.text() << " to " << to.text());
    const TemporaryFolder a, b;
    const std::string source = save_state(model, from, a.path(), 3, seed);
    const std::string expected = save_state(model, to, b.path(), 3, seed);
    const auto before = bytes_in(a.path());
    const std::string made = b / "made";
    const CheckpointIndex index = reshard_to(source, as_layout(model, to, source), made);

    CHECK(bytes_in(a.path()) == before);
    const Checkpoint checkpoint = open_checkpoint(made);
    const Checkpoint wanted = open_checkpoint(expected);
    CHECK(index == checkpoint.index);
    CHECK(checkpoint.manifest.state_fingerprint == wanted.manifest.state_fingerprint);
    CHECK(checkpoint.manifest.layout == "other");
    CHECK(checkpoint.index.progress == wanted.index.progress);
    CHECK(checkpoint.index.identity == wanted.index.identity);
    CHECK(checkpoint.index.tensors == wanted.index.tensors);
    CHECK(checkpoint.index.id != open_checkpoint(source).index.id);
    // The same shards, byte for byte but for the random id in each.
    CHECK(pieces_of(made) == pieces_of(expected));
    CHECK(checkpoint.index.pieces == wanted.index.pieces);
    CHECK(checkpoint.index.files == wanted.index.files);
    CHECK(verify_checkpoint(checkpoint).num_faults == 0);
    CHECK(difference(model, made, seed) == "");
  }
}

TEST_CASE("cut evenly in any number of shards", "[checkpoint][reshard]") {
  // 24,000 elements of values, cut along columns; a vector of more than a block; small ones.
  const SomeModel model{{"up", cut({80, 300}, 1)}, {"wide", whole({40000})}, {"norm", whole({5})}};
  const TemporaryFolder folder;
  const std::string source =
      save_state(model, {.shards = 4, .tp = 2, .dp = 2}, folder.path(), 5, 9);
  for (const index_t num_shards : {1, 2, 3, 7, 500}) {
    INFO(num_shards);
    const std::string made = folder / ("even-" + std::to_string(num_shards));
    const CheckpointIndex index = reshard_to(source, even(source, num_shards), made);
    CHECK(index.files.size() == static_cast<std::size_t>(num_shards));
    CHECK(index.state_fingerprint() == open_checkpoint(source).manifest.state_fingerprint);
    CHECK(verify_checkpoint(open_checkpoint(made)).num_faults == 0);
    CHECK(difference(model, made, 9) == "");
    if (num_shards > 7) continue;
    // A row more or less, or a block of the vector, of each of 3 kinds and on both sides.
    std::map<index_t, index_t> elements;
    for (const PieceRecord& piece : index.pieces) elements[piece.file] += piece.box.num_elements();
    for (const auto& [file, n] : elements)
      CHECK(std::abs(n - 3 * (24000 + 40000 + 5) / num_shards) <= 2 * BlockRecord::most_elements);
  }
}

TEST_CASE("there and back again is the same checkpoint", "[checkpoint][reshard]") {
  RandomParameters random(91);
  const SomeModel model = random_model(random, 5);
  const TemporaryFolder a, b;
  const StateLayout layout{.shards = 2, .tp = 2};
  const std::string source = save_state(model, layout, a.path(), 2, 4);
  reshard_to(source, even(source, 5), b / "there");
  reshard_to(b / "there", as_layout(model, layout, source), b / "back");
  const CheckpointIndex first = open_checkpoint(source).index;
  const CheckpointIndex last = open_checkpoint(b / "back").index;
  CHECK(last.tensors == first.tensors);
  CHECK(last.pieces == first.pieces);
  CHECK(last.files == first.files);
}

TEST_CASE("nothing is made of a damaged checkpoint", "[checkpoint][reshard]") {
  const SomeModel model{{"up", cut({8, 6}, 0)}, {"norm", whole({5})}};
  const TemporaryFolder folder, other;
  const std::string source = save_state(model, {}, folder.path(), 1, 2);
  const std::string shard = source + "/shard-00000.h5", whole_bytes = read_all(shard);
  const std::vector<ShardCut> shards = even(source, 2);
  // Every 7th byte of the file: tensors and the file's own structure.
  for (std::size_t at = 0; at < whole_bytes.size(); at += 7) {
    std::string bytes = whole_bytes;
    bytes[at] ^= 16;
    write_all(shard, bytes);
    const auto error = error_of([&] { reshard_to(source, shards, other / "made"); });
    INFO(at);
    REQUIRE(says(error, shard));
    CHECK(error->code() == ExitCode::data);
    CHECK(fs::is_empty(other.path()));
  }
}

TEST_CASE("a copy that does not arrive is not kept", "[checkpoint][reshard]") {
  const SomeModel model{{"up", cut({8, 6}, 0)}};
  const TemporaryFolder folder, other;
  const Checkpoint source = open_checkpoint(save_state(model, {}, folder.path(), 1, 2));
  NewCheckpoint wrong{.texts = texts,
                      .progress = source.index.progress,
                      .identity = source.index.identity,
                      .tensors = source.index.tensors,
                      .knows_fingerprints = true,
                      .read = [&](index_t tensor, const Box& box, std::uint32_t* out) {
                        read_box(source, tensor, box, out);
                        out[0] ^= tensor == 1 ? 1u : 0u;
                      }};
  const auto error = error_of([&] {
    write_checkpoint(wrong, cut_evenly(source.index.tensors, 2), NewPlace(other / "made", 1));
  });
  REQUIRE(says(error, source.index.tensors[1].name));
  CHECK(says(error, "fingerprint differs"));
  CHECK(fs::is_empty(other.path()));
}

TEST_CASE("where a new checkpoint may be", "[checkpoint][reshard]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& to, const std::string& reason) {
    const auto error = error_of([&] { NewPlace(to, 12); });
    INFO(to);
    REQUIRE(says(error, reason));
    CHECK(error->code() == ExitCode::usage);
  };
  fs::create_directory(folder / "there");
  write_all(folder / "file", "");
  fs::create_symlink(folder / "nothing", folder / "link");
  refusal(folder / "there", "does not exist yet");
  refusal(folder / "there/", "does not exist yet");
  refusal(folder / "file", "does not exist yet");
  refusal(folder / "link", "does not exist yet");
  refusal(folder / "step-000000011", "call it step-000000012");
  refusal(folder / "step-12", "call it step-000000012");
  refusal(folder / ".hidden", "begin with a dot");
  fs::create_directory(folder / "saved");
  // In a checkpoint, at any depth and by any way, it would be one file too many.
  const std::string inside = save_state({{"norm", whole({5})}}, {}, folder / "saved", 3, 1);
  fs::create_symlink(inside, folder / "by-link");
  const auto before = bytes_in(folder.path());
  for (const std::string& to :
       {inside + "/made", inside + "/a/b/made", inside + "/a/../made", folder / "by-link/a/made"})
    refusal(to, inside + " is one");
  CHECK(bytes_in(folder.path()) == before);
  CHECK(!fs::exists(inside + "/a"));
  const NewPlace place(folder / "new/deep/made/", 12);
  CHECK(place.path() == folder / "new/deep/made");
  CHECK(fs::is_empty(folder / "new/deep"));
  // A run's own folder is locked, by either sign of one.
  {
    const NewPlace step(folder / "run/step-000000012", 12);
    refusal(folder / "run/other", "is in use by");
  }
  const NewPlace free(folder / "run/other", 12);
}

TEST_CASE("shards of another model", "[checkpoint][reshard]") {
  const SomeModel model{{"up", cut({8, 6}, 0)}, {"norm", whole({5})}};
  const TemporaryFolder folder;
  const std::string source = save_state(model, {}, folder.path(), 1, 2);
  const auto refusal = [&](const SomeModel& other, const std::string& reason) {
    const auto error =
        error_of([&] { reshard_to(source, as_layout(other, {}, source), folder / "made"); });
    REQUIRE(says(error, reason));
    CHECK(error->code() == ExitCode::usage);
    CHECK(!fs::exists(folder / "made"));
  };
  refusal({{"up", cut({8, 6}, 0)}, {"norm", whole({5})}, {"more", whole({5})}},
          "a tensor more (value)");
  refusal({{"up", cut({8, 7}, 0)}, {"norm", whole({5})}}, "with shape [8, 7], found [8, 6]");
  refusal({{"up", cut({8, 6}, 0)}}, "norm (exp_avg) has 5 elements");
}
