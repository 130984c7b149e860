// A pipeline schedule as a record: for each stage, the actions that it takes one after the other.
// Generators make one, lower() adds its messages, check() judges it, ScheduleGrid draws it and
// Runner runs it; none of them knows more about a schedule than this list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"

namespace weft::pipeline {

// What a stage does with a microbatch. forward and backward compute; the others are messages: an
// activation goes to the next stage, a gradient to the previous one. (A backward in two parts is
// two further kinds that compute: one in backward's place here and in lower(), one without
// messages.)
enum class ActionKind : std::uint8_t {
  forward,
  backward,
  send_activation,
  receive_activation,
  send_gradient,
  receive_gradient
};
inline constexpr int num_action_kinds = 6;
std::string_view name_of(ActionKind kind);  // "F", "B", "SA", "RA", "SG", "RG"
bool is_compute(ActionKind kind);
bool is_send(ActionKind kind);
bool is_receive(ActionKind kind);

struct Action {
  int stage = 0;
  ActionKind kind = ActionKind::forward;
  index_t microbatch = 0;
  int chunk = 0;  // which of the stage's parts of the model; the schedules here have one each

  friend bool operator==(const Action&, const Action&) = default;
};

std::string text_of(const Action& action);  // "F3"; of chunk 1 "F3.1"

// The stage at the other end of a message. May lie outside of the pipeline where the list is wrong.
int neighbour_of(const Action& message);

// What must have ended before a computation begins; nullopt: nothing but its stage's own last one.
std::optional<Action> needed_by(const Action& computation, int last_stage);

struct Schedule {
  index_t num_microbatches = 0;
  bool training = true;                     // false: forwards alone
  std::vector<std::vector<Action>> stages;  // in order of the model

  int num_stages() const { return static_cast<int>(stages.size()); }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// "2 stages, 3 microbatches, training", then a line "stage 0: F0 F1 F2 B0 B1 B2" for each.
std::string print(const Schedule& schedule);
// The inverse. Throws Error(usage) with the line that it cannot read. Whether the schedule makes
// sense is check()'s to say.
Schedule parse(std::string_view text);

}  // namespace weft::pipeline
