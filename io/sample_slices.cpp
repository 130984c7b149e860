#include "io/sample_slices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "parallel/plan/nearest.hpp"

namespace weft {

namespace {

constexpr index_t usual_parts = 4;
constexpr std::string_view class_word = "class";
constexpr std::string_view column_word = "column:";

class Slicer {
 public:
  Slicer(const SampleSet& data, std::span<const index_t> judged, std::span<const index_t> training)
      : data_(data), judged_(judged), training_(training), columns_(data.column_names()) {}

  SampleSlices of(const std::string& word) const {
    if (word.starts_with(column_word)) return by_column(word.substr(column_word.size()));
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (name == class_word && equals == std::string::npos) return by_class();
    if (!name.empty() && name == data_.order_name()) {
      return by_order(word,
                      equals == std::string::npos ? usual_parts : number_of(word, equals + 1));
    }
    refuse_word(word);
  }

 private:
  // All that may be asked for, but for the names of columns.
  std::vector<std::string> known_words() const {
    std::vector<std::string> known;
    if (data_.form().labels == 1) known.emplace_back(class_word);
    if (!data_.order_name().empty()) {
      known.emplace_back(data_.order_name());
      known.push_back(fmt::format("{}=N", data_.order_name()));
    }
    if (!columns_.empty()) known.push_back(std::string(column_word) + "NAME");
    return known;
  }

  std::string list_of_columns() const {
    return columns_.empty() ? "it has no columns"
                            : fmt::format("its columns: {}", fmt::join(columns_, ", "));
  }

  [[noreturn]] void refuse_word(const std::string& word) const {
    const std::vector<std::string> known = known_words();
    std::string meant = known[nearest_name(word, known)];
    if (std::find(columns_.begin(), columns_.end(), word) != columns_.end())
      meant = std::string(column_word) + word;
    throw Error(ExitCode::usage,
                fmt::format("--slices {}: expected {} for {}; did you mean {}? ({})", word,
                            fmt::join(known, ", "), data_.folder(), meant, list_of_columns()));
  }

  // 0: it is none.
  static index_t number_of(const std::string& word, std::size_t begin) {
    index_t number = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, fault] = std::from_chars(word.data() + begin, end, number);
    return fault == std::errc() && stop == end ? number : 0;
  }

  SampleSlices by_class() const {
    require(data_.form().labels == 1, ExitCode::usage,
            fmt::format("--slices {}: a sample of {} has a label for each of its tokens, so it is "
                        "of no one class; expected {}",
                        class_word, data_.folder(), fmt::join(known_words(), ", ")));
    SampleSlices slices{std::string(class_word), data_.class_names(), {}};
    for (const index_t sample : judged_) {
      std::int32_t label = 0;
      data_.read(sample, std::nullopt, {.labels = &label});
      slices.slice_of.push_back(label);
    }
    return slices;
  }

  SampleSlices by_order(const std::string& word, index_t parts) const {
    const index_t n = std::ssize(judged_);
    require(2 <= parts && parts <= n, ExitCode::usage,
            fmt::format("--slices {}: expected a number of parts from 2 to {}, as many samples are "
                        "judged; {} where none is given",
                        word, n, usual_parts));
    SampleSlices slices{fmt::format("{}={}", data_.order_name(), parts), {}, {}};
    for (index_t part = 0; part < parts; ++part) {
      const Range range = part_of(part, parts, n);
      slices.names.push_back(fmt::format("{} of {}: samples {} to {}", part + 1, parts,
                                         judged_[static_cast<std::size_t>(range.begin)],
                                         judged_[static_cast<std::size_t>(range.end - 1)]));
      slices.slice_of.insert(slices.slice_of.end(), static_cast<std::size_t>(range.size()), part);
    }
    return slices;
  }

  SampleSlices by_column(const std::string& name) const {
    require(!columns_.empty(), ExitCode::usage,
            fmt::format("--slices {}{}: {} has no columns; expected {}", column_word, name,
                        data_.folder(), fmt::join(known_words(), ", ")));
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
      throw Error(ExitCode::usage,
                  fmt::format("--slices {}{}: {} has no such column; did you mean {}? {}",
                              column_word, name, data_.folder(),
                              columns_[nearest_name(name, columns_)], list_of_columns()));
    const SampleGroups groups = data_.groups_of(name, training_);
    SampleSlices slices{std::string(column_word) + name, groups.names, {}};
    for (const index_t sample : judged_) slices.slice_of.push_back(groups.group_of(sample));
    return slices;
  }

  const SampleSet& data_;
  std::span<const index_t> judged_, training_;
  std::vector<std::string> columns_;
};

}  // namespace

std::vector<SampleSlices> make_slices(const SampleSet& data, std::span<const index_t> judged,
                                      std::span<const index_t> training,
                                      const std::vector<std::string>& words) {
  const Slicer slicer(data, judged, training);
  std::vector<SampleSlices> all;
  for (const std::string& word : words) {
    SampleSlices one = slicer.of(word);
    const auto is_same = [&](const SampleSlices& other) { return other.by == one.by; };
    if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace weft
