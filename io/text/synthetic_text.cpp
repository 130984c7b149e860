// The grammar and its words; see the header.
#include "io/text/synthetic_text.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "io/synthetic_set.hpp"

namespace weft {

namespace {

constexpr index_t file = 48;  // of Draws

constexpr std::array<std::string_view, 10> speakers = {
    "ANNA", "BORIS", "CLARA", "DUKE", "EDMUND", "FOOL", "GUARD", "HELENA", "INNKEEPER", "JUDGE"};
constexpr std::array<std::string_view, 32> nouns = {
    "king",   "river",  "garden", "letter",  "sword",  "daughter", "storm",    "village",
    "castle", "horse",  "winter", "bridge",  "sailor", "candle",   "forest",   "mountain",
    "friend", "enemy",  "market", "song",    "window", "ship",     "harbour",  "brother",
    "coin",   "shadow", "road",   "lantern", "crown",  "field",    "stranger", "tower"};
constexpr std::array<std::string_view, 20> adjectives = {
    "old",    "silent",   "golden", "weary",  "bright", "distant", "noble",
    "broken", "gentle",   "dark",   "young",  "cold",   "hidden",  "brave",
    "narrow", "faithful", "green",  "bitter", "proud",  "small"};
constexpr std::array<std::string_view, 20> verbs = {
    "sees",    "follows", "remembers", "fears", "loves",  "hides",   "finds",
    "carries", "breaks",  "guards",    "hears", "leaves", "praises", "seeks",
    "wounds",  "forgets", "crosses",   "burns", "sells",  "keeps"};
constexpr std::array<std::string_view, 8> places = {"beside", "under",  "behind", "near",
                                                    "beyond", "before", "above",  "without"};
constexpr std::array<std::string_view, 5> determiners = {"the", "a", "my", "his", "every"};
constexpr std::array<std::string_view, 4> conjunctions = {", and", ", but", " while", ", for"};
constexpr std::array<std::string_view, 5> ends = {".", ".", ".", "!", "?"};

std::string noun_phrase(Draws& draws) {
  std::string text(draws.one_of(determiners));
  if (draws.happens(40)) text += fmt::format(" {}", draws.one_of(adjectives));
  return text + fmt::format(" {}", draws.one_of(nouns));
}

std::string clause(Draws& draws) {
  std::string text = noun_phrase(draws);
  text += fmt::format(" {} ", draws.one_of(verbs));
  text += noun_phrase(draws);
  if (draws.happens(35)) {
    text += fmt::format(" {} ", draws.one_of(places));
    text += noun_phrase(draws);
  }
  return text;
}

std::string sentence(Draws& draws) {
  std::string text = clause(draws);
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (draws.happens(30)) {
    text += fmt::format("{} ", draws.one_of(conjunctions));
    text += clause(draws);
  }
  return text + std::string(draws.one_of(ends));
}

}  // namespace

std::string synthetic_speech(std::uint64_t seed, index_t index) {
  Draws draws(seed, file, index);
  std::string text = fmt::format("{}:\n", draws.one_of(speakers));
  for (int i = draws.between(1, 4); i > 0; --i) text += sentence(draws) + "\n";
  return text + "\n";
}

void make_synthetic_text(const std::string& folder, const SyntheticTextOptions& options) {
  require(options.bytes >= 1, ExitCode::usage,
          fmt::format("bytes = {}: expected at least 1", options.bytes));
  check_new_set(folder, {synthetic_text_file}, options.seed);
  index_t left = options.bytes;
  write_new_set(folder, {{synthetic_text_file, [&](index_t index, std::string& bytes) {
                            if (left == 0) return false;
                            std::string speech = synthetic_speech(options.seed, index);
                            if (std::ssize(speech) > left)
                              speech.resize(static_cast<std::size_t>(left));
                            left -= std::ssize(speech);
                            bytes += speech;
                            return true;
                          }}});
}

}  // namespace weft
