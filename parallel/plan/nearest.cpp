#include "parallel/plan/nearest.hpp"

#include <algorithm>

namespace weft {

index_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table: two above, one above, this one.
  std::vector<index_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<index_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<index_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const index_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

namespace {

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// How far apart the last parts are; whole names are compared where these are not alike.
index_t part_distance(std::string_view a, std::string_view b) {
  if (a.starts_with(b) || b.starts_with(a)) return a == b ? 0 : 1;
  const index_t distance = edit_distance(a, b);
  const index_t alike = static_cast<index_t>(std::min(a.size(), b.size())) / 3;
  return distance <= alike ? distance : static_cast<index_t>(a.size() + b.size());
}

}  // namespace

std::size_t nearest_name(std::string_view word, const std::vector<std::string>& names) {
  std::size_t best = 0;
  index_t best_distance = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const index_t by_part = part_distance(last_part(word), last_part(names[i])) + 1;
    const index_t distance = std::min(edit_distance(word, names[i]), by_part);
    if (i == 0 || distance < best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace weft
