#include "apps/layout_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

namespace {

constexpr const char* candidates_key = "study.candidates";
constexpr const char* baseline_key = "study.baseline";

GridLayouts candidates_of(const Plan& plan, const LayoutStudy& study, int num_ranks,
                          const std::vector<std::string>& transports) {
  GridLayouts found =
      layouts_of(plan, parse_grid(study.candidates, study.from), num_ranks, transports);
  require_some(found, study.from);
  for (const GridLayout& one : found.to_run) {
    require(!one.plan.layout.measures_stages, ExitCode::usage,
            fmt::format("{}: stages: expected even or a list of blocks, such as [2,4]; found "
                        "measured, by which a running weft train splits. Compare splits by lists",
                        study.from));
  }
  return found;
}

GridLayout baseline_of(const Plan& plan, const std::string& text, int num_ranks,
                       const std::vector<std::string>& transports) {
  const std::vector<GridAxis> axes = parse_grid(text, baseline_key);
  for (const GridAxis& axis : axes) {
    require(axis.values.size() == 1, ExitCode::usage,
            fmt::format("{}: expected one layout, so one value for each key; found {} of {}. Put "
                        "what is compared with it into {}",
                        baseline_key, axis.values.size(), axis.key->name, candidates_key));
  }
  GridLayouts found = layouts_of(plan, axes, num_ranks, transports);
  require(!found.to_run.empty(), ExitCode::usage,
          fmt::format("{}: {} cannot run here: {}. Name another one, or give --grid", baseline_key,
                      text, found.skipped.empty() ? "" : found.skipped.front().reason));
  GridLayout baseline = std::move(found.to_run.front());
  baseline.is_baseline = true;
  return baseline;
}

}  // namespace

void require_some(const GridLayouts& layouts, const std::string& from) {
  if (!layouts.to_run.empty()) return;
  std::string reasons;
  for (const SkippedLayout& one : layouts.skipped)
    reasons += fmt::format("\n  {}: {}", one.name, one.reason);
  throw Error(ExitCode::usage, fmt::format("{}: no layout of it can run here:{}", from, reasons));
}

LayoutStudy choose_study(const Plan& plan, const std::optional<std::string>& grid) {
  if (grid) return {.candidates = *grid, .baseline = "", .from = "--grid"};
  require(!plan.study.candidates.empty(), ExitCode::usage,
          fmt::format("expected layouts to compare, by --grid \"tp=1,2 dp=1,2\" or by {} of the "
                      "plan; found neither{}",
                      candidates_key,
                      plan.study.baseline.empty()
                          ? ""
                          : fmt::format(", only {} = \"{}\"", baseline_key, plan.study.baseline)));
  return {
      .candidates = plan.study.candidates, .baseline = plan.study.baseline, .from = candidates_key};
}

GridLayouts layouts_of(const Plan& plan, const LayoutStudy& study, int num_ranks,
                       const std::vector<std::string>& transports) {
  GridLayouts found = candidates_of(plan, study, num_ranks, transports);
  if (study.baseline.empty()) return found;
  GridLayout baseline = baseline_of(plan, study.baseline, num_ranks, transports);
  std::erase_if(found.to_run, [&](const GridLayout& one) { return one.plan == baseline.plan; });
  found.to_run.insert(found.to_run.begin(), std::move(baseline));
  return found;
}

std::vector<PlanFault> study_faults(const Plan& plan) {
  constexpr int any_number = std::numeric_limits<int>::max();
  const std::vector<std::string>& any_transport =
      std::get<Choices>(find_key("comm.transport")->legal).now;
  std::vector<PlanFault> faults;
  const auto collect = [&](const std::string& key, const std::string& text, auto&& read) {
    if (text.empty()) return;
    try {
      read();
    } catch (const Error& error) {
      faults.push_back({key, std::string(error.what()).substr(key.size() + 2)});
    }
  };
  collect(candidates_key, plan.study.candidates, [&] {
    candidates_of(plan, choose_study(plan, std::nullopt), any_number, any_transport);
  });
  collect(baseline_key, plan.study.baseline,
          [&] { baseline_of(plan, plan.study.baseline, any_number, any_transport); });
  return faults;
}

}  // namespace weft
