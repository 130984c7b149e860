// The idealized model fitted to what `weft layouts` has measured: which compute, fixed and
// communication times explain the step times best, and how well. It explains a study; layouts that
// are not in it may behave otherwise.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

// A layout of a study.
struct StudyPoint {
  std::string name;
  index_t tp = 1, dp = 1, pp = 1;
  double busy_share = 1.0;   // of its pipeline, ideally
  double batch = 1.0;        // global, in units of the first layout's
  double measured_ms = 0.0;  // median

  index_t devices() const { return tp * dp * pp; }
};

// What a step time is made of: compute is divided by devices and busy share, the others count
// whole, those of an axis where it has two ranks or more.
inline constexpr std::size_t num_fit_terms = 5;
inline constexpr std::array<const char*, num_fit_terms> fit_term_names{"compute", "fixed", "tp",
                                                                       "dp", "pp"};
struct IdealFit {
  std::array<double, num_fit_terms> ms{};  // by fit_term_names; 0: does not help to explain

  double predict(const StudyPoint& point) const;
  // A fit of as many terms as layouts has nothing left to be wrong about. What is to be said then.
  std::string warning(std::size_t num_points) const;
  std::string text() const;  // "compute 70.10, fixed 12.00, ...", in ms
};

// Least squares of relative errors with terms of 0 or more; of equally good ones that with the
// fewest terms. Needs a point.
IdealFit fit_ideal(const std::vector<StudyPoint>& points);

// What a fit without the point says of it: a forecast, where the others have some of each of its
// axes and are two or more; else none.
std::optional<double> forecast_of(const std::vector<StudyPoint>& points, std::size_t which);

// What the fit says of each point.
struct FittedPoint {
  double predicted_ms;
  double error;                         // of it, against the measured time
  std::optional<double> without_it_ms;  // forecast_of
};
std::vector<FittedPoint> judge_fit(const IdealFit& fit, const std::vector<StudyPoint>& points);
double largest_error(const std::vector<FittedPoint>& points);  // without its sign

// Rows of the JSON of `weft layouts --json`, the text of a file that ends with it. `path` is for
// messages. Throws Error(usage) where it is none, or has fewer than two layouts.
std::vector<StudyPoint> read_study(const std::string& path, const std::string& text);
// The same of a file; Error(usage), too, where it cannot be read.
std::vector<StudyPoint> read_study_file(const std::string& path);

}  // namespace weft
