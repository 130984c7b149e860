#include "apps/layout_grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace weft {

namespace {

// The axes of more than one rank, fastest first.
std::vector<std::string> axes_with_ranks(const LayoutPlan& layout, const std::string& order) {
  std::vector<std::string> names;
  if (layout.tp > 1) names.push_back("tp");
  if (layout.dp > 1) names.push_back("dp");
  if (layout.pp > 1) names.push_back("pp");
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return order.find(a) < order.find(b);
  });
  return names;
}

// The first of all orders that puts the axes of more than one rank as this one does.
std::string plain_order(const LayoutPlan& layout) {
  const std::vector<std::string> wanted = axes_with_ranks(layout, layout.order);
  for (const std::string& order : std::get<Choices>(find_key("layout.order")->legal).now) {
    if (axes_with_ranks(layout, order) == wanted) return order;
  }
  return layout.order;
}

bool is_even_cut(const Plan& plan) {
  Plan even = plan;
  even.layout.stages.clear();
  for (index_t stage = 0; stage < plan.layout.pp; ++stage) {
    if (plan.blocks_of_stage(stage) != even.blocks_of_stage(stage)) return false;
  }
  return true;
}

// `plan` with its defaults wherever its layout makes no difference of a value.
Plan plain(Plan plan) {
  LayoutPlan& layout = plan.layout;
  const LayoutPlan by_default;
  if (layout.pp == 1) {
    layout.schedule = by_default.schedule;
    layout.measures_stages = false;
  }
  if (layout.tp == 1) layout.sequence_parallel = by_default.sequence_parallel;
  if (layout.dp == 1) {
    layout.zero = by_default.zero;
    plan.comm.bucket_bytes = CommPlan{}.bucket_bytes;
  }
  layout.order = plain_order(layout);
  if (plan.num_ranks() == 1) plan.comm.transport = "local";
  return plan;
}

std::string name_of(const Plan& plan) {
  const LayoutPlan& layout = plan.layout;
  const LayoutPlan by_default;
  std::string name = fmt::format("tp={} dp={} pp={}", layout.tp, layout.dp, layout.pp);
  if (layout.zero != 0) name += fmt::format(" zero={}", layout.zero);
  if (layout.pp > 1) name += " " + layout.schedule;
  if (!layout.stages.empty()) name += fmt::format(" stages=[{}]", fmt::join(layout.stages, ","));
  if (layout.measures_stages) name += " stages=measured";
  if (layout.sequence_parallel) name += " sp";
  if (layout.threads != by_default.threads) name += fmt::format(" threads={}", layout.threads);
  if (layout.order != by_default.order) {
    std::string order = layout.order;
    std::replace(order.begin(), order.end(), ',', '-');
    name += " order=" + order;
  }
  if (plan.comm.bucket_bytes != CommPlan{}.bucket_bytes) {
    name += fmt::format(" bucket_bytes={}", plan.comm.bucket_bytes);
  }
  const std::string& transport = plan.comm.transport;
  if (plan.num_ranks() > 1 && transport != CommPlan{}.transport) name += " " + transport;
  return name;
}

// Empty: it can run.
std::string reason_against(const Plan& plan, int num_ranks,
                           const std::vector<std::string>& transports) {
  const std::vector<PlanFault> faults = validate(plan, std::nullopt);
  if (!faults.empty()) return faults.front().key + ": " + faults.front().message;
  if (plan.num_ranks() > num_ranks) {
    return fmt::format("needs {} ranks; {} started", plan.num_ranks(),
                       num_ranks == 1 ? "1 was" : fmt::format("{} were", num_ranks));
  }
  if (plan.num_ranks() == 1) return "";
  const std::string& transport = plan.comm.transport;
  if (transport == "local") return "comm.transport: local serves one rank";
  if (transport == "auto") return "";
  if (std::find(transports.begin(), transports.end(), transport) != transports.end()) return "";
  return fmt::format("comm.transport: this build does not have {}, only {}", transport,
                     fmt::join(transports, ", "));
}

class LayoutCollector {
 public:
  LayoutCollector(int num_ranks, const std::vector<std::string>& transports)
      : num_ranks_(num_ranks), transports_(transports) {}

  void add(const Plan& combination) {
    Plan plan = plain(combination);
    const std::string reason = reason_against(plan, num_ranks_, transports_);
    if (!reason.empty()) {
      skip(std::move(plan), reason);
      return;
    }
    if (is_even_cut(plan)) plan.layout.stages.clear();
    const auto is_same = [&](const GridLayout& other) { return other.plan == plan; };
    if (std::any_of(found_.to_run.begin(), found_.to_run.end(), is_same)) {
      ++found_.num_duplicates;
      return;
    }
    const std::string name = name_of(plan);
    found_.to_run.push_back({std::move(plan), name});
  }

  GridLayouts take() { return std::move(found_); }

 private:
  void skip(Plan plan, const std::string& reason) {
    const auto is_same = [&](const SkippedLayout& other) { return other.plan == plan; };
    if (std::any_of(found_.skipped.begin(), found_.skipped.end(), is_same)) {
      ++found_.num_duplicates;
      return;
    }
    const std::string name = name_of(plan);
    found_.skipped.push_back({std::move(plan), name, reason});
  }

  int num_ranks_;
  const std::vector<std::string>& transports_;
  GridLayouts found_;
};

}  // namespace

std::vector<std::string> duplicate_rules() {
  return {"the schedule matters with pp > 1", "sequence_parallel with tp > 1",
          "zero and bucket_bytes with dp > 1", "the transport with two ranks or more",
          "the order between axes of two or more"};
}

GridLayouts layouts_of(const Plan& plan, const std::vector<GridAxis>& axes, int num_ranks,
                       const std::vector<std::string>& transports) {
  std::vector<Plan> combinations{plan};
  for (const GridAxis& axis : axes) {
    std::vector<Plan> longer;
    for (const Plan& shorter : combinations) {
      for (const KeyValue& value : axis.values) {
        longer.push_back(shorter);
        assign(*axis.key, longer.back(), value);
      }
    }
    combinations = std::move(longer);
  }
  LayoutCollector collector(num_ranks, transports);
  for (const Plan& combination : combinations) collector.add(combination);
  return collector.take();
}

}  // namespace weft
