// Shared windows against a search by plain loops, and figures worked out by hand.
#include <catch2/catch.hpp>

#include <random>
#include <set>

#include "io/text/text_check.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Part = ByteText::Part;
using Shared = std::tuple<Part, index_t, Part, index_t>;

std::vector<Shared> list_of(const TextCheck& found) {
  std::vector<Shared> list;
  for (const SharedWindow& one : found.shared)
    list.emplace_back(one.part, one.sample, one.found_in, one.found_at);
  return list;
}

}  // namespace

TEST_CASE("a text in figures", "[text_check]") {
  const TemporaryFolder folder;
  write_all(folder / "a.txt", "abab\ncd\nab\nba\n\nxyz");  // 18 bytes
  const TextCheck found = check(ByteText(folder / "a.txt", 2, {4, 1, 1}));
  CHECK(found.whole.bytes == Range{0, 18});
  CHECK(found.whole.num_line_ends == 5);
  CHECK(found.whole.num_distinct_bytes == 8);
  CHECK(found.whole.num_samples == 7);
  CHECK(found.parts[0].bytes == Range{0, 12});  // abab cd ab b
  CHECK(found.parts[0].num_samples == 5);
  CHECK(found.parts[0].num_line_ends == 3);
  CHECK(found.parts[0].num_distinct_bytes == 5);
  CHECK(found.parts[1].bytes == Range{12, 15});  // a, two line ends
  CHECK(found.parts[1].num_line_ends == 2);
  CHECK(found.parts[1].num_distinct_bytes == 2);
  CHECK(found.parts[2].num_line_ends == 0);
  CHECK(found.parts[2].num_distinct_bytes == 3);
  CHECK(found.shared.empty());  // "a\n" is in no earlier part
}

TEST_CASE("windows that stand in an earlier part are those that plain loops find", "[text_check]") {
  const TemporaryFolder folder;
  std::mt19937 generator(4);
  std::size_t num_shared = 0;
  for (int round = 0; round < 60; ++round) {
    const index_t letters = 2 + round % 3, window = 1 + round % 9;
    std::string bytes;
    const std::size_t size = 200 + generator() % 300;
    while (bytes.size() < size) bytes += static_cast<char>('\xfd' + generator() % letters);
    write_all(folder / "a.txt", bytes);
    const ByteText text(folder / "a.txt", window, {6, 2, 2});
    std::vector<Shared> expected;
    for (const Part part : {Part::validation, Part::test}) {
      for (index_t i = 0; i < text.num_samples(part); ++i) {
        const auto at = static_cast<std::size_t>(text.bytes_of(part).begin + i * window);
        const std::string sample = bytes.substr(at, static_cast<std::size_t>(window));
        for (const Part earlier : {Part::training, Part::validation}) {
          if (earlier == part) break;
          const Range range = text.bytes_of(earlier);
          const std::size_t place = bytes.substr(0, static_cast<std::size_t>(range.end))
                                        .find(sample, static_cast<std::size_t>(range.begin));
          if (place == std::string::npos) continue;
          expected.emplace_back(part, i, earlier, static_cast<index_t>(place));
          break;
        }
      }
    }
    INFO("round " << round);
    CHECK(list_of(check(text)) == expected);
    num_shared += expected.size();
  }
  CHECK(num_shared > 100);
}

TEST_CASE("parts too small for a window share none", "[text_check]") {
  const TemporaryFolder folder;
  write_all(folder / "a.txt", "abcabc");
  CHECK(check(ByteText(folder / "a.txt", 2, {1, 0, 0})).shared.empty());
  CHECK(list_of(check(ByteText(folder / "a.txt", 2, {3, 0, 3}))) ==
        std::vector<Shared>{{Part::test, 0, Part::training, 0}});
}
