// Drawn texts of four classes in AG News' own files: something to train on where the real set
// cannot be had. Learnable but not all of it; no stand-in for the real set in a result.
//
// A text is a row of words: of its class's own ones, of other classes', of everyday ones and of
// made up names, that stand once or a few times. How many are its class's own is drawn for each
// text; where there are few, its class cannot be told. Some texts hold quotes and line breaks (as
// backslashes).
#pragma once

#include <cstdint>
#include <string>

#include "core/range.hpp"
#include "io/text/ag_news.hpp"

namespace weft {

struct SyntheticNewsOptions {
  index_t training_rows = 12000;
  index_t test_rows = 1200;
  std::uint64_t seed = 1;
};

// A line with its line end: a function of its arguments.
std::string synthetic_news_row(AgNews::Part part, std::uint64_t seed, index_t row);

// Writes train.csv and test.csv into `folder`, which is made if missing. Throws Error(usage) if one
// of them (or train_subset.csv) exists or an option is not legal, before anything is written.
void make_synthetic_news(const std::string& folder, const SyntheticNewsOptions& options);

}  // namespace weft
