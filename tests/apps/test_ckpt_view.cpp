// `weft ckpt view`: another program, h5dump, shows whole tensors with the bits that were saved, of
// checkpoints that lie in many pieces. Skipped where it is not there, but for what is refused.
#include <catch2/catch.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/ckpt_reshard_command.hpp"
#include "apps/ckpt_view_command.hpp"
#include "io/checkpoint/box_reader.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;
using Catch::Contains;
using nlohmann::json;

namespace fs = std::filesystem;

namespace {

// Two dims cut by rows and by columns, one dim cut and whole; with ZeRO each in many pieces.
const SomeModel& model() {
  static const SomeModel some{{"block.0.up", cut({2400, 6}, 0)},
                              {"block.0.down", cut({6, 2400}, 1)},
                              {"bias", cut({2400}, 0)},
                              {"norm", whole({1500})}};
  return some;
}
const StateLayout zero_grid{.shards = 4, .tp = 2, .dp = 2, .zero = true};

json view_of(const std::string& path, const std::string& to = {}) {
  std::ostringstream text, out;
  CHECK(ckpt_view({.path = path, .out = to, .json = true}, text, out) == 0);
  CHECK_THAT(text.str(), Contains("not checked"));
  return json::parse(out.str());
}

std::string refusal(const CkptViewOptions& options, ExitCode code) {
  std::ostringstream text, out;
  const auto error = error_of([&] { ckpt_view(options, text, out); });
  CHECK(out.str().empty());
  if (!error) return "no error";
  CHECK(error->code() == code);
  return error->what();
}

bool has_h5dump() {
  if (*WEFT_H5DUMP != '\0') return true;
  std::cout << "SKIPPED: no h5dump; install hdf5-tools and configure again\n";
  return false;
}

// In another folder than that of the view, so that paths must be right as seen from the file.
std::string output_of(const std::string& command) {
  FILE* const pipe = ::popen(("cd / && " + command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> bytes{};
  for (std::size_t n; (n = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    text.append(bytes.data(), n);
  INFO(text);
  REQUIRE(::pclose(pipe) == 0);
  return text;
}

using Words = std::vector<std::uint32_t>;

// All elements' bits, row by row, as h5dump gives them.
Words dumped(const std::string& view, const std::string& dataset, const std::string& scratch) {
  output_of(WEFT_H5DUMP " -d '" + dataset + "' -b LE -o '" + scratch + "' '" + view + "'");
  const std::string bytes = read_all(scratch);
  Words words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

// What weft's own reader gives, which verifies each block.
Words read(const Checkpoint& checkpoint, const TensorRecord& tensor) {
  const Box box = whole_box(tensor.global);
  Words words(static_cast<std::size_t>(box.num_elements()));
  read_box(checkpoint, &tensor - checkpoint.index.tensors.data(), box, words.data());
  return words;
}

void check_all_tensors(const Checkpoint& checkpoint, const std::string& view, std::uint64_t salt) {
  const TemporaryFolder scratch;
  CHECK(checkpoint.index.tensors.size() == 12);  // values and two moments
  for (const TensorRecord& tensor : checkpoint.index.tensors) {
    INFO(tensor.kind << " " << tensor.name);
    const Words words = dumped(view, "/" + tensor.kind + "/" + tensor.name, scratch / "raw");
    CHECK(words == read(checkpoint, tensor));
    // And what the test knows of each element.
    const index_t cols = whole_box(tensor.global).cols.size();
    for (index_t i = 0; i < std::ssize(words); ++i) {
      if (words[static_cast<std::size_t>(i)] !=
          bits_of(tensor.name, tensor.kind, {0, i / cols, i % cols}, salt))
        FAIL("element " << i);
    }
  }
}

}  // namespace

TEST_CASE("h5dump shows whole tensors of a tp=2 dp=2 ZeRO checkpoint", "[ckpt_view]") {
  if (!has_h5dump()) return;
  const TemporaryFolder run;
  fs::create_directory(run / "checkpoints");
  const std::string path = save_state(model(), zero_grid, run / "checkpoints", 200, 11);
  const Checkpoint checkpoint = open_checkpoint(path);
  REQUIRE(checkpoint.index.files.size() == 4);
  REQUIRE(checkpoint.index.pieces.size() > 24);
  const json said = view_of(path);
  const std::string view = said["path"];
  CHECK(view == run / "view-step-000000200.h5");
  CHECK(said["from"] == path);
  CHECK(said["step"] == 200);
  CHECK(said["tensors"] == 12);
  CHECK(said["bytes"] == fs::file_size(view));
  CHECK(said["state_fingerprint"] == checkpoint.manifest.state_fingerprint);
  CHECK(std::distance(fs::directory_iterator(run.path()), {}) == 2);  // and no temporary file
  check_all_tensors(checkpoint, view, 11);
  // As people see it: floating-point numbers of the logical shape.
  const std::string text = output_of(WEFT_H5DUMP " -H " + view);
  CHECK_THAT(text, Contains("DATASET \"block.0.up\"") && Contains("H5T_IEEE_F32LE") &&
                       Contains("SIMPLE { ( 2400, 6 ) / ( 2400, 6 ) }") &&
                       Contains("SIMPLE { ( 1500 ) / ( 1500 ) }"));
  CHECK_THAT(output_of(WEFT_H5DUMP " -a /format " + view), Contains("\"weft-view\""));
  // The checkpoint is as it was: nothing new in it, and all sums are right (read above).
  CHECK(std::distance(fs::directory_iterator(path), {}) == 6);

  // Moved together.
  const TemporaryFolder elsewhere;
  fs::rename(run / "checkpoints", elsewhere / "checkpoints");
  fs::rename(view, elsewhere / "view.h5");
  const Checkpoint moved = open_checkpoint(elsewhere / "checkpoints/step-000000200");
  check_all_tensors(moved, elsewhere / "view.h5", 11);
}

TEST_CASE("a view by another place, of other pieces, through links and odd names", "[ckpt_view]") {
  if (!has_h5dump()) return;
  const TemporaryFolder folder, other;
  fs::create_directory(folder / "100%b d");
  const std::string path = save_state(model(), {}, folder / "100%b d", 3, 5);
  const std::string even = folder / "even";
  std::ostringstream said;
  REQUIRE(ckpt_reshard({.path = path, .to = even, .num_shards = 3}, said, said) == 0);
  fs::create_directory(other / "real");
  fs::create_directory_symlink(other / "real", other / "link");
  view_of(path, other / "link/a.h5");
  check_all_tensors(open_checkpoint(path), other / "link/a.h5", 5);
  CHECK(view_of(even)["path"] == folder / "view-even.h5");
  check_all_tensors(open_checkpoint(even), folder / "view-even.h5", 5);
}

TEST_CASE("a shard that is missing shows as NaN, not as numbers", "[ckpt_view]") {
  if (!has_h5dump()) return;
  const TemporaryFolder folder;
  const std::string path = save_state(model(), zero_grid, folder.path(), 7, 2);
  const Checkpoint checkpoint = open_checkpoint(path);
  const std::string view = view_of(path)["path"];
  const Words before = dumped(view, "/value/norm", folder / "raw");
  fs::remove(checkpoint.file_path(0));
  const Words after = dumped(view, "/value/norm", folder / "raw");
  REQUIRE(after.size() == before.size());
  std::vector<bool> is_gone(before.size());
  for (const PieceRecord& piece : checkpoint.index.pieces) {
    const TensorRecord& tensor = checkpoint.tensor_of(piece);
    if (tensor.kind != "value" || tensor.name != "norm" || piece.file != 0) continue;
    for (index_t i = piece.box.cols.begin; i < piece.box.cols.end; ++i)
      is_gone[static_cast<std::size_t>(i)] = true;
  }
  CHECK(std::count(is_gone.begin(), is_gone.end(), true) > 0);
  for (std::size_t i = 0; i < after.size(); ++i)
    CHECK(after[i] == (is_gone[i] ? 0x7fc00000u : before[i]));
}

TEST_CASE("a view that cannot be meant is refused", "[ckpt_view]") {
  const TemporaryFolder folder;
  const std::string path = save_state(model(), {}, folder.path(), 3, 5);
  write_all(folder / "mine", "mine");
  CHECK_THAT(refusal({.path = path, .out = folder / "mine"}, ExitCode::usage),
             Contains("does not exist yet"));
  CHECK(read_all(folder / "mine") == "mine");
  for (const std::string& inside : {path + "/view.h5", path + "/../step-000000003/view.h5"})
    CHECK_THAT(refusal({.path = path, .out = inside}, ExitCode::usage),
               Contains("lies in the checkpoint, which is never changed"));
  CHECK_THAT(refusal({.path = path, .out = folder / "none/view.h5"}, ExitCode::usage),
             Contains("expected a folder") && Contains("found nothing"));
  CHECK_THAT(refusal({.path = folder / "none", .out = folder / "view.h5"}, ExitCode::data),
             Contains(folder / "none"));
  CHECK(std::distance(fs::directory_iterator(path), {}) == 3);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
  // A manifest that is cut is no checkpoint to look at.
  write_all(path + "/MANIFEST", "{}");
  CHECK(refusal({.path = path, .out = folder / "view.h5"}, ExitCode::data) != "no error");
  CHECK_FALSE(fs::exists(folder / "view.h5"));
}
