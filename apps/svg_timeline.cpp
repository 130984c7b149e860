#include "apps/svg_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/svg_axes.hpp"

namespace weft {

using namespace svg;

namespace {

constexpr double row_height = 24.0, cell_height = 18.0;
constexpr double least_width = 0.6;  // of a cell, so that a short one is seen

std::string cell_element(const TimelineCell& cell, double y, const Scale& across) {
  const double x = across.at(cell.begin);
  const double width = std::max(least_width, across.at(cell.end) - x);
  const std::string title = cell.title.empty() ? "" : "<title>" + escaped(cell.title) + "</title>";
  std::string body = fmt::format(
      "<rect class=\"cell\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
      "fill=\"{}\"{}>{}</rect>\n",
      x, y, width, cell_height, cell.color, cell.is_pale ? " fill-opacity=\"0.45\"" : "", title);
  const double letters = static_cast<double>(cell.text.size());
  if (letters == 0.0 || width < letter_width * letters + 2) return body;
  // Black can be read on all of plot_color's but two.
  const bool is_dark = !cell.is_pale && (cell.color == "#0072B2" || cell.color == "#000000");
  const std::string ink = is_dark ? "#fff" : "#000";
  return body + text_at(x + width / 2, y + cell_height - 5, "middle", cell.text,
                        fmt::format(" font-size=\"11\" fill=\"{}\" pointer-events=\"none\"", ink));
}

}  // namespace

SvgPicture draw(const Timeline& timeline) {
  double end = timeline.begin;
  std::size_t letters = 0;
  for (const TimelineRow& row : timeline.rows) {
    letters = std::max(letters, row.label.size());
    for (const TimelineCell& cell : row.cells) end = std::max(end, cell.end);
  }
  for (const TimelineMark& mark : timeline.marks) end = std::max(end, mark.at);
  if (timeline.rows.empty() || end <= timeline.begin) return nothing_to_draw(timeline.title);
  const double width = timeline.is_wide ? 2 * picture_width : picture_width;
  std::vector<StackPart> names = timeline.parts;
  for (std::size_t i = 0; i < timeline.marks.size(); ++i)
    names.push_back({timeline.marks[i].name, plot_color(3 + i)});
  double top = 0.0;
  std::string body = heading(timeline.title, names, top, width);
  const double label_width = 8 + letter_width * static_cast<double>(letters);
  const double bottom = top + 4 + row_height * static_cast<double>(timeline.rows.size());
  const Ticks ticks = round_ticks(timeline.begin, end, timeline.is_wide ? 12 : 6);
  const Scale across{ticks.places.front(), ticks.places.back(), label_width, width - right_margin};
  for (const double tick : ticks.places)
    body += line_from(across.at(tick), top, across.at(tick), bottom, grid_style);
  double y = top + 4;
  for (const TimelineRow& row : timeline.rows) {
    body += text_at(label_width - 6, y + cell_height - 5, "end", row.label);
    for (const TimelineCell& cell : row.cells) body += cell_element(cell, y, across);
    y += row_height;
  }
  for (std::size_t i = 0; i < timeline.marks.size(); ++i) {
    const double x = across.at(timeline.marks[i].at);
    body += line_from(x, top, x, bottom,
                      fmt::format("stroke=\"{}\" stroke-width=\"2\"", plot_color(3 + i)));
  }
  body += x_axis(across, bottom, ticks, timeline.value_name);
  return {width, bottom + axis_margin, body};
}

}  // namespace weft
