#include "apps/layout_json.hpp"

#include <fmt/format.h>

#include "parallel/plan/plan_keys.hpp"
#include "parallel/plan/traffic_model.hpp"

namespace weft {

nlohmann::ordered_json layout_json(const Plan& plan) {
  const LayoutPlan& layout = plan.layout;
  nlohmann::ordered_json json = {{"tp", layout.tp},
                                 {"dp", layout.dp},
                                 {"pp", layout.pp},
                                 {"zero", layout.zero},
                                 {"schedule", layout.schedule},
                                 {"sequence_parallel", layout.sequence_parallel},
                                 {"stages", layout.measures_stages ? measured_word : even_word},
                                 {"order", layout.order},
                                 {"threads", layout.threads},
                                 {"transport", plan.comm.transport},
                                 {"bucket_bytes", plan.comm.bucket_bytes}};
  if (!layout.stages.empty()) json["stages"] = layout.stages;
  return json;
}

nlohmann::ordered_json cuts_json(const Plan& plan) {
  const double bytes = cut_bytes(plan);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (index_t stage = 0; stage + 1 < plan.layout.pp; ++stage) {
    json.push_back({{"behind_block", plan.blocks_of_stage(stage).end - 1},
                    {"activation_bytes", bytes},
                    {"gradient_bytes", bytes}});
  }
  return json;
}

std::string layout_text(const Plan& plan) {
  return fmt::format("tp {} x dp {} x pp {}, zero {}, {}", plan.layout.tp, plan.layout.dp,
                     plan.layout.pp, plan.layout.zero, plan.is_exact() ? "exact" : "fast");
}

}  // namespace weft
