// What the pictures of svg_plot and svg_timeline are put together from: texts and lines, a heading,
// axes with ticks. Internal to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/svg_plot.hpp"

namespace weft::svg {

// Units of a picture. A phone shows its width on 360 pixels, a screen on about as many as here.
inline constexpr double picture_width = 460.0;
inline constexpr double line_height = 17.0;
inline constexpr double letter_width = 6.6;
inline constexpr double left_margin = 56.0, right_margin = 14.0, axis_margin = 38.0;
inline constexpr const char* grid_style = "stroke=\"#ddd\"";
inline constexpr const char* axis_style = "stroke=\"#666\"";

// `anchor`: start, middle, end; `more`: further attributes.
std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view more = "");
std::string line_from(double x1, double y1, double x2, double y2, std::string_view style);

// Title, then names with their colours, in as many lines as they need. Moves `top` below them.
std::string heading(const std::string& title, const std::vector<StackPart>& names, double& top,
                    double width = picture_width);

// Where values stand between two ends of an axis.
struct Scale {
  double from, to;    // values
  double begin, end;  // places
  double at(double value) const { return begin + (value - from) / (to - from) * (end - begin); }
};

struct Ticks {
  std::vector<double> places;
  std::vector<std::string> labels;
};
Ticks round_ticks(double least, double greatest, int most);
// Of logarithms: powers of two, two of them at least.
Ticks log2_ticks(double least, double greatest);

// Ticks of the y axis with lines across, and its name.
std::string y_axis(const Scale& scale, const Ticks& ticks, const std::string& name);
std::string x_axis(const Scale& scale, double y, const Ticks& ticks, const std::string& name);

SvgPicture nothing_to_draw(const std::string& title);

}  // namespace weft::svg
