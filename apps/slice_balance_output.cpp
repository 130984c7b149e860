#include "apps/slice_balance_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

namespace weft {

namespace {

std::string title_of(const SliceBalance::Slice& slice) {
  return fmt::format("{}, {}", name_of(slice.part), slice.name);
}

// Wide enough for a name and a count.
std::size_t width_of(const std::string& class_name) {
  return std::max<std::size_t>(10, class_name.size() + 2);
}

}  // namespace

nlohmann::ordered_json json_of(const std::vector<SliceBalance>& balance) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const SliceBalance& one : balance) {
    nlohmann::ordered_json slices = nlohmann::ordered_json::array();
    for (const SliceBalance::Slice& slice : one.slices) {
      slices.push_back({{"split", name_of(slice.part)},
                        {"name", slice.name},
                        {"samples", slice.num_samples()},
                        {"class_counts", slice.class_counts}});
    }
    all.push_back({{"by", one.by}, {"slices", std::move(slices)}});
  }
  return all;
}

void print(const std::vector<SliceBalance>& balance, const std::vector<std::string>& class_names,
           std::ostream& text) {
  for (const SliceBalance& one : balance) {
    const std::string heading = "by " + one.by;
    std::size_t title = heading.size();
    for (const SliceBalance::Slice& slice : one.slices)
      title = std::max(title, title_of(slice).size());
    text << fmt::format("{:{}}", heading, title);
    for (const std::string& name : class_names) text << fmt::format("{:>{}}", name, width_of(name));
    text << fmt::format("{:>10}\n", "all");
    for (const SliceBalance::Slice& slice : one.slices) {
      text << fmt::format("{:{}}", title_of(slice), title);
      for (std::size_t c = 0; c < class_names.size(); ++c)
        text << fmt::format("{:>{}}", slice.class_counts[c], width_of(class_names[c]));
      text << fmt::format("{:>10}", slice.num_samples());
      if (class_names.size() == 2)
        text << fmt::format("  {:.2f} % {}",
                            100.0 * static_cast<double>(slice.class_counts[1]) /
                                static_cast<double>(slice.num_samples()),
                            class_names[1]);
      text << '\n';
    }
  }
}

}  // namespace weft
