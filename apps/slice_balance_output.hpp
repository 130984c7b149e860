// How `weft data check` tells io/slice_balance: for people and as JSON.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/slice_balance.hpp"

namespace weft {

// A list of {by, slices: [{split, name, samples, class_counts}]}.
nlohmann::ordered_json json_of(const std::vector<SliceBalance>& balance);

// A table for each way to cut; of two classes also the share of the second.
void print(const std::vector<SliceBalance>& balance, const std::vector<std::string>& class_names,
           std::ostream& text);

}  // namespace weft
