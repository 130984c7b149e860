// index.h5: what is written is read; an index that contradicts itself is refused with the reason.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "core/hash.hpp"
#include "io/checkpoint/checkpoint_index.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "tests/io/checkpoint/some_index.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

CheckpointIndex example() { return some_index({{300, 200}, {7}, {1, 1}, {40, 3}}, 6, 3, 1); }

// Writes the example with `change` made to it; the message of the Error(data) that reading it
// gives.
std::string fault_after(const std::function<void(CheckpointIndex&)>& change) {
  CheckpointIndex index = example();
  change(index);
  const std::string bytes = encode(index);
  const auto error = error_of([&] { decode_index(bytes, "a/index.h5"); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::data);
  CHECK(says(error, "a/index.h5"));
  return error->what();
}

PieceRecord& piece_of(CheckpointIndex& index, index_t tensor) {
  return *std::find_if(index.pieces.begin(), index.pieces.end(),
                       [&](const PieceRecord& piece) { return piece.tensor == tensor; });
}

}  // namespace

TEST_CASE("an index survives writing and reading", "[index]") {
  CHECK(decode_index(encode(example()), "index.h5") == example());
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const CheckpointIndex index =
        some_index({{seed + 1, 100}, {1000 * seed + 3}, {3, 40000}}, 1 + seed, 1 + seed % 5, seed);
    CHECK(decode_index(encode(index), "index.h5") == index);
  }
}

TEST_CASE("an index without tensors survives writing and reading", "[index]") {
  CheckpointIndex index;
  index.id = example().id;
  CHECK(decode_index(encode(index), "index.h5") == index);
}

TEST_CASE("the same index gives the same bytes", "[index]") {
  CHECK((encode(example()) == encode(example())));
}

TEST_CASE("losses keep their bits", "[index]") {
  CheckpointIndex index = example();
  index.progress.losses = {-0.0, std::bit_cast<double>(std::uint64_t{0x7ff8dead0000beef}), 5e-324};
  const CheckpointIndex read = decode_index(encode(index), "index.h5");
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::bit_cast<std::uint64_t>(read.progress.losses[i]) ==
          std::bit_cast<std::uint64_t>(index.progress.losses[i]));
}

TEST_CASE("a state's fingerprint is the tensors', in any order and however they are cut",
          "[index]") {
  const CheckpointIndex index = example();
  CheckpointIndex other = some_index({{1}}, 1, 1, 2);
  other.tensors = index.tensors;
  std::reverse(other.tensors.begin(), other.tensors.end());
  CHECK(other.state_fingerprint() == index.state_fingerprint());
  CHECK(index.num_elements() == 300 * 200 + 7 + 1 + 40 * 3);

  std::set<std::string> all{index.state_fingerprint()};
  const auto add_changed = [&](auto change) {
    CheckpointIndex changed = index;
    change(changed.tensors[0]);
    CHECK(all.insert(changed.state_fingerprint()).second);
  };
  add_changed([](TensorRecord& t) { t.fingerprint ^= 1; });
  add_changed([](TensorRecord& t) { t.name += "x"; });
  add_changed([](TensorRecord& t) { t.kind = "momentum"; });
  add_changed([](TensorRecord& t) { t.global = {200, 300}; });
  add_changed([](TensorRecord& t) { t.global = {60000}; });
}

TEST_CASE("a state's fingerprint is what FORMAT.md says", "[index]") {
  CheckpointIndex index;
  index.tensors = {{.name = "a", .kind = "value", .global = {2, 3}, .fingerprint = 0xabc},
                   {.name = "b", .kind = "value", .global = {4}, .fingerprint = 1}};
  const std::string a = "value a f32 [2, 3] 0000000000000abc";
  const std::string b = "value b f32 [4] 0000000000000001";
  Hash128 sum = hash128(a.data(), a.size());
  sum += hash128(b.data(), b.size());
  CHECK(index.state_fingerprint() == sum.text());
}

TEST_CASE("a block's checksum is XXH3", "[index]") {
  // Of no bytes, from the reference implementation's documentation of its test vectors.
  CHECK(block_checksum("", 0) == 0x2d06800538d394c2u);
  CHECK(block_checksum("a", 1) != block_checksum("b", 1));
}

TEST_CASE("tensors that cannot be are refused", "[index]") {
  CHECK_THAT(fault_after([](auto& i) { i.id = "0123"; }), Catch::Contains("'0123'"));
  CHECK_THAT(fault_after([](auto& i) { i.progress.losses.pop_back(); }),
             Catch::Contains("2 losses of 3 steps"));
  CHECK_THAT(fault_after([](auto& i) { i.tensors[1].name = ""; }), Catch::Contains("the name ''"));
  CHECK_THAT(fault_after([](auto& i) { i.tensors[2].name = i.tensors[0].name; }),
             Catch::Contains("block.0.weight twice"));
  CHECK_THAT(fault_after([](auto& i) { i.tensors[1].dtype = "f16"; }), Catch::Contains("'f16'"));
  CHECK_THAT(fault_after([](auto& i) { i.tensors[1].global = {0}; }),
             Catch::Contains("block.1.weight has the shape [0]"));
  CHECK_THAT(fault_after([](auto& i) {
               i.tensors[0].global = {index_t{1} << 40, 1 << 21};
             }),
             Catch::Contains("has the shape"));
  CHECK_THAT(fault_after([](auto& i) {
               i.tensors[0].global = {-5, 200};
             }),
             Catch::Contains("number of rows"));
}

TEST_CASE("pieces that cannot be are refused", "[index]") {
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 3).tensor = 4; }),
             Catch::Contains("piece of tensor 4"));
  CHECK_THAT(fault_after([](auto& i) { std::swap(i.pieces.front(), i.pieces.back()); }),
             Catch::Contains("after those of tensor 3"));
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 0).file = 3; }), Catch::Contains("in file 3"));
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 0).box.rows.end = 301; }),
             Catch::Contains("not inside [300, 200]"));
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 1).box.rows.end = 2; }),
             Catch::Contains("not inside [7]"));
  CHECK_THAT(
      fault_after([](auto& i) { piece_of(i, 0).box.cols.end = piece_of(i, 0).box.cols.begin; }),
      Catch::Contains("not inside"));
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 0).box.cols.begin = -1; }),
             Catch::Contains("a piece's number"));
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 0).first_block = 1 << 20; }),
             Catch::Contains("blocks from 1048576"));
  CHECK_THAT(fault_after([](auto& i) { piece_of(i, 0).file = (piece_of(i, 0).file + 1) % 3; }),
             Catch::Contains("block"));
  CHECK_THAT(fault_after([](auto& i) { --piece_of(i, 0).first_block; }), Catch::Contains("block"));
}

TEST_CASE("a block belongs to one piece", "[index]") {
  std::mt19937 random(1);
  CheckpointIndex index = some_index({{2, 8}}, 1, 1, 1);
  index.blocks.clear();
  index.pieces = {{.box = {{0, 1}, {0, 8}}}, {.box = {{1, 2}, {0, 8}}}};
  place_pieces(index, random);
  CHECK(decode_index(encode(index), "index.h5") == index);
  index.pieces[1].first_block = index.pieces[0].first_block;
  const auto error = error_of([&] { decode_index(encode(index), "index.h5"); });
  CHECK(says(error, "rows 1-2 and columns 0-8"));
  CHECK(says(error, "which another piece has"));
}

TEST_CASE("pieces that leave out or repeat elements are refused", "[index]") {
  // By their own blocks, so that only the boxes are wrong.
  const auto fault_of = [](std::vector<Box> boxes) {
    std::mt19937 random(1);
    CheckpointIndex index = some_index({{1}}, 1, 1, 1);
    index.blocks.clear();
    index.pieces.clear();
    index.tensors[0].global = {10, 10};
    for (const Box& box : boxes) index.pieces.push_back({.box = box});
    place_pieces(index, random);
    const std::string bytes = encode(index);
    const auto error = error_of([&] { decode_index(bytes, "index.h5"); });
    return error ? std::string(error->what()) : "";
  };
  CHECK(fault_of({{{0, 10}, {0, 10}}}) == "");
  CHECK(fault_of({{{0, 5}, {0, 3}}, {{0, 10}, {3, 10}}, {{5, 10}, {0, 3}}}) == "");
  CHECK_THAT(fault_of({}), Catch::Contains("0 of 100 elements of value block.0.weight"));
  CHECK_THAT(fault_of({{{0, 10}, {0, 9}}}), Catch::Contains("90 of 100 elements"));
  CHECK_THAT(fault_of({{{0, 10}, {0, 10}}, {{9, 10}, {9, 10}}}), Catch::Contains("overlap"));
  CHECK_THAT(fault_of({{{9, 10}, {9, 10}}, {{0, 10}, {0, 10}}}), Catch::Contains("overlap"));
  CHECK_THAT(fault_of({{{0, 10}, {0, 10}}, {{0, 10}, {0, 10}}}), Catch::Contains("overlap"));
  // As many elements as the tensor has, one of them twice, one not at all.
  CHECK_THAT(fault_of({{{0, 9}, {0, 10}}, {{8, 9}, {0, 1}}, {{9, 10}, {1, 10}}}),
             Catch::Contains("rows 8-9 and columns 0-1") && Catch::Contains("overlap"));
}

TEST_CASE("overlaps are found wherever they are", "[index]") {
  // Against a count of each element: boxes at random, tensors small.
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    CheckpointIndex index = some_index({{6, 6}}, 1 + random() % 8, 1, random());
    index.blocks.clear();
    PieceRecord& moved = index.pieces[random() % index.pieces.size()];
    for (Range* range : {&moved.box.rows, &moved.box.cols}) {
      if (random() % 2) continue;
      range->begin = random() % 6;
      range->end = range->begin + 1 + random() % (6 - static_cast<unsigned>(range->begin));
    }
    std::vector<int> times(36, 0);
    for (const PieceRecord& piece : index.pieces)
      for (index_t r = piece.box.rows.begin; r < piece.box.rows.end; ++r)
        for (index_t c = piece.box.cols.begin; c < piece.box.cols.end; ++c)
          ++times[static_cast<std::size_t>(6 * r + c)];
    const bool is_cover = std::count(times.begin(), times.end(), 1) == 36;
    place_pieces(index, random);
    const std::string bytes = encode(index);
    CHECK(!error_of([&] { decode_index(bytes, "index.h5"); }) == is_cover);
    refused += !is_cover;
  }
  CHECK(refused > 50);
  CHECK(refused < 290);
}

TEST_CASE("files and blocks that leave gaps are refused", "[index]") {
  CHECK_THAT(fault_after([](auto& i) { i.files[1].name = i.files[0].name; }),
             Catch::Contains("cannot be one of its files"));
  for (const char* name : {"", "../shard-00000.h5", "a/b", ".lease"})
    CHECK_THAT(fault_after([&](auto& i) { i.files[1].name = name; }),
               Catch::Contains("cannot be one of its files"));
  CHECK_THAT(fault_after([](auto& i) { ++i.files[1].blocks.begin; }),
             Catch::Contains("has blocks"));
  CHECK_THAT(fault_after([](auto& i) {
               i.files[1].blocks = i.files[0].blocks;
               i.files[1].num_bytes = i.files[0].num_bytes;
             }),
             Catch::Contains("shard-00001.h5 has blocks 0 to"));
  CHECK_THAT(fault_after([](auto& i) { i.files[1].blocks.end += 1000; }),
             Catch::Contains("its turn"));
  CHECK_THAT(fault_after([](auto& i) { i.files.pop_back(); }), Catch::Contains("its files have"));
  CHECK_THAT(fault_after([](auto& i) { ++i.files[0].num_bytes; }),
             Catch::Contains("the blocks of"));
  CHECK_THAT(fault_after([](auto& i) { --i.files[0].num_bytes; }), Catch::Contains("its turn"));
  CHECK_THAT(fault_after([](auto& i) { ++i.blocks[1].offset; }), Catch::Contains("block 1 of"));
  CHECK_THAT(fault_after([](auto& i) { i.blocks[1].num_bytes = 0; }), Catch::Contains("0 bytes"));
  CHECK_THAT(fault_after([](auto& i) { i.blocks[1].num_bytes = 65537; }),
             Catch::Contains("65537 bytes"));
  CHECK_THAT(fault_after([](auto& i) { i.blocks[1].num_bytes = -std::uint64_t{1}; }),
             Catch::Contains("bytes at"));
}

TEST_CASE("another kind of HDF5 file is no index", "[index]") {
  using Integers = std::vector<std::uint64_t>;
  const auto fault_of = [](const std::vector<hdf5::Attribute>& root) {
    const std::string bytes = hdf5::make_file({}, root);
    const auto error = error_of([&] { decode_index(bytes, "index.h5"); });
    REQUIRE(error);
    CHECK(error->code() == ExitCode::data);
    return std::string(error->what());
  };
  CHECK_THAT(fault_of({}), Catch::Contains("format"));
  CHECK_THAT(fault_of({{"format", "weft-shard"}}), Catch::Contains("'weft-shard'"));
  CHECK_THAT(fault_of({{"format", "weft-checkpoint-index"}, {"version", Integers{2, 1}}}),
             Catch::Contains("2.1") && Catch::Contains("reads 1.x"));
}

TEST_CASE("a hundred thousand pieces of one tensor are read in a second or so", "[index]") {
  std::mt19937 random(4);
  const auto seconds_to_decode = [](const CheckpointIndex& index) {
    const std::string bytes = encode(index);
    const auto start = std::chrono::steady_clock::now();
    CHECK(decode_index(bytes, "index.h5").pieces.size() == index.pieces.size());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double cut = seconds_to_decode(some_index({{3000, 3000}}, 100000, 4, 4));
  // All in one row, then all in one column: each piece meets all others in one of the dims.
  const double row = seconds_to_decode(some_index({{300000}}, 100000, 1, 4));
  const double column = seconds_to_decode(some_index({{300000, 1}}, 100000, 1, 4));
  WARN("grid " << cut << " s, row " << row << " s, column " << column << " s");
  CHECK(cut + row + column < 30);  // under sanitizers on a busy machine; quadratic takes minutes
}
