// Every input that fuzzing has kept, and the seeds, through the same entries in a normal build.
#include <catch2/catch.hpp>

#include <filesystem>
#include <set>

#include "core/hash.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/index_cover.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/io/checkpoint/some_index.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("the readers bear the corpus", "[fuzz]") {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_FUZZ_CORPUS))
    folders.insert(entry.path().filename().string());
  for (const FuzzedReader& reader : fuzzed_readers()) {
    REQUIRE(folders.erase(reader.name) == 1);
    int num_inputs = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(WEFT_FUZZ_CORPUS "/" + reader.name)) {
      INFO(entry.path());
      CHECK_NOTHROW(reader.take(read_all(entry.path().string())));
      ++num_inputs;
    }
    CHECK(num_inputs > 0);
  }
  CHECK(folders.empty());
}

TEST_CASE("the readers bear their seeds, cut off anywhere and with any byte altered", "[fuzz]") {
  for (const FuzzedReader& reader : fuzzed_readers()) {
    for (const std::string& seed : reader.seeds()) {
      INFO(reader.name);
      CHECK_NOTHROW(reader.take(seed));
      const std::size_t step = seed.size() / 50 + 1;
      for (std::size_t at = 0; at < seed.size(); at += step) {
        INFO("byte " << at);
        CHECK_NOTHROW(reader.take(seed.substr(0, at)));
        std::string altered = seed;
        altered[at] = static_cast<char>(altered[at] ^ 0x41);
        CHECK_NOTHROW(reader.take(altered));
      }
    }
  }
}

TEST_CASE("the judge of indexes sees each kind of fault", "[fuzz]") {
  const CheckpointIndex good = some_index({{9, 4000}, {7}}, 3, 2, 1);
  CHECK(cover_fault(good).empty());
  const auto fault_of = [&](auto alter) {
    CheckpointIndex index = good;
    alter(index);
    return cover_fault(index);
  };
  CHECK(fault_of([](auto& i) { i.pieces.pop_back(); }) == "an element is in no piece or in two");
  CHECK(fault_of([](auto& i) { i.pieces[0].box.cols.end = 4001; }) ==
        "a piece is outside its tensor");
  CHECK(fault_of([](auto& i) { i.pieces[0].first_block = i.pieces[1].first_block; }) != "");
  CHECK(fault_of([](auto& i) { i.files[1].num_bytes += 1; }) == "a file has bytes in no block");
  CHECK(fault_of([](auto& i) { i.blocks[1].offset += 1; }) ==
        "a block is not where the last one ends");
  CHECK(fault_of([](auto& i) { i.files.pop_back(); }) == "a block is in no file");
}
