#include "apps/ideal_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/last_object.hpp"
#include "core/error.hpp"
#include "io/extent_reader.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t most_study_bytes = std::uint64_t{64} << 20;

using Terms = std::array<double, num_fit_terms>;

// What each term is multiplied by.
Terms factors_of(const StudyPoint& point) {
  const auto devices = static_cast<double>(point.devices());
  return {point.batch / (devices * point.busy_share), 1.0, point.tp > 1 ? 1.0 : 0.0,
          point.dp > 1 ? 1.0 : 0.0, point.pp > 1 ? 1.0 : 0.0};
}

double squared_error(const IdealFit& fit, const std::vector<StudyPoint>& points) {
  double sum = 0.0;
  for (const StudyPoint& point : points) {
    const double error = fit.predict(point) / point.measured_ms - 1.0;
    sum += error * error;
  }
  return sum;
}

// Gauss with pivots, of a system small enough for it; none where it has no one solution.
std::optional<std::vector<double>> solve(std::vector<std::vector<double>> a,
                                         std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    if (std::abs(a[k][k]) < 1e-10) return std::nullopt;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

// Least squares with these terms alone: A^T A x = A^T 1, where a row of A is a point's factors by
// its measured time.
std::optional<IdealFit> fit_with(const std::vector<StudyPoint>& points,
                                 const std::vector<std::size_t>& terms) {
  const std::size_t n = terms.size();
  // In units of the longest step, so that entries are near 1.
  double unit = 0.0;
  for (const StudyPoint& point : points) unit = std::max(unit, point.measured_ms);
  std::vector<std::vector<double>> gram(n, std::vector<double>(n, 0.0));
  std::vector<double> right(n, 0.0);
  for (const StudyPoint& point : points) {
    const Terms factors = factors_of(point);
    const double weight = unit / point.measured_ms;
    for (std::size_t i = 0; i < n; ++i) {
      right[i] += weight * factors[terms[i]];
      for (std::size_t j = 0; j < n; ++j)
        gram[i][j] += weight * factors[terms[i]] * weight * factors[terms[j]];
    }
  }
  const std::optional<std::vector<double>> found = solve(std::move(gram), std::move(right));
  if (!found) return std::nullopt;
  IdealFit fit;
  for (std::size_t i = 0; i < n; ++i) fit.ms[terms[i]] = unit * (*found)[i];
  return fit;
}

StudyPoint point_of(const Json& row) {
  const Json& layout = row.at("layout");
  return {.name = row.at("name"),
          .tp = layout.at("tp"),
          .dp = layout.at("dp"),
          .pp = layout.at("pp"),
          .busy_share = 1.0 - row.at("ideal_bubble_percent").get<double>() / 100.0,
          .batch = row.value("global_batch", 1.0),
          .measured_ms = row.at("step_ms").at("median")};
}

}  // namespace

double IdealFit::predict(const StudyPoint& point) const {
  const Terms factors = factors_of(point);
  double sum = 0.0;
  for (std::size_t i = 0; i < num_fit_terms; ++i) sum += ms[i] * factors[i];
  return sum;
}

std::string IdealFit::warning(std::size_t num_points) const {
  const auto num_terms = static_cast<std::size_t>(
      std::count_if(ms.begin(), ms.end(), [](double term) { return term > 0.0; }));
  if (num_terms < num_points) return "";
  return fmt::format(
      "As many terms as layouts ({}): the errors say nothing; a study of more layouts would.",
      num_points);
}

std::string IdealFit::text() const {
  std::string words;
  for (std::size_t i = 0; i < num_fit_terms; ++i)
    words += fmt::format("{}{} {:.2f}", i == 0 ? "" : ", ", fit_term_names[i], ms[i]);
  return words;
}

IdealFit fit_ideal(const std::vector<StudyPoint>& points) {
  IdealFit best;
  double least = std::numeric_limits<double>::infinity();
  // All 31 choices of terms, small ones first: the best without a negative one is the answer.
  std::vector<std::bitset<num_fit_terms>> choices;
  for (unsigned bits = 1; bits < 1u << num_fit_terms; ++bits) choices.emplace_back(bits);
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.count() < b.count(); });
  for (const auto& choice : choices) {
    std::vector<std::size_t> terms;
    for (std::size_t i = 0; i < num_fit_terms; ++i)
      if (choice[i]) terms.push_back(i);
    if (terms.size() > points.size()) continue;
    const std::optional<IdealFit> fit = fit_with(points, terms);
    if (!fit || std::any_of(fit->ms.begin(), fit->ms.end(), [](double ms) { return ms < 0.0; }))
      continue;
    const double error = squared_error(*fit, points);
    // More terms only where they explain more than rounding.
    if (error >= least - 1e-18) continue;
    least = error;
    best = *fit;
  }
  return best;
}

std::optional<double> forecast_of(const std::vector<StudyPoint>& points, std::size_t which) {
  const StudyPoint& wanted = points[which];
  std::vector<StudyPoint> others = points;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
  const auto has = [&](index_t StudyPoint::*axis) {
    return wanted.*axis == 1 ||
           std::any_of(others.begin(), others.end(),
                       [&](const StudyPoint& other) { return other.*axis > 1; });
  };
  if (others.size() < 2 || !has(&StudyPoint::tp) || !has(&StudyPoint::dp) || !has(&StudyPoint::pp))
    return std::nullopt;
  return fit_ideal(others).predict(wanted);
}

std::vector<FittedPoint> judge_fit(const IdealFit& fit, const std::vector<StudyPoint>& points) {
  std::vector<FittedPoint> fitted;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double predicted = fit.predict(points[i]);
    fitted.push_back({predicted, predicted / points[i].measured_ms - 1.0, forecast_of(points, i)});
  }
  return fitted;
}

double largest_error(const std::vector<FittedPoint>& points) {
  double largest = 0.0;
  for (const FittedPoint& point : points) largest = std::max(largest, std::abs(point.error));
  return largest;
}

std::vector<StudyPoint> read_study(const std::string& path, const std::string& text) {
  const std::string expected = "expected what `weft layouts --json` writes to standard output";
  const Json study = last_object(text);
  require(study.is_object() && study.contains("rows") && study["rows"].is_array(), ExitCode::usage,
          fmt::format("{}: {}; found {}", path, expected,
                      study.is_object() ? "an object without rows" : "no JSON object"));
  std::vector<StudyPoint> points;
  try {
    for (const Json& row : study.at("rows")) points.push_back(point_of(row));
  } catch (const Json::exception& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}; found a row {} of another kind: {}", path,
                                             expected, points.size(), error.what()));
  }
  require(points.size() >= 2, ExitCode::usage,
          fmt::format("{}: a fit needs two layouts or more; found {}. Give weft layouts a larger "
                      "--grid, or more ranks",
                      path, points.size()));
  const double first = points.front().batch;
  for (StudyPoint& point : points) {
    point.batch /= first;
    require(point.measured_ms > 0.0 && point.busy_share > 0.0 && point.devices() > 0 &&
                std::isfinite(point.batch),
            ExitCode::usage,
            fmt::format("{}: layout {}: expected a step time above 0; found {:g} ms", path,
                        point.name, point.measured_ms));
  }
  return points;
}

std::vector<StudyPoint> read_study_file(const std::string& path) {
  std::string text;
  try {
    text = read_whole_file(path, most_study_bytes);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, fmt::format("--study: {}", error.what()));
  }
  return read_study(path, text);
}

}  // namespace weft
