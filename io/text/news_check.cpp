#include "io/text/news_check.hpp"

namespace weft {

RowCheck check(const AgNews& data, const Split& split) {
  using Part = AgNews::Part;
  std::vector<int> labels = data.labels(Part::training);
  const std::vector<int>& test_labels = data.labels(Part::test);
  labels.insert(labels.end(), test_labels.begin(), test_labels.end());
  const std::vector<RowPlace> rows = places_of(labels, split);
  const index_t num_training = data.num_samples(Part::training);
  CsvRow row;
  const auto keys = [&](std::size_t first, void (*add)(std::string_view, std::string&)) -> AddKey {
    return [&row, &data, num_training, first, add](index_t index, std::string& key) {
      const bool is_training = index < num_training;
      data.read_into(is_training ? Part::training : Part::test,
                     is_training ? index : index - num_training, row);
      for (std::size_t field = first; field < row.fields.size(); ++field)
        add(row.fields[field], key);
    };
  };
  constexpr std::size_t title = 1, description = 2;
  return {.class_counts = count_classes(rows, AgNews::num_classes),
          .exact = group_rows("title and description", rows, keys(title, add_field)),
          .but_space = group_rows("title and description, up to white space", rows,
                                  keys(title, add_field_but_space)),
          .in_some = group_rows("description, up to white space", rows,
                                keys(description, add_field_but_space))};
}

}  // namespace weft
