#include "apps/check_command.hpp"

#include <ostream>
#include <utility>

#include "apps/check_report.hpp"
#include "apps/layout_study.hpp"
#include "core/error.hpp"

namespace weft {

int check_plan(const Plan& plan, std::optional<index_t> num_ranks, bool json, std::ostream& text,
               std::ostream& out) {
  std::vector<PlanFault> faults = validate(plan, num_ranks);
  for (PlanFault& fault : study_faults(plan)) faults.push_back(std::move(fault));
  if (!faults.empty()) {
    for (const PlanFault& fault : faults) text << fault.key << ": " << fault.message << '\n';
    const nlohmann::ordered_json record = {
        {"plan", plan.name}, {"legal", false}, {"faults", faults_json(faults)}};
    if (json) out << record.dump() << '\n';
    return static_cast<int>(ExitCode::usage);
  }
  const CheckReport report(plan);
  print_report(report, text);
  if (json) out << report_json(report).dump() << '\n';
  return static_cast<int>(ExitCode::done);
}

}  // namespace weft
