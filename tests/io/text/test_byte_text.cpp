// Windows of bytes: every sample against the file, parts that do not touch, what cannot be cut.
#include <catch2/catch.hpp>

#include <numeric>

#include "io/text/byte_text.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Part = ByteText::Part;
using Tokens = std::vector<std::int32_t>;

std::string some_bytes(std::size_t n) {
  std::string bytes;
  for (std::size_t i = 0; i < n; ++i) bytes += static_cast<char>(i * 37 + i / 256);
  return bytes;
}

}  // namespace

TEST_CASE("a sample is a window and what follows each of its bytes", "[byte_text]") {
  const TemporaryFolder folder;
  for (const std::size_t size : {100, 101, 999, 1000}) {
    for (const index_t window : {1, 2, 7, 8}) {
      const std::string bytes = some_bytes(size);
      write_all(folder / "a.txt", bytes);
      const ByteText text(folder / "a.txt", window, {8, 1, 1});
      const auto n = static_cast<index_t>(size);
      // By the header's formula: floor(n * 8 / 10), floor(n * 9 / 10).
      const index_t cuts[] = {0, n * 8 / 10, n * 9 / 10, n};
      for (const Part part : {Part::training, Part::validation, Part::test}) {
        const auto p = static_cast<std::size_t>(part);
        const index_t begin = cuts[p], end = cuts[p + 1];
        CHECK(text.bytes_of(part) == Range{begin, end});
        // As many as fit, the byte behind the last window included; not one more.
        const index_t samples = text.num_samples(part);
        CHECK(begin + samples * window + 1 <= end);
        CHECK(begin + (samples + 1) * window + 1 > end);
        for (index_t i = 0; i < samples; ++i) {
          Tokens tokens(static_cast<std::size_t>(window)), targets(tokens.size());
          text.read_into(part, i, tokens, targets);
          for (std::size_t j = 0; j < tokens.size(); ++j) {
            const auto at = static_cast<std::size_t>(begin + i * window) + j;
            REQUIRE(tokens[j] == static_cast<unsigned char>(bytes[at]));
            REQUIRE(targets[j] == static_cast<unsigned char>(bytes[at + 1]));
          }
        }
      }
    }
  }
}

TEST_CASE("parts without a share have no sample; shares are not percent", "[byte_text]") {
  const TemporaryFolder folder;
  write_all(folder / "a.txt", some_bytes(90));
  const ByteText all(folder / "a.txt", 8, {1, 0, 0});
  CHECK(all.num_samples(Part::training) == 11);
  CHECK(all.num_samples(Part::validation) == 0);
  CHECK(all.num_samples(Part::test) == 0);
  const ByteText thirds(folder / "a.txt", 8, {1, 1, 1});
  CHECK(thirds.bytes_of(Part::test) == Range{60, 90});
  CHECK(ByteText(folder / "a.txt", 8, {1000000000, 1000000000, 1000000000}).bytes_of(Part::test) ==
        Range{60, 90});
}

TEST_CASE("texts that cannot be read or cut", "[byte_text]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path, index_t window, ByteText::Shares shares,
                           ExitCode code, const std::string& part) {
    const auto error = error_of([&] { ByteText(path, window, shares); });
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->code() == code);
    CHECK(says(error, part));
  };
  const ByteText::Shares shares{90, 5, 5};
  refused(folder / "none.txt", 8, shares, ExitCode::data, "does not exist");
  refused(folder.path(), 8, shares, ExitCode::data, "no *.txt in");
  write_all(folder / "a.txt", "");
  refused(folder.path(), 8, shares, ExitCode::data, "is empty");
  write_all(folder / "a.txt", some_bytes(1000));
  CHECK(ByteText(folder.path(), 8, shares).path() == folder / "a.txt");
  // 50 bytes to validate: 49 tokens and what follows.
  CHECK(ByteText(folder.path(), 49, shares).num_samples(Part::validation) == 1);
  refused(folder.path(), 50, shares, ExitCode::usage,
          "the validation part of " + (folder / "a.txt") +
              " has 50 bytes: a sample of 50 tokens and "
              "what follows the last one needs 51");
  refused(folder.path(), 0, shares, ExitCode::usage, "a window of 0 tokens");
  refused(folder.path(), 8, {0, 5, 5}, ExitCode::usage, "shares of the text 0 : 5 : 5");
  refused(folder.path(), 8, {9, -1, 5}, ExitCode::usage, "shares of the text 9 : -1 : 5");
  refused(folder.path(), 8, {9, 1, 2000000000}, ExitCode::usage, "shares of the text");
  write_all(folder / "b.txt", "b");
  refused(folder.path(), 8, shares, ExitCode::data, "holds 2 texts: name the file that is meant");
}

TEST_CASE("a text's fingerprint is of its bytes", "[byte_text]") {
  const TemporaryFolder folder;
  write_all(folder / "a.txt", some_bytes(1000));
  write_all(folder / "b.txt", some_bytes(1000));
  write_all(folder / "c.txt", some_bytes(1001));
  const auto of = [&](const std::string& name) {
    return ByteText(folder / name, 8, {1, 0, 0}).fingerprint();
  };
  CHECK(of("a.txt") == of("b.txt"));
  CHECK(of("a.txt") != of("c.txt"));
  CHECK(of("a.txt").size() == 32);
}
