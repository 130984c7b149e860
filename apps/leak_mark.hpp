// The mark of a plan that lets a leak in (task.allow_leak): what is known only after the moment of
// prediction is a feature, so no figure of such a run is a prediction's. Whatever tells figures of
// a plan or its run, to people or to programs, carries it.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "parallel/plan/plan.hpp"

namespace weft {

inline constexpr const char* leak_key = "leak_allowed";

// "LEAK ALLOWED: duration is a feature (task.allow_leak), ...", one sentence; empty where nothing
// leaks.
std::string leak_mark(const TaskPlan& task);

// For people: the mark as a line of its own, or nothing.
void say_leak(const TaskPlan& task, std::ostream& text);
// At the end of a line of figures: " (LEAK ALLOWED)", or nothing.
std::string leak_remark(const TaskPlan& task);

// For programs: "leak_allowed" with the mark; no such key where nothing leaks.
void mark_leak(const TaskPlan& task, nlohmann::ordered_json& json);

}  // namespace weft
