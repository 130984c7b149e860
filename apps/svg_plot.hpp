// Plots as SVG text, for a file or inside a page: lines, stacked bars, a histogram. Drawn here, so
// that a page shows them without a network and without a script, in print, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Part of an SVG document, its upper left corner at 0, 0.
struct SvgPicture {
  double width = 0.0;
  double height = 0.0;
  std::string body;
};

// One <svg> element, whole in itself: a file, or inline in a page. It grows and shrinks with what
// it stands in.
std::string svg_element(const SvgPicture& picture);
SvgPicture side_by_side(const SvgPicture& left, const SvgPicture& right);

// & < > " as XML and HTML want them.
std::string escaped(std::string_view text);
// The i-th of eight colours that also people with colour blindness tell apart; then again.
const std::string& plot_color(std::size_t i);

struct PlotLine {
  std::string name;
  std::string color;
  std::vector<double> x = {}, y = {};  // equally many; a y that is not finite leaves a gap
  bool is_dashed = false;
  bool has_points = true;
};

struct LinePlot {
  std::string title = {}, x_name = {}, y_name = {};
  std::vector<PlotLine> lines = {};
  bool is_log2 = false;  // both axes, for numbers of devices; else y begins at 0
};
SvgPicture draw(const LinePlot& plot);

struct StackPart {
  std::string name;
  std::string color;
};
struct StackBar {
  std::string label;
  std::vector<double> values;  // one a part
};
// Bars lie, one below the other; one without a label belongs to the one above it.
struct StackPlot {
  std::string title = {}, value_name = {};
  std::vector<StackPart> parts = {};
  std::vector<StackBar> bars = {};
};
SvgPicture draw(const StackPlot& plot);

struct HistogramMark {
  std::string name;
  double value;
};
struct Histogram {
  std::string title = {}, value_name = {};
  std::vector<double> values = {};
  std::vector<HistogramMark> marks = {};
};
SvgPicture draw(const Histogram& plot);

// Round numbers (1, 2, 5 times a power of ten), at most `most` of them but at least two, that
// reach from `least` or below to `greatest` or above.
std::vector<double> axis_ticks(double least, double greatest, int most);

}  // namespace weft
