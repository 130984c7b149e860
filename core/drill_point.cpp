// The order, and carrying it out; see the header.
#include "core/drill_point.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "core/error.hpp"

namespace weft::drill {

namespace {

constexpr std::array<std::string_view, 4> deed_names = {"kill", "term", "stop", "full"};

// Points lie where no object of the run reaches, from files to kernels, so that the order is the
// process'. It is written before is_armed is, and only read after.
Order my_order;
std::atomic<index_t> current_step{0};
std::atomic<bool> is_done{false};

int signal_of(Deed deed) {
  return deed == Deed::kill ? SIGKILL : deed == Deed::term ? SIGTERM : SIGSTOP;
}

// Past every buffer, as this process may have no time to flush one.
void say(const std::string& text) {
  const std::string line = "weft: drill: " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void carry_out(std::string_view point) {
  if (is_done.exchange(true)) return;
  const std::string place =
      fmt::format("rank {}, {} of step {}", my_order.rank, point, current_step.load());
  if (my_order.deed == Deed::full) {
    say(place + ": the disk is full");
    throw Error(ExitCode::failed, fmt::format("weft drill: {}", std::strerror(ENOSPC)));
  }
  say(fmt::format("{}: {}", place, name_of(my_order.deed)));
  ::kill(::getpid(), signal_of(my_order.deed));
  // The signal may be another thread's to take; this one must not go past the point.
  while (my_order.deed == Deed::kill) ::pause();
}

// By the system's timer: also a rank that computes, waits or sleeps gets it.
void start_timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal_of(my_order.deed);
  timer_t timer{};
  itimerspec when{};
  const double whole = std::floor(my_order.seconds);
  when.it_value.tv_sec = static_cast<time_t>(whole);
  // Zero would switch the timer off.
  when.it_value.tv_nsec = std::max(1L, static_cast<long>((my_order.seconds - whole) * 1e9));
  const bool is_set = ::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
                      ::timer_settime(timer, 0, &when, nullptr) == 0;
  require(is_set, ExitCode::failed,
          fmt::format("{}: cannot start a timer: {}", order_variable, std::strerror(errno)));
  say(fmt::format("rank {}: {} in {:.3f} s", my_order.rank, name_of(my_order.deed),
                  my_order.seconds));
}

template <typename Number>
Number read_number(const std::string& word, const std::string& text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  require(status == std::errc() && end == text.data() + text.size() && number >= 0, ExitCode::usage,
          fmt::format("{}: expected a number in \"{}\"; it is for weft drill alone: unset it",
                      order_variable, word));
  return number;
}

Deed deed_named(const std::string& name) {
  const auto* const at = std::find(deed_names.begin(), deed_names.end(), name);
  require(at != deed_names.end(), ExitCode::usage,
          fmt::format("{}: expected kill, term, stop or full, found \"{}\"; it is for weft drill "
                      "alone: unset it",
                      order_variable, name));
  return static_cast<Deed>(at - deed_names.begin());
}

}  // namespace

namespace detail {

std::atomic<bool> is_armed{false};

void reached(std::string_view point) {
  if (point == my_order.at && current_step >= my_order.step) carry_out(point);
}

void reached_step(index_t step) {
  current_step = step;
  reached("step");
}

void reached_stage(std::string_view stage, bool stage_is_done) {
  reached(fmt::format("save.{}{}", stage, stage_is_done ? ".done" : ""));
}

}  // namespace detail

const std::vector<PointInfo>& points() {
  static const std::vector<PointInfo> all = {
      {"step", "before a step"},
      {"data", "before it takes the step's samples"},
      {"forward", "in the step, before the forward pass of a microbatch"},
      {"backward", "in the step, before the backward pass of a microbatch"},
      {"reduce", "before gradients are summed over replicas"},
      {"update", "before the optimizer changes the state"},
      {"evaluate", "before an evaluation"},
      {"save.stage", "before rank 0 makes the staging folder"},
      {"save.write", "before this rank's shard is written"},
      {"save.shard", "shard file made, none or part of it written"},
      {"save.write.done", "shard written and synced, before the vote"},
      {"save.commit", "voted, before rank 0 writes index and manifest and renames"},
      {"save.commit.done", "on rank 0: renamed, and other ranks do not know yet"},
      {"save.read_back", "before the new checkpoint is read back"},
      {"save.retire", "before rank 0 deletes older checkpoints"},
      {"save.retire.done", "after that"},
      {"split", "stages are about to be split by measured times: saved, the state still there"},
      {"load", "in a resume or such a split, before the state is read"},
      {"load.done", "in a resume or such a split, state read and compared, before the next step"},
      {std::string(at_time), "at a random moment after the ranks have found each other"},
  };
  return all;
}

std::string_view name_of(Deed deed) { return deed_names[static_cast<std::size_t>(deed)]; }

std::string to_text(const Order& order) {
  std::string text = fmt::format("{} at={} rank={}", name_of(order.deed), order.at, order.rank);
  return text + (order.at == at_time ? fmt::format(" seconds={}", order.seconds)
                                     : fmt::format(" step={}", order.step));
}

Order parse_order(std::string_view text) {
  std::istringstream words{std::string(text)};
  Order order;
  std::string word;
  words >> word;
  order.deed = deed_named(word);
  while (words >> word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const std::string value = equals < word.size() ? word.substr(equals + 1) : "";
    if (key == "at") {
      order.at = value;
    } else if (key == "rank") {
      order.rank = read_number<index_t>(word, value);
    } else if (key == "step") {
      order.step = read_number<index_t>(word, value);
    } else if (key == "seconds") {
      order.seconds = read_number<double>(word, value);
    } else {
      throw Error(ExitCode::usage, fmt::format("{}: unknown word \"{}\"; it is for weft drill "
                                               "alone: unset it",
                                               order_variable, word));
    }
  }
  const bool is_known = std::any_of(points().begin(), points().end(),
                                    [&](const PointInfo& point) { return point.name == order.at; });
  const bool can_fail = order.at == "save.shard" || order.at == "save.read_back";
  require(is_known && (order.deed != Deed::full || can_fail), ExitCode::usage,
          fmt::format("{}: {} cannot come at \"{}\"; it is for weft drill alone: unset it",
                      order_variable, name_of(order.deed), order.at));
  return order;
}

void arm(int world_rank) {
  const char* const text = std::getenv(order_variable);
  if (!text || !*text) return;
  my_order = parse_order(text);
  if (my_order.rank != world_rank) return;
  is_done = false;
  current_step = 0;
  if (my_order.at == at_time) {
    start_timer();
  } else {
    detail::is_armed = true;
  }
}

}  // namespace weft::drill
