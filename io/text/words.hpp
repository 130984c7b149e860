// What a word is, and a vocabulary: words as small numbers, learnt from texts for training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/range.hpp"

namespace weft {

// A word is a longest run of ASCII letters, digits and bytes from 0x80 on (so letters of UTF-8 stay
// in their word). ASCII letters are made lower case; all other characters separate words and are
// dropped.
inline bool is_word_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || static_cast<std::uint8_t>(byte) >= 0x80;
}

// Calls take(word) for each word of `text`, in lower case, in their order, as long as it returns
// true. The view lives as long as the call.
template <class Take>
void for_each_word(std::string_view text, Take&& take) {
  std::string word;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_word_byte(text[at])) {
      ++at;
      continue;
    }
    word.clear();
    for (; at < text.size() && is_word_byte(text[at]); ++at) {
      const char byte = text[at];
      word += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    }
    if (!take(std::string_view(word))) return;
  }
}

// Words and something of each; a word is looked up without a copy of it.
struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const {
    return std::hash<std::string_view>()(word);
  }
};
template <class T>
using WordMap = std::unordered_map<std::string, T, WordHash, std::equal_to<>>;

// How often each word occurs in the texts that were added.
class WordCounts {
 public:
  void add(std::string_view text);
  const WordMap<index_t>& counts() const { return counts_; }

 private:
  WordMap<index_t> counts_;
};

class Vocabulary {
 public:
  static constexpr std::int32_t pad = 0;
  static constexpr std::int32_t unknown = 1;
  static constexpr index_t num_specials = 2;

  // The most frequent words, the first of them 2, the next 3, ...; words that occur equally often
  // in the order of their bytes. `max_size` counts the specials; with fewer words there are, size()
  // is smaller. Throws Error(usage) where max_size is no more than the specials.
  Vocabulary(const WordCounts& words, index_t max_size);

  index_t size() const { return std::ssize(words_) + num_specials; }
  std::int32_t id(std::string_view word) const;  // in lower case; `unknown` where it is not here
  // Of num_specials..size()-1.
  const std::string& word(std::int32_t id) const;
  // 32 hexadecimal digits: a hash of the words in their order.
  std::string fingerprint() const;

 private:
  std::vector<std::string> words_;
  WordMap<std::int32_t> ids_;
};

}  // namespace weft
