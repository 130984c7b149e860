// What the makers of synthetic sets share: numbers by index, and files that are new.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/range.hpp"

namespace weft {

// Numbers of one item (an image, a row, a paragraph): words of the counter (item, block, file) of
// Stream::synthetic, used in turn. Each file of each set has a `file` of its own: 0..5 are
// CIFAR-10's, 16 and 17 the bank tables, 32 and 33 AG News, 48 the text.
class Draws {
 public:
  Draws(std::uint64_t seed, index_t file, index_t item)
      : key_(random::key_of(seed, Stream::synthetic)),
        file_(static_cast<std::uint32_t>(file)),
        item_(static_cast<std::uint64_t>(item)) {}

  std::uint32_t word() {
    if (used_ == 4) {
      words_ = random::words_at(key_, file_, block_++, item_);
      used_ = 0;
    }
    return words_.word[used_++];
  }
  // An integer in [low, high].
  int between(int low, int high) {
    return low +
           static_cast<int>(random::below(word(), static_cast<std::uint32_t>(high - low + 1)));
  }
  // True in `share` of 100 cases.
  bool happens(int share) { return between(0, 99) < share; }
  // One of a list.
  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(std::size(list)) - 1))];
  }

 private:
  random::Key key_;
  std::uint32_t file_;
  std::uint64_t item_;
  std::uint32_t block_ = 0;
  int used_ = 4;
  random::Words words_{};
};

// Throws Error(usage) if the seed is not below 2^56, or if one of the files is there.
void check_new_set(const std::string& folder, const std::vector<std::string>& files,
                   std::uint64_t seed);

struct NewFile {
  std::string name;
  // Adds item 0, 1, ... to the end of `bytes`, each once in turn; false where there is none left.
  std::function<bool(index_t item, std::string& bytes)> add;
};

// Makes the folder where it is missing. Names are taken only when every file is complete, so that a
// stop leaves no part of a set.
void write_new_set(const std::string& folder, const std::vector<NewFile>& files);

}  // namespace weft
