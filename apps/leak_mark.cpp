#include "apps/leak_mark.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace weft {

namespace {

bool leaks(const TaskPlan& task) { return task.dataset == "bank" && task.allow_leak; }

}  // namespace

std::string leak_mark(const TaskPlan& task) {
  if (!leaks(task)) return "";
  return "LEAK ALLOWED: duration is a feature (task.allow_leak), which is known only after the "
         "call: figures of this plan are no predictions";
}

void say_leak(const TaskPlan& task, std::ostream& text) {
  if (leaks(task)) text << leak_mark(task) << '\n';
}

std::string leak_remark(const TaskPlan& task) { return leaks(task) ? " (LEAK ALLOWED)" : ""; }

void mark_leak(const TaskPlan& task, nlohmann::ordered_json& json) {
  if (leaks(task)) json[leak_key] = leak_mark(task);
}

}  // namespace weft
