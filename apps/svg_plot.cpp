#include "apps/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "apps/svg_axes.hpp"

namespace weft {

using namespace svg;

namespace {

constexpr double plot_height = 200.0;
constexpr std::size_t most_letters_beside = 18;

struct Extent {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  bool is_empty() const { return least > greatest; }
};

// One path of each stretch without a gap, through places on the axes.
std::string curve(const PlotLine& line, const std::vector<double>& x, const std::vector<double>& y,
                  const Scale& across, const Scale& up) {
  std::string path, points;
  bool is_down = false;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(y[i])) {
      is_down = false;
      continue;
    }
    const double px = across.at(x[i]), py = up.at(y[i]);
    path += fmt::format("{}{:.1f} {:.1f}", is_down ? "L" : "M", px, py);
    is_down = true;
    if (line.has_points) {
      points += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", px, py,
                            line.color);
    }
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", path,
                     line.color, line.is_dashed ? " stroke-dasharray=\"5 4\"" : "") +
         points;
}

// On an axis of logarithms twice as much is as far everywhere.
std::vector<double> places_of(const std::vector<double>& values, bool is_log2) {
  std::vector<double> places = values;
  if (is_log2) {
    std::transform(values.begin(), values.end(), places.begin(),
                   [](double value) { return std::log2(value); });
  }
  return places;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

const std::string& plot_color(std::size_t i) {
  // Okabe and Ito, "Color Universal Design" (2008), without the yellow, which white paper swallows.
  static const std::array<std::string, 8> colors{"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                                 "#56B4E9", "#CC79A7", "#000000", "#999999"};
  return colors[i % colors.size()];
}

std::vector<double> axis_ticks(double least, double greatest, int most) {
  // Values that are all but equal get room, not ticks that differ in their last digits.
  if (!(greatest - least > 1e-9 * std::max(std::abs(least), std::abs(greatest))))
    greatest = least + std::max(1.0, std::abs(least));
  const double span = greatest - least;
  double power = std::pow(10.0, std::floor(std::log10(span / most)));
  const auto reaches = [&](double step) {
    return static_cast<int>(std::ceil(greatest / step) - std::floor(least / step)) + 1 <= most;
  };
  double step = power;
  for (int i = 0; !reaches(step); ++i) {
    static constexpr std::array<double, 3> factors{1.0, 2.0, 5.0};
    if (i > 0 && i % 3 == 0) power *= 10.0;
    step = factors[static_cast<std::size_t>(i % 3)] * power;
  }
  std::vector<double> ticks;
  const auto first = static_cast<long>(std::floor(least / step));
  const auto last = static_cast<long>(std::ceil(greatest / step));
  for (long i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string svg_element(const SvgPicture& picture) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\">\n"
      "{2}</svg>\n",
      picture.width, picture.height, picture.body);
}

SvgPicture side_by_side(const SvgPicture& left, const SvgPicture& right) {
  constexpr double gap = 24.0;
  return {left.width + gap + right.width, std::max(left.height, right.height),
          fmt::format("{}<g transform=\"translate({:.0f} 0)\">\n{}</g>\n", left.body,
                      left.width + gap, right.body)};
}

SvgPicture draw(const LinePlot& plot) {
  Extent x_extent, y_extent;
  std::vector<StackPart> names;
  for (const PlotLine& line : plot.lines) {
    names.push_back({line.name, line.color});
    for (const double x : places_of(line.x, plot.is_log2)) x_extent.add(x);
    for (const double y : places_of(line.y, plot.is_log2)) y_extent.add(y);
  }
  if (x_extent.is_empty() || y_extent.is_empty()) return nothing_to_draw(plot.title);
  double top = 0.0;
  std::string body = heading(plot.title, names, top);
  const double bottom = top + plot_height;
  if (!plot.is_log2) y_extent.add(0.0);
  const Ticks x_ticks = plot.is_log2 ? log2_ticks(x_extent.least, x_extent.greatest)
                                     : round_ticks(x_extent.least, x_extent.greatest, 8);
  const Ticks y_ticks = plot.is_log2 ? log2_ticks(y_extent.least, y_extent.greatest)
                                     : round_ticks(y_extent.least, y_extent.greatest, 7);
  const Scale up{y_ticks.places.front(), y_ticks.places.back(), bottom, top + 6};
  const Scale across{x_ticks.places.front(), x_ticks.places.back(), left_margin,
                     picture_width - right_margin};
  body += y_axis(up, y_ticks, plot.y_name);
  body += x_axis(across, bottom, x_ticks, plot.x_name);
  for (const PlotLine& line : plot.lines) {
    body +=
        curve(line, places_of(line.x, plot.is_log2), places_of(line.y, plot.is_log2), across, up);
  }
  return {picture_width, bottom + axis_margin, body};
}

SvgPicture draw(const StackPlot& plot) {
  Extent extent;
  extent.add(0.0);
  std::size_t letters = 0;
  for (const StackBar& bar : plot.bars) {
    double sum = 0.0;
    for (const double value : bar.values) sum += std::max(0.0, value);
    extent.add(sum);
    letters = std::max(letters, bar.label.size());
  }
  if (plot.bars.empty() || extent.greatest <= 0.0) return nothing_to_draw(plot.title);
  double top = 0.0;
  std::string body = heading(plot.title, plot.parts, top);
  // Long labels stand above their bars.
  const bool are_above = letters > most_letters_beside;
  constexpr double thick = 15.0;
  const auto height_of = [&](const StackBar& bar) {
    if (!are_above) return thick + 7.0;
    return bar.label.empty() ? thick + 3.0 : thick + 3.0 + line_height;
  };
  double bottom = top + 4;
  for (const StackBar& bar : plot.bars) bottom += height_of(bar);
  const Ticks ticks = round_ticks(0.0, extent.greatest, 6);
  const double label_width = are_above ? 8.0 : 8 + letter_width * static_cast<double>(letters);
  const Scale across{0.0, ticks.places.back(), label_width, picture_width - right_margin};
  for (const double tick : ticks.places)
    body += line_from(across.at(tick), top, across.at(tick), bottom, grid_style);
  double y = top + 4;
  for (const StackBar& bar : plot.bars) {
    if (are_above && !bar.label.empty())
      body += text_at(label_width, y + 12, "start", bar.label);
    else if (!are_above)
      body += text_at(label_width - 6, y + 12, "end", bar.label);
    const double bar_y = y + height_of(bar) - (are_above ? 3.0 : 7.0) - thick;
    double begin = 0.0;
    for (std::size_t i = 0; i < bar.values.size(); ++i) {
      const double value = std::max(0.0, bar.values[i]);
      if (value <= 0.0) continue;
      body += fmt::format(
          "<rect class=\"part\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
          "fill=\"{}\"><title>{}: {:.4g}</title></rect>\n",
          across.at(begin), bar_y, across.at(value) - across.at(0.0), thick, plot.parts[i].color,
          escaped(plot.parts[i].name), value);
      begin += value;
    }
    y += height_of(bar);
  }
  body += x_axis(across, bottom, ticks, plot.value_name);
  return {picture_width, bottom + axis_margin, body};
}

SvgPicture draw(const Histogram& plot) {
  Extent extent;
  for (const double value : plot.values) extent.add(value);
  if (extent.is_empty()) return nothing_to_draw(plot.title);
  for (const HistogramMark& mark : plot.marks) extent.add(mark.value);
  const Ticks ticks = round_ticks(extent.least, extent.greatest, 8);
  const double begin = ticks.places.front(), end = ticks.places.back();
  constexpr std::size_t num_bins = 40;
  std::vector<double> counts(num_bins, 0.0);
  const double bin = (end - begin) / num_bins;
  for (const double value : plot.values) {
    const auto at = static_cast<std::size_t>((value - begin) / bin);
    counts[std::min(at, num_bins - 1)] += 1.0;
  }
  double top = 0.0;
  std::vector<StackPart> names;
  for (std::size_t i = 0; i < plot.marks.size(); ++i)
    names.push_back({plot.marks[i].name, plot_color(i + 1)});
  std::string body = heading(plot.title, names, top);
  const double bottom = top + plot_height;
  const Ticks y_ticks = round_ticks(0.0, *std::max_element(counts.begin(), counts.end()), 6);
  const Scale up{0.0, y_ticks.places.back(), bottom, top + 6};
  const Scale across{begin, end, left_margin, picture_width - right_margin};
  body += y_axis(up, y_ticks, "steps");
  for (std::size_t i = 0; i < num_bins; ++i) {
    if (counts[i] == 0.0) continue;
    const double x = across.at(begin + static_cast<double>(i) * bin);
    const double width = (across.end - across.begin) / num_bins - 1.0;
    body += fmt::format(
        "<rect class=\"bin\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"{}\"/>\n",
        x, up.at(counts[i]), width, bottom - up.at(counts[i]), plot_color(0));
  }
  for (std::size_t i = 0; i < plot.marks.size(); ++i) {
    const double x = across.at(plot.marks[i].value);
    body += line_from(x, top, x, bottom,
                      fmt::format("stroke=\"{}\" stroke-width=\"2\"", plot_color(i + 1)));
  }
  body += x_axis(across, bottom, ticks, plot.value_name);
  return {picture_width, bottom + axis_margin, body};
}

}  // namespace weft
