// The fit of the idealized model to a study: made-up step times give back what they were made of.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <random>

#include "apps/ideal_fit.hpp"
#include "core/error.hpp"

using namespace weft;

namespace {

StudyPoint point(index_t tp, index_t dp, index_t pp, double busy, double ms) {
  return {.name = "tp=" + std::to_string(tp) + " dp=" + std::to_string(dp) +
                  " pp=" + std::to_string(pp),
          .tp = tp,
          .dp = dp,
          .pp = pp,
          .busy_share = busy,
          .measured_ms = ms};
}

// 72 ms shared out, 12 fixed, 5 for tp, 18 for dp, 3 for pp; two stages that work 4 of 5 slots.
std::vector<StudyPoint> made_up() {
  return {point(1, 1, 1, 1.0, 84),
          point(1, 2, 1, 1.0, 36 + 12 + 18),
          point(2, 1, 1, 1.0, 36 + 12 + 5),
          point(1, 1, 2, 0.8, 45 + 12 + 3),
          point(2, 2, 1, 1.0, 18 + 12 + 5 + 18),
          point(2, 2, 2, 0.8, 11.25 + 12 + 5 + 18 + 3)};
}

nlohmann::json row_of(const StudyPoint& p) {
  return {{"name", p.name},
          {"layout", {{"tp", p.tp}, {"dp", p.dp}, {"pp", p.pp}}},
          {"ideal_bubble_percent", 100 * (1 - p.busy_share)},
          {"step_ms", {{"median", p.measured_ms}}}};
}

std::string fault_of_study(const std::string& text) {
  try {
    read_study("study.json", text);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a fit finds what step times were made of", "[ideal_fit]") {
  const IdealFit fit = fit_ideal(made_up());
  const double expected[] = {72, 12, 5, 18, 3};
  for (std::size_t i = 0; i < num_fit_terms; ++i) {
    INFO(fit_term_names[i]);
    CHECK(fit.ms[i] == Approx(expected[i]).epsilon(1e-9));
  }
  for (const StudyPoint& p : made_up())
    CHECK(fit.predict(p) == Approx(p.measured_ms).epsilon(1e-9));
  CHECK(fit.warning(6).empty());
  CHECK(fit.warning(5).starts_with("As many terms as layouts (5)"));
  // A layout that was not there: 72 / 4 + 12 + 18.
  CHECK(fit.predict(point(1, 4, 1, 1.0, 0)) == Approx(48).epsilon(1e-9));
}

TEST_CASE("no term is negative, and none is there that helps nothing", "[ideal_fit]") {
  // More than twice as quick on two devices: fixed would be -4 ms. Least squares of relative errors
  // with compute c alone: c (1/100 + 0.5/48) = ... of c/100 and c/96 both near 1.
  const std::vector<StudyPoint> points{point(1, 1, 1, 1.0, 100), point(1, 2, 1, 1.0, 48)};
  const IdealFit fit = fit_ideal(points);
  const double a = 1.0 / 100, b = 1.0 / 96;
  CHECK(fit.ms[0] == Approx((a + b) / (a * a + b * b)).epsilon(1e-12));
  for (std::size_t i = 1; i < num_fit_terms; ++i) CHECK(fit.ms[i] == 0);
  // Perfect sharing out of two layouts that both have tp: one term says it all.
  const IdealFit shared = fit_ideal({point(2, 1, 1, 1.0, 30), point(2, 2, 1, 1.0, 15)});
  CHECK(shared.ms[0] == Approx(60).epsilon(1e-12));
  for (std::size_t i = 1; i < num_fit_terms; ++i) CHECK(shared.ms[i] == 0);
}

TEST_CASE("no other choice of terms that are not negative is better", "[ideal_fit]") {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> noise(0.8, 1.25), change(-0.3, 0.3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<StudyPoint> points = made_up();
    for (StudyPoint& p : points) p.measured_ms *= noise(random);
    const auto error = [&](const IdealFit& fit) {
      double sum = 0;
      for (const StudyPoint& p : points) sum += std::pow(fit.predict(p) / p.measured_ms - 1, 2);
      return sum;
    };
    const IdealFit best = fit_ideal(points);
    const double least = error(best);
    for (int i = 0; i < 200; ++i) {
      IdealFit other = best;
      for (double& ms : other.ms) ms = std::max(0.0, ms + change(random));
      CHECK(error(other) >= least * (1 - 1e-9));
    }
  }
}

TEST_CASE("a layout is forecast by the others, if they know its axes", "[ideal_fit]") {
  const std::vector<StudyPoint> points = made_up();
  for (const std::size_t known : {0, 1, 2, 4}) {
    INFO(known);
    // Without it four terms of the others or five are still told apart, but for the fixed one of
    // the single device alone.
    CHECK(forecast_of(points, known).has_value());
  }
  CHECK(*forecast_of(points, 4) == Approx(53).epsilon(1e-9));
  const std::vector<StudyPoint> one_of_pp{points[0], points[1], points[3]};
  CHECK_FALSE(forecast_of(one_of_pp, 2));
  CHECK_FALSE(forecast_of({points[0], points[1]}, 0));
}

TEST_CASE("a study is read from the last line of standard output", "[ideal_fit]") {
  nlohmann::json study{{"plan", "it"}, {"rows", nlohmann::json::array()}};
  for (const StudyPoint& p : made_up()) study["rows"].push_back(row_of(p));
  for (const std::string& text :
       {study.dump(), study.dump(2), "something before\n" + study.dump() + "\n"}) {
    const std::vector<StudyPoint> points = read_study("study.json", text);
    REQUIRE(points.size() == 6);
    CHECK(points[5].devices() == 8);
    CHECK(points[5].busy_share == Approx(0.8));
    CHECK(points[5].measured_ms == 49.25);
    CHECK(points[5].batch == 1);
  }
  study["rows"][0]["global_batch"] = 128;
  for (std::size_t i = 1; i < 6; ++i) study["rows"][i]["global_batch"] = 256;
  CHECK(read_study("study.json", study.dump())[3].batch == 2);
}

TEST_CASE("what is no study is refused", "[ideal_fit]") {
  const std::string expected = "study.json: expected what `weft layouts --json` writes";
  CHECK(fault_of_study("").starts_with(expected));
  CHECK(fault_of_study("no json").find("found no JSON object") != std::string::npos);
  CHECK(fault_of_study("{\"a\": 1}").find("found an object without rows") != std::string::npos);
  CHECK(fault_of_study("{\"rows\": [{\"name\": \"x\"}]}").find("found a row 0 of another kind") !=
        std::string::npos);
  nlohmann::json study{{"rows", {row_of(made_up()[0])}}};
  CHECK(fault_of_study(study.dump()).find("needs two layouts or more; found 1") !=
        std::string::npos);
  study["rows"].push_back(row_of(made_up()[1]));
  study["rows"][1]["step_ms"]["median"] = 0.0;
  CHECK(fault_of_study(study.dump()).find("layout tp=1 dp=2 pp=1: expected a step time above 0") !=
        std::string::npos);
}
