// Drawing words; see the header.
#include "io/text/synthetic_news.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "io/synthetic_set.hpp"

namespace weft {

namespace {

constexpr index_t first_file = 32;  // of Draws

using Words = std::array<std::string_view, 24>;
constexpr std::array<Words, AgNews::num_classes> own_words = {
    {{"minister",   "border",  "treaty",    "election",  "embassy",  "rebels",
      "parliament", "troops",  "summit",    "refugees",  "cabinet",  "protest",
      "villages",   "envoy",   "ceasefire", "president", "province", "militia",
      "talks",      "capital", "hostage",   "governor",  "army",     "peace"},
     {"coach",  "goal",   "season",  "stadium", "striker",  "league",  "medal",   "pitcher",
      "match",  "title",  "injury",  "sprint",  "champion", "playoff", "batting", "referee",
      "points", "rookie", "defence", "victory", "racket",   "tackle",  "relay",   "lineup"},
     {"profit",  "shares",  "merger",   "revenue", "dividend",  "oil",     "retailer",  "quarter",
      "stocks",  "lender",  "earnings", "airline", "inflation", "traders", "takeover",  "exports",
      "analyst", "pension", "currency", "budget",  "wages",     "factory", "creditors", "bonds"},
     {"software",   "browser",    "galaxy",     "server",   "virus",    "satellite",
      "chip",       "genome",     "network",    "download", "orbit",    "desktop",
      "wireless",   "scientists", "telescope",  "search",   "robot",    "fossil",
      "encryption", "laptop",     "spacecraft", "update",   "internet", "pixels"}}};

constexpr std::array<std::string_view, 48> everyday_words = {
    "the",  "the",   "of",    "of",    "to",    "to",      "in",   "in",    "a",      "a",
    "and",  "and",   "on",    "for",   "that",  "with",    "said", "as",    "after",  "its",
    "from", "is",    "by",    "at",    "new",   "has",     "will", "over",  "was",    "it",
    "more", "two",   "first", "up",    "year",  "group",   "week", "world", "people", "may",
    "last", "plans", "about", "three", "early", "against", "back", "one"};

constexpr std::array<std::string_view, 16> syllables = {"ba", "ren",  "ko", "li",  "ster", "mo",
                                                        "va", "ton",  "da", "pel", "gri",  "su",
                                                        "no", "hart", "ve", "ma"};

std::string name(Draws& draws) {
  std::string word;
  for (int i = draws.between(2, 4); i > 0; --i) word += draws.one_of(syllables);
  word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

// `share`: of 100 words, how many are of the class.
std::string word_of(int label, int share, Draws& draws) {
  if (draws.happens(share))
    return std::string(draws.one_of(own_words[static_cast<std::size_t>(label)]));
  if (draws.happens(5)) return std::string(draws.one_of(draws.one_of(own_words)));
  if (draws.happens(10)) return name(draws);
  return std::string(draws.one_of(everyday_words));
}

std::string words(int label, int share, int count, Draws& draws) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += draws.happens(4) ? ", " : " ";
    const std::string word = word_of(label, share, draws);
    // A quote inside a field is doubled.
    text += draws.happens(2) ? "\"\"" + word + "\"\"" : word;
  }
  return text;
}

}  // namespace

std::string synthetic_news_row(AgNews::Part part, std::uint64_t seed, index_t row) {
  Draws draws(seed, first_file + (part == AgNews::Part::training ? 0 : 1), row);
  const int label = draws.between(0, AgNews::num_classes - 1);
  const int share = draws.between(0, 24);
  const std::string title = words(label, share, draws.between(4, 9), draws);
  std::string description = words(label, share, draws.between(10, 24), draws);
  if (draws.happens(10)) description += "\\" + words(label, share, draws.between(5, 10), draws);
  return fmt::format("\"{}\",\"{}\",\"{}.\"\n", label + 1, title, description);
}

void make_synthetic_news(const std::string& folder, const SyntheticNewsOptions& options) {
  require(options.training_rows >= 1 && options.test_rows >= 1, ExitCode::usage,
          fmt::format("rows = {} for training and {} for the test: expected at least 1 of each",
                      options.training_rows, options.test_rows));
  const std::string training_file = AgNews::training_files[0];
  check_new_set(folder, {training_file, AgNews::training_files[1], AgNews::test_file},
                options.seed);
  const auto rows_of = [&](AgNews::Part part, index_t rows) {
    return [part, rows, seed = options.seed](index_t row, std::string& bytes) {
      if (row == rows) return false;
      bytes += synthetic_news_row(part, seed, row);
      return true;
    };
  };
  write_new_set(folder, {{training_file, rows_of(AgNews::Part::training, options.training_rows)},
                         {AgNews::test_file, rows_of(AgNews::Part::test, options.test_rows)}});
}

}  // namespace weft
