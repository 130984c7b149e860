// Rows of equal keys find each other in a hash table; see the header.
#include "io/row_check.hpp"

#include <algorithm>
#include <unordered_map>

namespace weft {

namespace {

bool is_space(char byte) { return byte == ' ' || ('\t' <= byte && byte <= '\r'); }

}  // namespace

index_t EqualRowGroups::num_rows() const {
  index_t rows = 0;
  for (const EqualRows& group : groups) rows += std::ssize(group.places);
  return rows;
}

index_t EqualRowGroups::num_spanning() const {
  return std::count_if(groups.begin(), groups.end(),
                       [](const EqualRows& group) { return group.spans_parts(); });
}

index_t EqualRowGroups::num_contradicting() const {
  return std::count_if(groups.begin(), groups.end(),
                       [](const EqualRows& group) { return group.labels_differ(); });
}

index_t EqualRowGroups::num_rows(DataPart part) const {
  index_t rows = 0;
  for (const EqualRows& group : groups) {
    if (!group.spans_parts()) continue;
    rows += std::count_if(group.places.begin(), group.places.end(),
                          [&](const RowPlace& place) { return place.part == part; });
  }
  return rows;
}

std::vector<RowPlace> places_of(std::span<const int> labels, const Split& split) {
  const std::vector<DataPart> parts = parts_of(std::ssize(labels), split);
  std::vector<RowPlace> places;
  for (std::size_t i = 0; i < labels.size(); ++i)
    places.push_back({parts[i], static_cast<index_t>(i), labels[i]});
  return places;
}

std::array<std::vector<index_t>, num_data_parts> count_classes(std::span<const RowPlace> rows,
                                                               index_t num_classes) {
  std::array<std::vector<index_t>, num_data_parts> counts;
  for (auto& count : counts) count.assign(static_cast<std::size_t>(num_classes), 0);
  for (const RowPlace& row : rows)
    ++counts[static_cast<std::size_t>(row.part)].at(static_cast<std::size_t>(row.label));
  return counts;
}

EqualRowGroups group_rows(std::string compared, std::span<const RowPlace> rows,
                          const AddKey& add_key) {
  EqualRowGroups found{std::move(compared), {}};
  // Of each key the number of its group, counted as keys appear.
  std::unordered_map<std::string, std::size_t> number_of;
  std::vector<EqualRows> all;
  std::string key;
  for (const RowPlace& row : rows) {
    key.clear();
    add_key(row.index, key);
    const auto [place, is_new] = number_of.try_emplace(key, all.size());
    if (is_new) all.emplace_back();
    all[place->second].places.push_back(row);
  }
  for (EqualRows& group : all) {
    if (group.places.size() > 1) found.groups.push_back(std::move(group));
  }
  return found;
}

void add_field(std::string_view field, std::string& key) {
  key += field;
  key += '\0';
}

void add_field_but_space(std::string_view field, std::string& key) {
  bool is_first = true;
  for (std::size_t at = 0; at < field.size();) {
    if (is_space(field[at])) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(field.begin() + static_cast<std::ptrdiff_t>(at), field.end(), is_space) -
        field.begin();
    if (!is_first) key += ' ';
    is_first = false;
    key += field.substr(at, static_cast<std::size_t>(end) - at);
    at = static_cast<std::size_t>(end);
  }
  key += '\0';
}

}  // namespace weft
