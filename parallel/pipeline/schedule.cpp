#include "parallel/pipeline/schedule.hpp"

#include <array>
#include <charconv>
#include <sstream>

#include "core/error.hpp"

namespace weft::pipeline {

namespace {

constexpr std::array<std::string_view, num_action_kinds> kind_names = {"F",  "B",  "SA",
                                                                       "RA", "SG", "RG"};

// A non-negative number that is the whole of `text`.
template <class Number>
bool read(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end && number >= 0;
}

bool read(std::string_view word, Action& action) {
  const std::size_t digits = word.find_first_of("0123456789");
  if (digits == std::string_view::npos) return false;
  int kind = 0;
  while (kind < num_action_kinds &&
         kind_names[static_cast<std::size_t>(kind)] != word.substr(0, digits))
    ++kind;
  if (kind == num_action_kinds) return false;
  action.kind = static_cast<ActionKind>(kind);
  const std::size_t dot = word.find('.', digits);
  if (dot != std::string_view::npos && !read(word.substr(dot + 1), action.chunk)) return false;
  return read(word.substr(digits, dot == std::string_view::npos ? dot : dot - digits),
              action.microbatch);
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Returns the number of stages that it promises; -1: not a first line.
int read_first_line(const std::string& line, Schedule& schedule) {
  const std::vector<std::string> words = words_of(line);
  int num_stages = 0;
  const bool fits = words.size() == 5 && read(words[0], num_stages) && words[1] == "stages," &&
                    read(words[2], schedule.num_microbatches) && words[3] == "microbatches," &&
                    (words[4] == "training" || words[4] == "evaluation");
  if (!fits) return -1;
  schedule.training = words[4] == "training";
  return num_stages;
}

// "stage 2: F0 B0"
bool read_stage(const std::string& line, int stage, std::vector<Action>& actions) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() < 2 || words[0] != "stage" || words[1] != std::to_string(stage) + ":")
    return false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    Action action{.stage = stage};
    if (!read(words[i], action)) return false;
    actions.push_back(action);
  }
  return true;
}

}  // namespace

std::string_view name_of(ActionKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

bool is_compute(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::backward;
}
bool is_send(ActionKind kind) {
  return kind == ActionKind::send_activation || kind == ActionKind::send_gradient;
}
bool is_receive(ActionKind kind) {
  return kind == ActionKind::receive_activation || kind == ActionKind::receive_gradient;
}

std::string text_of(const Action& action) {
  std::string text(name_of(action.kind));
  text += std::to_string(action.microbatch);
  if (action.chunk != 0) text += "." + std::to_string(action.chunk);
  return text;
}

std::optional<Action> needed_by(const Action& action, int last_stage) {
  const bool is_forward = action.kind == ActionKind::forward;
  if (is_forward && action.stage == 0) return std::nullopt;
  if (!is_forward && action.stage == last_stage)
    return Action{action.stage, ActionKind::forward, action.microbatch, action.chunk};
  return Action{action.stage + (is_forward ? -1 : 1), action.kind, action.microbatch, action.chunk};
}

int neighbour_of(const Action& message) {
  const bool is_next =
      message.kind == ActionKind::send_activation || message.kind == ActionKind::receive_gradient;
  return message.stage + (is_next ? 1 : -1);
}

std::string print(const Schedule& schedule) {
  std::string text = std::to_string(schedule.num_stages()) + " stages, " +
                     std::to_string(schedule.num_microbatches) + " microbatches, " +
                     (schedule.training ? "training\n" : "evaluation\n");
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    text += "stage " + std::to_string(stage) + ":";
    for (const Action& action : schedule.stages[stage]) text.append(" ").append(text_of(action));
    text += "\n";
  }
  return text;
}

Schedule parse(std::string_view text) {
  Schedule schedule;
  std::istringstream lines{std::string(text)};
  int num_stages = -1;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    bool fits = false;
    if (number == 1) {
      num_stages = read_first_line(line, schedule);
      fits = num_stages >= 0;
    } else if (schedule.num_stages() < num_stages) {
      schedule.stages.emplace_back();
      fits = read_stage(line, schedule.num_stages() - 1, schedule.stages.back());
    }
    require(fits, ExitCode::usage,
            "schedule, line " + std::to_string(number) + ": cannot read '" + line +
                "'; expected '2 stages, 3 microbatches, training' (or evaluation), then as many "
                "lines like 'stage 0: F0 F1 B0'");
  }
  require(num_stages == schedule.num_stages(), ExitCode::usage,
          "schedule: " + std::to_string(schedule.num_stages()) + " lines of stages, not " +
              std::to_string(num_stages));
  return schedule;
}

}  // namespace weft::pipeline
