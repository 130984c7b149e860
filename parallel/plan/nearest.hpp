// Searches behind "the nearest legal value" and "did you mean": small, exhaustive, without
// knowledge of any key. What is legal is a question that the caller answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"

namespace weft {

// At most one legal value at or below `wanted` and one above it, among the multiples of `step` in
// [least, most], the nearer one first. `legal(value)` decides; the search tries neighbours one by
// one, so the caller picks a `step` that keeps it short.
template <class Legal>
std::vector<index_t> nearest_legal(index_t wanted, index_t least, index_t most, index_t step,
                                   Legal&& legal) {
  std::vector<index_t> found;
  const index_t top = most / step * step;
  const index_t bottom = round_up(least, step);
  index_t below = wanted < top ? wanted / step * step : top;
  while (below >= bottom && !legal(below)) below -= step;
  if (below >= bottom) found.push_back(below);
  index_t above = wanted < bottom ? bottom : (wanted / step + 1) * step;
  while (above <= top && !legal(above)) above += step;
  if (above <= top) found.push_back(above);
  if (found.size() == 2 && above - wanted < wanted - below) std::swap(found[0], found[1]);
  return found;
}

// Edits that turn `a` into `b`: insert, delete, replace, or swap two neighbours (Damerau 1964, the
// variant that edits no place twice).
index_t edit_distance(std::string_view a, std::string_view b);

// The index of the dotted name in `names` that `word` most likely meant. A word that is only a
// name's last part ("lr" for optimizer.lr) counts as one edit away. `names` must not be empty.
std::size_t nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace weft
