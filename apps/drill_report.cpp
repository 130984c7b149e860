// The table of a drill, and its JSON.
#include "apps/drill_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

namespace weft {

using Json = nlohmann::ordered_json;

namespace {

std::string layouts_text(const DrillTryResult& one) {
  if (one.num_kills > 0) {
    std::set<std::string> layouts;
    for (const DrillPart& part : one.parts) layouts.insert(part.layout);
    return fmt::format("{} starts on {} layouts: {}", one.parts.size(), layouts.size(),
                       fmt::join(layouts, ", "));
  }
  std::string text;
  for (const DrillPart& part : one.parts) text += (text.empty() ? "" : " > ") + part.layout;
  return text;
}

std::string name_of_point(const DrillTryResult& one) {
  if (one.num_kills > 0) return fmt::format("{} kills", one.num_kills);
  return fmt::format("{}@{}", name_of(one.disturbance.deed), one.disturbance.point);
}

constexpr const char* row_format = "{:>3}  {:21} {:>7} {:>4} {:>6}  {:11}  {}\n     {}";

}  // namespace

std::string drill_table_head() {
  return fmt::format(row_format, "try", "point", "resumed", "lost", "s", "verdict", "what was done",
                     "layouts");
}

std::string drill_table_row(const DrillTryResult& one) {
  std::string row = fmt::format(row_format, one.number, name_of_point(one),
                                one.resumed_from ? fmt::format("{}", *one.resumed_from) : "-",
                                one.lost_steps, fmt::format("{:.1f}", one.seconds()),
                                name_of(one.verdict), one.done, layouts_text(one));
  if (!one.reason.empty()) row += "\n     " + one.reason;
  return row;
}

Json drill_json(const DrillSetup& setup, const std::string& plan_name,
                const DrillOutcome& undisturbed, const std::vector<DrillTryResult>& tries) {
  Json list = Json::array();
  bool is_same = true;
  for (const DrillTryResult& one : tries) {
    is_same = is_same && one.verdict == DrillVerdict::same;
    Json parts = Json::array();
    for (const DrillPart& part : one.parts)
      parts.push_back({{"layout", part.layout},
                       {"order", part.order.empty() ? Json() : Json(part.order)},
                       {"exit_code", part.exit_code},
                       {"seconds", part.seconds}});
    list.push_back({{"try", one.number},
                    {"point", one.num_kills > 0 ? Json() : Json(to_text(one.disturbance))},
                    {"kills", one.num_kills > 0 ? Json(one.num_kills) : Json()},
                    {"done", one.done},
                    {"came_too_late", one.came_too_late},
                    {"parts", parts},
                    {"resumed_from_step", one.resumed_from ? Json(*one.resumed_from) : Json()},
                    {"lost_steps", one.lost_steps},
                    {"seconds", one.seconds()},
                    {"verdict", name_of(one.verdict)},
                    {"reason", one.reason.empty() ? Json() : Json(one.reason)}});
  }
  return {{"plan", plan_name},
          {"same", is_same},
          {"seed", setup.seed},
          {"steps", setup.length.steps},
          {"checkpoint_every_steps", setup.length.every},
          {"undisturbed",
           {{"layout", setup.layouts.front().name},
            {"state_hash", undisturbed.state_hash},
            {"loss_hash", undisturbed.loss_hash},
            {"total_s", undisturbed.total_s}}},
          {"tries", list}};
}

}  // namespace weft
