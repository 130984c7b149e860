// Counting words and numbering them; see the header.
#include "io/text/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace weft {

void WordCounts::add(std::string_view text) {
  for_each_word(text, [&](std::string_view word) {
    const auto found = counts_.find(word);
    if (found != counts_.end()) {
      ++found->second;
    } else {
      counts_.emplace(word, 1);
    }
    return true;
  });
}

Vocabulary::Vocabulary(const WordCounts& words, index_t max_size) {
  require(max_size > num_specials, ExitCode::usage,
          fmt::format("a vocabulary of {}: expected at least {}, since {} are for padding and for "
                      "unknown words",
                      max_size, num_specials + 1, num_specials));
  std::vector<std::pair<index_t, std::string_view>> order;
  for (const auto& [word, count] : words.counts()) order.emplace_back(-count, word);
  const index_t num_words = std::min(std::ssize(order), max_size - num_specials);
  std::partial_sort(order.begin(), order.begin() + num_words, order.end());
  for (index_t i = 0; i < num_words; ++i) {
    words_.emplace_back(order[static_cast<std::size_t>(i)].second);
    ids_.emplace(words_.back(), static_cast<std::int32_t>(num_specials + i));
  }
}

std::int32_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? unknown : found->second;
}

const std::string& Vocabulary::word(std::int32_t id) const {
  assert(num_specials <= id && id < size());
  return words_[static_cast<std::size_t>(id - num_specials)];
}

std::string Vocabulary::fingerprint() const {
  std::string text;
  for (const std::string& word : words_) text += word + "\n";
  return hash128(text.data(), text.size()).text();
}

}  // namespace weft
