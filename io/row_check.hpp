// What the checks of Bank Marketing and AG News have in common: classes of each part, and rows that
// are equal in some of their fields. Which fields those are, bank_check and news_check say.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "io/data_part.hpp"

namespace weft {

struct RowPlace {
  DataPart part = DataPart::train;
  index_t index = 0;  // under the set's index
  int label = 0;
};

// Two or more, in the order of indices.
struct EqualRows {
  std::vector<RowPlace> places;
  bool spans_parts() const { return weft::spans_parts(places); }
  bool labels_differ() const { return weft::labels_differ(places); }
};

struct EqualRowGroups {
  std::string compared;           // "all columns but y": the label is in none
  std::vector<EqualRows> groups;  // by their first rows

  index_t num_groups() const { return std::ssize(groups); }
  index_t num_rows() const;
  index_t num_spanning() const;           // groups that are in two parts
  index_t num_contradicting() const;      // groups with two labels
  index_t num_rows(DataPart part) const;  // rows of the part in groups that are in two parts
};

struct RowCheck {
  // [part][class]
  std::array<std::vector<index_t>, num_data_parts> class_counts;
  EqualRowGroups exact;      // in every byte
  EqualRowGroups but_space;  // where a run of ASCII white space is one space, and none at an end
  EqualRowGroups in_some;    // the same, in some fields only: alike, perhaps by chance

  // Groups of `but_space` that are in two parts: what is learnt is judged by.
  index_t num_leaks() const { return but_space.num_spanning(); }
};

// The fields of row `index` as a text that is equal for equal rows only, added to `key`.
using AddKey = std::function<void(index_t index, std::string& key)>;

std::vector<RowPlace> places_of(std::span<const int> labels, const Split& split);
std::array<std::vector<index_t>, num_data_parts> count_classes(std::span<const RowPlace> rows,
                                                               index_t num_classes);
EqualRowGroups group_rows(std::string compared, std::span<const RowPlace> rows,
                          const AddKey& add_key);

// A field of a key, as it is and up to white space. No field of CSV holds the NUL byte that ends
// it.
void add_field(std::string_view field, std::string& key);
void add_field_but_space(std::string_view field, std::string& key);

}  // namespace weft
