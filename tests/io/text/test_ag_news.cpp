// AG News: files, classes, words, vocabulary and tokens; small sets written here.
#include <catch2/catch.hpp>

#include <thread>

#include "io/text/ag_news.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Part = AgNews::Part;
using Tokens = std::vector<std::int32_t>;

// Both files in a folder of their own.
class Set {
 public:
  Set(const std::string& training, const std::string& test,
      const std::string& training_name = "train.csv") {
    write_all(folder_ / training_name, training);
    write_all(folder_ / "test.csv", test);
  }
  std::string path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for_each_word(text, [&](std::string_view word) {
    words.emplace_back(word);
    return true;
  });
  return words;
}

WordCounts counted(const std::vector<std::string>& texts) {
  WordCounts words;
  for (const std::string& text : texts) words.add(text);
  return words;
}

const std::string one_test_row = "\"1\",\"t\",\"d\"\n";

}  // namespace

TEST_CASE("a word is a run of letters and digits in lower case", "[words]") {
  using Words = std::vector<std::string>;
  CHECK(words_of("Oil, and the  U.S. Economy") == Words{"oil", "and", "the", "u", "s", "economy"});
  CHECK(words_of("a second\\team of #36;10 million") ==
        Words{"a", "second", "team", "of", "36", "10", "million"});
  // Letters of UTF-8 stay in their word, and are left as they are.
  CHECK(words_of("\xc3\x89T\xc3\x89 caf\xc3\xa9!") == Words{"\xc3\x89t\xc3\x89", "caf\xc3\xa9"});
  CHECK(words_of("AZaz09@[`{/:_") == Words{"azaz09"});
  CHECK(words_of("").empty());
  CHECK(words_of(" .,-\"'\n").empty());
}

TEST_CASE("a vocabulary has the most frequent words, equal ones by their bytes", "[words]") {
  // c 3; b, d 2; a, e, \xc3\xa9 1.
  const WordCounts words = counted({"C c b d", "d B. c", "e a", "\xc3\xa9"});
  const auto list = [](const Vocabulary& vocabulary) {
    std::string text;
    for (std::int32_t id = 2; id < vocabulary.size(); ++id) text += vocabulary.word(id) + " ";
    return text;
  };
  CHECK(list(Vocabulary(words, 100)) == "c b d a e \xc3\xa9 ");
  CHECK(list(Vocabulary(words, 6)) == "c b d a ");
  CHECK(list(Vocabulary(words, 4)) == "c b ");
  CHECK(list(Vocabulary(words, 3)) == "c ");
  const Vocabulary vocabulary(words, 6);
  CHECK(vocabulary.size() == 6);
  CHECK(vocabulary.id("c") == 2);
  CHECK(vocabulary.id("a") == 5);
  CHECK(vocabulary.id("e") == Vocabulary::unknown);
  CHECK(Vocabulary(words, 100).size() == 8);
  CHECK(vocabulary.fingerprint() != Vocabulary(words, 4).fingerprint());
  CHECK(vocabulary.fingerprint() ==
        Vocabulary(counted({"a e \xc3\xa9 c c c d d b b"}), 6).fingerprint());
  const auto error = error_of([&] { Vocabulary(words, 2); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::usage);
}

TEST_CASE("a sample is its title's words, then its description's", "[ag_news]") {
  const Set set(
      "\"3\",\"Oil up\",\"The oil, the Price\"\n\"1\",\"...\",\"--\"\n\"4\",\"a b\",\"\"\n",
      "\"2\",\"New oil\",\"the end\"\n");
  const AgNews data(set.path());
  CHECK(data.num_samples(Part::training) == 3);
  CHECK(data.labels(Part::training) == std::vector<int>{2, 0, 3});
  CHECK(data.labels(Part::test) == std::vector<int>{1});
  // Fitted on rows 0 and 1: oil 2, the 2, price 1, up 1. "a", "b", "new", "end" are unknown.
  const std::vector<index_t> rows = {0, 1};
  const Vocabulary vocabulary(count_words(data, rows), 100);
  CHECK(vocabulary.size() == 6);
  const auto tokens = [&](index_t num_tokens, Part part, index_t index, index_t length) {
    Tokens row(static_cast<std::size_t>(num_tokens), -5);
    CHECK(NewsTokens(data, vocabulary, num_tokens).read_into(part, index, row) == length);
    return row;
  };
  CHECK(tokens(8, Part::training, 0, 6) == Tokens{2, 5, 3, 2, 3, 4, 0, 0});
  CHECK(tokens(6, Part::training, 0, 6) == Tokens{2, 5, 3, 2, 3, 4});
  CHECK(tokens(4, Part::training, 0, 4) == Tokens{2, 5, 3, 2});
  CHECK(tokens(1, Part::training, 0, 1) == Tokens{2});
  CHECK(tokens(3, Part::training, 1, 1) == Tokens{1, 0, 0});  // no word at all
  CHECK(tokens(3, Part::training, 2, 2) == Tokens{1, 1, 0});
  CHECK(tokens(5, Part::test, 0, 4) == Tokens{1, 2, 3, 1, 0});
  CHECK(says(error_of([&] { NewsTokens(data, vocabulary, 0); }), "at least 1"));
}

TEST_CASE("what is not fitted on changes nothing", "[ag_news]") {
  const std::string train = "\"1\",\"a b\",\"c\"\n\"2\",\"b\",\"c c\"\n";
  const Set plain(train + "\"3\",\"x\",\"y\"\n", one_test_row);
  const Set other(train + "\"3\",\"b b b a a a a\",\"zzz\"\n", "\"4\",\"a a a\",\"q\"\n");
  const std::vector<index_t> rows = {0, 1};
  const AgNews plain_data(plain.path()), other_data(other.path());
  const Vocabulary of_plain(count_words(plain_data, rows), 10);
  const Vocabulary of_other(count_words(other_data, rows), 10);
  CHECK(of_plain.fingerprint() == of_other.fingerprint());
  CHECK(plain_data.fingerprint() != other_data.fingerprint());
  CHECK(plain_data.fingerprint() ==
        AgNews(Set(train + "\"3\",\"x\",\"y\"\n", one_test_row).path()).fingerprint());
}

TEST_CASE("which files are read", "[ag_news]") {
  const Set subset(one_test_row, one_test_row, "train_subset.csv");
  CHECK(AgNews(subset.path()).path(Part::training) == subset / "train_subset.csv");
  write_all(subset / "train.csv", one_test_row + one_test_row);
  CHECK(AgNews(subset.path()).path(Part::training) == subset / "train.csv");
  const TemporaryFolder outer;
  std::filesystem::create_directories(outer / "ag_news");
  write_all(outer / "ag_news/train.csv", one_test_row);
  CHECK(says(error_of([&] { AgNews(outer.path()); }), "no test.csv of AG News"));
  write_all(outer / "ag_news/test.csv", one_test_row);
  CHECK(AgNews(outer.path()).num_samples(Part::test) == 1);
  CHECK(says(error_of([] { AgNews("/no/such/folder"); }), "is no folder"));
  CHECK(says(error_of([] { AgNews(""); }), "is no folder"));
}

TEST_CASE("what is not AG News is refused with its place", "[ag_news]") {
  const auto refused = [](const std::string& training, const std::string& part) {
    const Set set(training, one_test_row);
    const auto error = error_of([&] { AgNews(set.path()); });
    INFO(training);
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, part));
  };
  for (const char* label : {"0", "5", "", "11", " 1", "a"})
    refused(one_test_row + "\"" + label + "\",\"t\",\"d\"\n",
            "train.csv, line 2, column 1: expected a class of 1 to 4, found \"" +
                std::string(label) + "\"");
  refused(one_test_row + "\"1\",\"t d\"\n", "line 2, byte 1, column 3: expected 3 fields");
  refused("\"1\",\"t d\"\n", "line 1, byte 1, column 3: expected 3 fields");
  refused("", "is empty");
  const Set set(one_test_row + "\"1\",\"t\n" + one_test_row, one_test_row);
  const AgNews data(set.path(), CsvFormat::FaultyRow::skip);
  CHECK(data.num_samples(Part::training) == 2);
  CHECK(data.skipped(Part::training).total() == 1);
  CHECK(data.skipped(Part::test).total() == 0);
}

TEST_CASE("several threads read news", "[ag_news]") {
  std::string training;
  for (int i = 0; i < 2000; ++i)
    training +=
        "\"" + std::to_string(i % 4 + 1) + "\",\"w" + std::to_string(i) + " \"\"x\"\"\",\"y\"\n";
  const Set set(training, one_test_row);
  const AgNews data(set.path());
  std::vector<index_t> rows(2000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<index_t>(i);
  const Vocabulary vocabulary(count_words(data, rows), 5000);
  const NewsTokens news(data, vocabulary, 4);
  std::array<int, 4> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      Tokens tokens(4);
      for (index_t i = 0; i < 2000; ++i) {
        const index_t row = (i * 13 + static_cast<index_t>(t)) % 2000;
        const index_t length = news.read_into(Part::training, row, tokens);
        const bool is_right = length == 3 && tokens[3] == 0 &&
                              vocabulary.word(tokens[0]) == "w" + std::to_string(row) &&
                              vocabulary.word(tokens[1]) == "x" &&
                              vocabulary.word(tokens[2]) == "y";
        wrong[t] += is_right ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : wrong) CHECK(n == 0);
}
