// Plots: ticks are round and reach the ends, bars are as long as their values, text is escaped.
#include <catch2/catch.hpp>

#include <limits>
#include <regex>
#include <vector>

#include "apps/svg_plot.hpp"

using namespace weft;

namespace {

std::vector<double> attributes(const std::string& text, const std::string& element,
                               const std::string& name) {
  std::vector<double> values;
  const std::regex pattern("<" + element + "[^>]* " + name + "=\"([-0-9.]+)\"");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern);
       it != std::sregex_iterator(); ++it) {
    values.push_back(std::stod((*it)[1]));
  }
  return values;
}

}  // namespace

TEST_CASE("ticks are round numbers that reach both ends", "[svg_plot]") {
  CHECK(axis_ticks(0, 84, 7) == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(axis_ticks(3, 7, 6) == std::vector<double>{3, 4, 5, 6, 7});
  CHECK(axis_ticks(-3, 12, 5) == std::vector<double>{-5, 0, 5, 10, 15});
  for (const double least : {-7.3, 0.0, 1e-9, 123.4}) {
    for (const double span : {0.0, 1e-12, 0.3, 17.0, 1e9}) {
      for (const int most : {4, 8}) {
        const std::vector<double> ticks = axis_ticks(least, least + span, most);
        INFO(least << " + " << span);
        CHECK(ticks.size() >= 2);
        CHECK(ticks.size() <= static_cast<std::size_t>(most));
        CHECK(ticks.front() <= least);
        CHECK(ticks.back() >= least + span);
      }
    }
  }
}

TEST_CASE("stacked bars are as long as their values, end to end", "[svg_plot]") {
  const SvgPicture picture = draw(StackPlot{.title = "a < b & \"c\"",
                                            .value_name = "ms",
                                            .parts = {{"one", "#111111"}, {"two", "#222222"}},
                                            .bars = {{"p", {30, 10}}, {"q", {0, 20}}}});
  const std::string part = "rect class=\"part\"";
  const std::vector<double> x = attributes(picture.body, part, "x");
  const std::vector<double> width = attributes(picture.body, part, "width");
  REQUIRE(width.size() == 3);  // the 0 is no bar
  CHECK(width[0] == Approx(3 * width[1]).margin(0.02));
  CHECK(width[2] == Approx(2 * width[1]).margin(0.02));
  CHECK(x[1] == Approx(x[0] + width[0]).margin(0.02));
  CHECK(x[2] == x[0]);
  CHECK(x[1] + width[1] <= picture.width);
  CHECK(picture.body.find("a &lt; b &amp; &quot;c&quot;") != std::string::npos);
  CHECK(picture.body.find("<title>one: 30</title>") != std::string::npos);
}

TEST_CASE("lines go where their values are, with gaps where there are none", "[svg_plot]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  LinePlot plot{
      .title = "t",
      .x_name = "step",
      .y_name = "loss",
      .lines = {{.name = "it", .color = "#111111", .x = {0, 1, 2, 3}, .y = {4, 2, none, 1}}},
      .is_log2 = false};
  const SvgPicture picture = draw(plot);
  const std::vector<double> x = attributes(picture.body, "circle", "cx");
  const std::vector<double> y = attributes(picture.body, "circle", "cy");
  REQUIRE(x.size() == 3);
  CHECK(x[2] - x[0] == Approx(3 * (x[1] - x[0])).margin(0.2));
  CHECK(y[1] - y[0] == Approx(2 * (y[2] - y[1])).margin(0.3));  // 4 to 2, 2 to 1; down is more
  CHECK(y[0] < y[1]);
  std::smatch path;
  REQUIRE(std::regex_search(picture.body, path, std::regex("<path d=\"([^\"]*)\"")));
  const std::string d = path[1];
  CHECK(std::count(d.begin(), d.end(), 'M') == 2);

  plot.is_log2 = true;
  plot.lines[0].x = {1, 2, 4, 8};
  plot.lines[0].y = {1, 1, 1, 1};
  const std::vector<double> even = attributes(draw(plot).body, "circle", "cx");
  REQUIRE(even.size() == 4);
  CHECK(even[3] - even[2] == Approx(even[1] - even[0]).margin(0.2));
}

TEST_CASE("a histogram counts every value once", "[svg_plot]") {
  const SvgPicture picture = draw(Histogram{.title = "t",
                                            .value_name = "ms",
                                            .values = {1, 1, 1, 1, 2, 9},
                                            .marks = {{"median 1 ms", 1}, {"P95 9 ms", 9}}});
  const std::vector<double> height = attributes(picture.body, "rect class=\"bin\"", "height");
  REQUIRE(height.size() == 3);
  CHECK(height[0] == Approx(4 * height[1]).margin(0.5));
  CHECK(height[1] == height[2]);
  CHECK(picture.body.find("P95 9 ms") != std::string::npos);
}

TEST_CASE("nothing to draw is said, and an element is whole", "[svg_plot]") {
  CHECK(draw(LinePlot{.title = "t"}).body.find("no values") != std::string::npos);
  CHECK(draw(StackPlot{.title = "t"}).body.find("no values") != std::string::npos);
  CHECK(draw(Histogram{.title = "t"}).body.find("no values") != std::string::npos);
  const SvgPicture one{100, 50, "<text>x</text>\n"};
  const std::string element = svg_element(side_by_side(one, one));
  CHECK(element.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 224 50\""));
  CHECK(element.ends_with("</svg>\n"));
}
