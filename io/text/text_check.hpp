// Plain text in figures, and windows of one part that another part holds, too: a model may know
// them by heart. For people and for tests; training uses none of it.
#pragma once

#include <array>
#include <vector>

#include "core/range.hpp"
#include "io/text/byte_text.hpp"

namespace weft {

struct TextFigures {
  Range bytes;  // of the file
  index_t num_samples = 0;
  index_t num_distinct_bytes = 0;
  index_t num_line_ends = 0;  // LF
};

// All bytes of a sample's window stand in an earlier part, at any place of it.
struct SharedWindow {
  ByteText::Part part = ByteText::Part::test;
  index_t sample = 0;
  ByteText::Part found_in = ByteText::Part::training;  // the first of the parts that hold it
  index_t found_at = 0;                                // byte of the file: the first place
};

struct TextCheck {
  TextFigures whole;                 // num_samples: of all parts
  std::array<TextFigures, 3> parts;  // by ByteText::Part
  // Windows of validation that are in training, of the test that are in training or validation; in
  // the order of parts and samples.
  std::vector<SharedWindow> shared;
};

// Reads every byte: some 10 ns a byte.
TextCheck check(const ByteText& text);

}  // namespace weft
