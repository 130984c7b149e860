// Plain text as samples: windows of bytes, each byte's label the byte after it. Those of the part
// for training come first, then validation, then test.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "io/sample_set.hpp"
#include "io/text/byte_text.hpp"

namespace weft {

class ByteSamples final : public SampleSet {
 public:
  explicit ByteSamples(ByteText text);

  const ByteText& text() const { return text_; }
  // Of a part, under the set's index.
  Range samples_of(ByteText::Part part) const;

  const std::string& folder() const override { return text_.path(); }
  index_t num_samples() const override { return samples_of(ByteText::Part::test).end; }
  SampleForm form() const override { return {.tokens = text_.window(), .labels = text_.window()}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string fingerprint() const override { return text_.fingerprint(); }
  void read(index_t index, const std::optional<Augmentation>& augmentation,
            const SampleRow& row) const override;
  // Time passes in no text that is cut by bytes; windows stand one after the other.
  std::string_view order_name() const override { return "position"; }

 private:
  ByteText text_;
  std::vector<std::string> class_names_;  // "0" .. "255"
};

}  // namespace weft
