#include "apps/svg_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weft::svg {

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}

std::string line_from(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string heading(const std::string& title, const std::vector<StackPart>& names, double& top,
                    double width) {
  std::string body = text_at(0, 14, "start", title, " font-weight=\"bold\"");
  top = 14;
  double x = width;
  for (const StackPart& part : names) {
    const double part_width = 18 + 7.0 * static_cast<double>(part.name.size()) + 12;
    if (x + part_width > width) {
      x = 0;
      top += line_height;
    }
    body +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"10\" fill=\"{}\"/>\n", x,
                    top - 9, part.color);
    body += text_at(x + 17, top, "start", part.name);
    x += part_width;
  }
  top += 10;
  return body;
}

Ticks round_ticks(double least, double greatest, int most) {
  Ticks ticks{.places = axis_ticks(least, greatest, most), .labels = {}};
  for (const double tick : ticks.places) ticks.labels.push_back(fmt::format("{:g}", tick));
  return ticks;
}

Ticks log2_ticks(double least, double greatest) {
  Ticks ticks;
  const auto first = static_cast<int>(std::floor(least));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(greatest)));
  for (int i = first; i <= last; ++i) {
    ticks.places.push_back(i);
    ticks.labels.push_back(fmt::format("{:g}", std::exp2(i)));
  }
  return ticks;
}

std::string y_axis(const Scale& scale, const Ticks& ticks, const std::string& name) {
  std::string body;
  for (std::size_t i = 0; i < ticks.places.size(); ++i) {
    const double y = scale.at(ticks.places[i]);
    body += line_from(left_margin, y, picture_width - right_margin, y, grid_style);
    body += text_at(left_margin - 5, y + 4, "end", ticks.labels[i]);
  }
  const double middle = (scale.begin + scale.end) / 2;
  body += text_at(11, middle, "middle", name,
                  fmt::format(" transform=\"rotate(-90 11 {:.1f})\"", middle));
  return body;
}

std::string x_axis(const Scale& scale, double y, const Ticks& ticks, const std::string& name) {
  std::string body = line_from(scale.begin, y, scale.end, y, axis_style);
  for (std::size_t i = 0; i < ticks.places.size(); ++i) {
    const double x = scale.at(ticks.places[i]);
    body += line_from(x, y, x, y + 4, axis_style);
    body += text_at(x, y + 17, "middle", ticks.labels[i]);
  }
  return body + text_at((scale.begin + scale.end) / 2, y + 33, "middle", name);
}

SvgPicture nothing_to_draw(const std::string& title) {
  double top = 0.0;
  std::string body = heading(title, {}, top);
  body += text_at(0, top + line_height, "start", "no values", " fill=\"#666\"");
  return {picture_width, top + 2 * line_height, body};
}

}  // namespace weft::svg
