// Drawn plain text: scenes of speakers and sentences of one small grammar. A model of bytes can
// learn its words, then which kind of word follows which; which word it is stays a matter of
// chance.
#pragma once

#include <cstdint>
#include <string>

#include "core/range.hpp"

namespace weft {

struct SyntheticTextOptions {
  index_t bytes = 1'000'000;
  std::uint64_t seed = 1;
};

inline constexpr const char* synthetic_text_file = "synthetic.txt";

// What one speaker says, a blank line behind it: a function of its arguments.
std::string synthetic_speech(std::uint64_t seed, index_t index);

// Writes synthetic.txt into `folder`, which is made if missing; its last speech is cut off where
// the bytes end. Throws Error(usage) if the file exists or an option is not legal, before anything
// is written.
void make_synthetic_text(const std::string& folder, const SyntheticTextOptions& options);

}  // namespace weft
