// Drawn news and text: reproducible, in the official forms, with something to learn.
#include <catch2/catch.hpp>

#include <array>
#include <map>
#include <numeric>
#include <set>

#include "io/text/news_check.hpp"
#include "io/text/synthetic_news.hpp"
#include "io/text/synthetic_text.hpp"
#include "io/text/text_check.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("drawn news are read by the reader of AG News", "[synthetic_news]") {
  const TemporaryFolder folder;
  make_synthetic_news(folder / "new/set", {8000, 1000, 1});
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "new/set"), {}) == 2);
  const AgNews data(folder / "new/set");
  using Part = AgNews::Part;
  CHECK(data.num_samples(Part::training) == 8000);
  CHECK(data.num_samples(Part::test) == 1000);
  Split split;
  split.train = all_of({0, 8000});
  split.test = all_of({8000, 9000});
  const RowCheck found = check(data, split);
  for (const index_t count : found.class_counts[0]) CHECK(std::abs(count - 2000) < 250);
  CHECK(found.in_some.groups.empty());
  index_t quotes = 0, breaks = 0;
  CsvRow row;
  for (index_t i = 0; i < 8000; ++i) {
    data.read_into(Part::training, i, row);
    quotes += row.fields[2].find('"') != std::string_view::npos ? 1 : 0;
    breaks += row.fields[2].find('\\') != std::string_view::npos ? 1 : 0;
  }
  CHECK(quotes > 1000);
  CHECK(breaks > 500);
  CHECK(count_words(data, split.train).counts().size() > 3000);
}

TEST_CASE("counted words tell the class of drawn news, but not of all", "[synthetic_news]") {
  const TemporaryFolder folder;
  make_synthetic_news(folder.path(), {4000, 1000, 3});
  const AgNews data(folder.path());
  using Part = AgNews::Part;
  // Of each word the class that has it most often; a text is of the class that most words name.
  const auto words_of = [&](Part part, index_t index) {
    CsvRow row;
    data.read_into(part, index, row);
    std::vector<std::string> words;
    for (const std::size_t field : {1, 2}) {
      for_each_word(row.fields[field], [&](std::string_view word) {
        words.emplace_back(word);
        return true;
      });
    }
    return words;
  };
  std::map<std::string, std::array<double, 4>> counts;
  for (index_t i = 0; i < 4000; ++i) {
    for (const std::string& word : words_of(Part::training, i))
      ++counts[word]
              [static_cast<std::size_t>(data.labels(Part::training)[static_cast<std::size_t>(i)])];
  }
  int correct = 0;
  for (index_t i = 0; i < 1000; ++i) {
    std::array<double, 4> votes{};
    for (const std::string& word : words_of(Part::test, i)) {
      const auto found = counts.find(word);
      if (found == counts.end()) continue;
      const auto& count = found->second;
      const double all = std::accumulate(count.begin(), count.end(), 0.0);
      for (std::size_t c = 0; c < 4; ++c) votes[c] += count[c] / all - 0.25;
    }
    const auto best = std::max_element(votes.begin(), votes.end()) - votes.begin();
    correct += best == data.labels(Part::test)[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  CHECK(correct > 600);  // by chance 250
  CHECK(correct < 990);
}

TEST_CASE("the same seed draws the same news, whatever their number", "[synthetic_news]") {
  const TemporaryFolder folder;
  make_synthetic_news(folder / "a", {60, 40, 5});
  make_synthetic_news(folder / "b", {60, 40, 5});
  make_synthetic_news(folder / "longer", {80, 50, 5});
  make_synthetic_news(folder / "other", {60, 40, 6});
  for (const char* name : {"/train.csv", "/test.csv"}) {
    const std::string bytes = read_all(folder / "a" + name);
    CHECK(read_all(folder / "b" + name) == bytes);
    CHECK(read_all(folder / "longer" + name).substr(0, bytes.size()) == bytes);
    CHECK(read_all(folder / "other" + name) != bytes);
  }
  CHECK(read_all(folder / "a/train.csv").substr(0, 200) !=
        read_all(folder / "a/test.csv").substr(0, 200));
}

TEST_CASE("drawn text has as many bytes as asked for", "[synthetic_text]") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, index_t bytes, std::uint64_t seed) {
    make_synthetic_text(folder / name, {bytes, seed});
    return read_all(folder / name + "/synthetic.txt");
  };
  const std::string bytes = make("a", 5000, 5);
  CHECK(bytes.size() == 5000);
  CHECK(make("b", 5000, 5) == bytes);
  CHECK(make("longer", 5001, 5).substr(0, 5000) == bytes);
  CHECK(make("one", 1, 5) == bytes.substr(0, 1));
  CHECK(make("other", 5000, 6) != bytes);
  CHECK(make("large", 3'000'000, 5).size() == 3'000'000);
}

TEST_CASE("bytes of a drawn text follow from those before them", "[synthetic_text]") {
  const TemporaryFolder folder;
  make_synthetic_text(folder.path(), {400'000, 1});
  const ByteText text(folder.path(), 128, {90, 5, 5});
  CHECK(check(text).shared.empty());
  // The byte that came most often after these three in the training part.
  const auto bytes = text.bytes();
  const auto key = [&](index_t at) {
    return std::array{bytes[static_cast<std::size_t>(at - 3)],
                      bytes[static_cast<std::size_t>(at - 2)],
                      bytes[static_cast<std::size_t>(at - 1)]};
  };
  std::map<std::array<std::uint8_t, 3>, std::array<int, 256>> follows;
  std::array<int, 256> alone{};
  const auto most = [](const std::array<int, 256>& count) {
    return std::max_element(count.begin(), count.end()) - count.begin();
  };
  const Range training = text.bytes_of(ByteText::Part::training);
  for (index_t at = training.begin + 3; at < training.end; ++at) {
    ++follows[key(at)][bytes[static_cast<std::size_t>(at)]];
    ++alone[bytes[static_cast<std::size_t>(at)]];
  }
  const Range test = text.bytes_of(ByteText::Part::test);
  double by_context = 0, by_frequency = 0;
  for (index_t at = test.begin + 3; at < test.end; ++at) {
    const auto byte = bytes[static_cast<std::size_t>(at)];
    const auto found = follows.find(key(at));
    by_context += found != follows.end() && most(found->second) == byte ? 1 : 0;
    by_frequency += most(alone) == byte ? 1 : 0;
  }
  const double n = static_cast<double>(test.size() - 3);
  CHECK(by_frequency / n < 0.25);
  CHECK(by_context / n > 0.5);
  CHECK(by_context / n < 0.9);
}

TEST_CASE("drawn texts are never written over something", "[synthetic_text]") {
  const TemporaryFolder folder;
  for (const char* name : {"train_subset.csv", "test.csv", "synthetic.txt"}) {
    const TemporaryFolder taken;
    write_all(taken / name, "mine");
    const auto error = error_of([&] {
      make_synthetic_news(taken.path(), {5, 5, 1});
      make_synthetic_text(taken.path(), {5, 1});
    });
    REQUIRE(error);
    CHECK(error->code() == ExitCode::usage);
    CHECK(says(error, taken / name));
    CHECK(read_all(taken / name) == "mine");
  }
  constexpr std::uint64_t no_seed = std::uint64_t{1} << 56;
  for (const auto& refused : {error_of([&] {
                                make_synthetic_news(folder / "x", {0, 1, 1});
                              }),
                              error_of([&] {
                                make_synthetic_news(folder / "x", {1, 0, 1});
                              }),
                              error_of([&] {
                                make_synthetic_news(folder / "x", {1, 1, no_seed});
                              }),
                              error_of([&] {
                                make_synthetic_text(folder / "x", {0, 1});
                              }),
                              error_of([&] {
                                make_synthetic_text(folder / "x", {1, no_seed});
                              })}) {
    REQUIRE(refused);
    CHECK(refused->code() == ExitCode::usage);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}
