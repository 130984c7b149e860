// A timeline as SVG text: rows of cells from a begin to an end, as a pipeline's stages with their
// microbatches, or buckets on their way.
#pragma once

#include <string>
#include <vector>

#include "apps/svg_plot.hpp"

namespace weft {

struct TimelineCell {
  double begin = 0.0, end = 0.0;
  std::string color = {};
  std::string text = {};   // inside, where there is room
  std::string title = {};  // what a mouse over it says
  bool is_pale = false;
};
struct TimelineRow {
  std::string label;
  std::vector<TimelineCell> cells;
};
struct TimelineMark {
  std::string name;
  double at = 0.0;
};

struct Timeline {
  std::string title = {}, value_name = {};
  std::vector<StackPart> parts = {};  // what colours mean
  std::vector<TimelineRow> rows = {};
  std::vector<TimelineMark> marks = {};  // lines across all rows
  double begin = 0.0;                    // of the axis, or a round number before it
  bool is_wide = false;                  // twice as wide as other pictures
};
SvgPicture draw(const Timeline& timeline);

}  // namespace weft
