// How often a run was judged on the test split: one line of JSON a use in RUN/test_uses.jsonl,
// which nothing ever cuts back. Figures that were seen again and again are no final confirmation
// any more.
#pragma once

#include <string>
#include <string_view>

#include "core/range.hpp"

namespace weft {

// Adds a line, which is on the disk at the return. Throws Error(failed) where it cannot.
void add_test_use(const std::string& run_folder, std::string_view json_object);

// Lines there are; 0 without the file. Half a line, left by a full disk, counts: figures may have
// been seen. Throws Error(failed) where the file is there and cannot be read.
index_t count_test_uses(const std::string& run_folder);

}  // namespace weft
