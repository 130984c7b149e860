// Which rows a check of a table or of texts found to be equal.
#pragma once

#include <vector>

#include "io/row_check.hpp"

namespace weft::test {

using Rows = std::vector<index_t>;

inline std::vector<Rows> rows_of(const EqualRowGroups& found) {
  std::vector<Rows> groups;
  for (const EqualRows& group : found.groups) {
    Rows& rows = groups.emplace_back();
    for (const RowPlace& place : group.places) rows.push_back(place.index);
  }
  return groups;
}

}  // namespace weft::test
