// A data set as training and evaluation see it: samples under one index over all of its parts, each
// of them a row of numbers of one form. Which of them are trained on, and in what order they come,
// is for splits and samplers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"

namespace weft {

// What a sample is in numbers.
struct SampleForm {
  index_t features = 0;      // f32: pixels, columns; 0: it has none
  index_t tokens = 0;        // i32: ids of a text, pads at its end; 0: it has none
  bool has_lengths = false;  // its tokens may end early: how many are real is told, too
  index_t labels = 1;        // i32: its class, or one for each token

  friend bool operator==(const SampleForm&, const SampleForm&) = default;
};

// Where a sample goes. Null: nobody asks for it.
struct SampleRow {
  float* features = nullptr;       // [form.features]
  std::int32_t* tokens = nullptr;  // [form.tokens]
  std::int32_t* length = nullptr;  // [1], where the form has lengths
  std::int32_t* labels = nullptr;  // [form.labels]
};

// What random changes of a sample are drawn from, beside its index.
struct Augmentation {
  std::uint64_t seed = 0;
  index_t epoch = 0;
};

// Samples told apart by what is known of them: each is in one group.
struct SampleGroups {
  std::vector<std::string> names;
  std::function<index_t(index_t sample)> group_of;  // a place in `names`
};

class SampleSet {
 public:
  virtual ~SampleSet() = default;

  // Where its files lie.
  virtual const std::string& folder() const = 0;
  virtual index_t num_samples() const = 0;
  virtual SampleForm form() const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;
  // 32 hexadecimal digits that tell this data from other data, wherever it lies.
  virtual std::string fingerprint() const = 0;
  // Sample `index`, 0 <= index < num_samples(); changed at random where `augmentation` is given and
  // the set knows how. Any number of threads may read. Throws Error(data) that names the place of a
  // sample that is damaged.
  virtual void read(index_t index, const std::optional<Augmentation>& augmentation,
                    const SampleRow& row) const = 0;

  // What the order of its samples' indices is: "time", "position" in a text; empty: nothing.
  virtual std::string_view order_name() const { return {}; }
  // By what else than its label a sample can be told from others; empty: by nothing.
  virtual std::vector<std::string> column_names() const { return {}; }
  // `column` is one of them; the set must outlive the groups. Where they need bounds, these come
  // from the samples `training` alone.
  virtual SampleGroups groups_of(std::string_view column, std::span<const index_t> training) const {
    static_cast<void>(column), static_cast<void>(training);
    return {};
  }
};

}  // namespace weft
