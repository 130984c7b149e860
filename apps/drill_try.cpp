// Parts of a run, one after the other, and what must be true after each; see the header.
#include "apps/drill_try.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>

#include "apps/layout_json.hpp"
#include "core/error.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_parts = 4;
// Without a deadline: so long may pass between two steps of the undisturbed run.
constexpr double longest_pause_s = 900.0;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string launch_words(const std::string& launcher, index_t num_ranks) {
  const std::string number = std::to_string(num_ranks);
  if (const std::size_t at = launcher.find("{ranks}"); at != std::string::npos)
    return launcher.substr(0, at) + number + launcher.substr(at + 7);
  if (!launcher.empty()) return launcher + " -n " + number;
  if (num_ranks == 1) return "";
  // The source folder's script knows what mpirun needs here; an installed weft may be without it.
  if (fs::exists(WEFT_LAUNCH_SCRIPT)) return "'" WEFT_LAUNCH_SCRIPT "' " + number;
  return "mpirun -n " + number;
}

std::vector<std::string> train_arguments(const DrillSetup& setup, const GridLayout& layout,
                                         const std::string& run_folder, bool is_disturbed) {
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe").string(),
                                    "train",
                                    setup.inputs.plan_path,
                                    "--run",
                                    run_folder,
                                    "--resume",
                                    "auto"};
  if (!setup.inputs.data_folder.empty())
    words.insert(words.end(), {"--data", setup.inputs.data_folder});
  const auto set = [&](const std::string& text) { words.insert(words.end(), {"--set", text}); };
  for (const std::string& text : setup.inputs.overrides) set(text);
  const nlohmann::ordered_json keys = layout_json(layout.plan);
  for (const auto& [key, value] : keys.items()) {
    const bool is_comm = key == "transport" || key == "bucket_bytes";
    set(fmt::format("{}.{}={}", is_comm ? "comm" : "layout", key, value.dump()));
  }
  if (is_disturbed && setup.timeout_s > 0.0)
    set(fmt::format("comm.timeout_s={:.1f}", setup.timeout_s));
  return words;
}

class Try {
 public:
  Try(const DrillSetup& setup, const DrillOutcome& undisturbed, ProgressLine& progress,
      std::string label, DrillTryResult& result)
      : setup_(setup),
        undisturbed_(undisturbed),
        progress_(progress),
        label_(std::move(label)),
        result_(result),
        run_(result.folder + "/run") {}

  // What part `i` is to suffer, if anything; the newest checkpoint is of step `checkpoint`.
  using NextOrder = std::function<std::optional<drill::Order>(std::size_t i, index_t checkpoint)>;

  // Until the run is through, in `parts` parts at most.
  void run(const NextOrder& next_order, std::size_t parts, std::mt19937_64& random) {
    for (std::size_t i = 0; i < parts; ++i) {
      const GridLayout& layout = setup_.layouts[random() % setup_.layouts.size()];
      newest_before_ = newest_checkpoint(run_);
      std::optional<drill::Order> order = next_order(i, newest_before_);
      if (order) {
        order->rank =
            static_cast<index_t>(random() % static_cast<std::uint64_t>(layout.plan.num_ranks()));
        if (result_.num_kills == 0) note(describe(*order));
      }
      const DrillEnd end = run_part(layout, order);
      if (!is_as_expected(end, order, layout) || !is_resumed_well(order)) return;
      logged_ = num_logged_steps(run_);
      if (end.exit_code == 0 && order && result_.num_kills > 0)
        return judge(DrillVerdict::not_reached,
                     fmt::format("the run was through after {} of {} kills: give more --steps", i,
                                 result_.num_kills));
      if (end.exit_code == 0) break;
      if (i == 0 && result_.disturbance.alters_checkpoint()) {
        altered_ = newest_checkpoint(run_);
        note(alter_newest_checkpoint(run_, result_.disturbance.deed, random));
      }
      if (i + 1 == parts)
        return judge(DrillVerdict::failed, fmt::format("not through after {} runs", parts));
    }
    compare();
  }

 private:
  void judge(DrillVerdict verdict, const std::string& reason) {
    result_.verdict = verdict;
    result_.reason = reason;
  }
  void note(const std::string& text) { result_.done += (result_.done.empty() ? "" : ", ") + text; }

  static std::string describe(const drill::Order& order) {
    const std::string deed = fmt::format("{} rank {} ", name_of(order.deed), order.rank);
    if (order.at == drill::at_time) return deed + fmt::format("after {:.2f} s", order.seconds);
    if (order.at == "step") return deed + fmt::format("at step {}", order.step);
    return deed + "at " + order.at +
           (order.step > 0 ? fmt::format(" of step {} or later", order.step) : "");
  }

  DrillEnd run_part(const GridLayout& layout, const std::optional<drill::Order>& order) {
    const std::size_t number = result_.parts.size() + 1;
    output_ = fmt::format("{}/output-{}.txt", result_.folder, number);
    const DrillEnd end = run_drill_job(setup_, layout, run_, output_, order,
                                       fmt::format("{}, run {} of it", label_, number), progress_);
    result_.parts.push_back(
        {layout.name, order ? drill::to_text(*order) : "", end.exit_code, end.seconds});
    return end;
  }

  bool is_as_expected(const DrillEnd& end, const std::optional<drill::Order>& order,
                      const GridLayout& layout) {
    if (end.is_interrupted) {
      judge(DrillVerdict::interrupted, "the drill was asked to stop");
    } else if (end.is_hang) {
      judge(DrillVerdict::hang,
            fmt::format("{} had not ended after {:.0f} s, and was killed",
                        order ? "the disturbed run" : "the resumed run", end.seconds));
    } else if (!order) {
      if (end.exit_code == 0) return true;
      judge(DrillVerdict::failed, fmt::format("the resumed run ended with exit code {}: {}",
                                              end.exit_code, last_words(output_)));
    } else if (is_reached(*order, end)) {
      const std::string fault = fault_of_end(*order, end, layout.plan.num_ranks());
      if (fault.empty()) return true;
      judge(DrillVerdict::failed, fault);
    }
    return false;
  }

  bool is_reached(const drill::Order& order, const DrillEnd& end) {
    if (order.at == drill::at_time) {
      result_.came_too_late = end.exit_code == 0;
      if (result_.came_too_late) note("which came after its end");
      return true;
    }
    const std::string mark = fmt::format("weft: drill: rank {}, {} of step", order.rank, order.at);
    if (read_text(output_).find(mark) != std::string::npos) return true;
    judge(DrillVerdict::not_reached,
          fmt::format("the run ended with exit code {} and rank {} did not say that it came to {}: "
                      "{}. Does the launcher pass {} on to the ranks?",
                      end.exit_code, order.rank, order.at, last_words(output_),
                      drill::order_variable));
    return false;
  }

  // Empty: the run ended as one must that this was done to.
  std::string fault_of_end(const drill::Order& order, const DrillEnd& end, index_t num_ranks) {
    const int code = end.exit_code;
    const bool is_too_late = order.at == drill::at_time && code == 0;
    const auto unexpected = [&](const char* expected) {
      return fmt::format("expected exit code {} after this, found {}: {}", expected, code,
                         last_words(output_));
    };
    switch (order.deed) {
      case drill::Deed::kill:
        return code != 0 || is_too_late ? "" : unexpected("other than 0");
      case drill::Deed::term: {
        const bool is_through = code == 0 && num_logged_steps(run_) == setup_.length.steps;
        return code == 3 || is_through ? "" : unexpected("3, saved and stopped,");
      }
      case drill::Deed::stop:
        if (is_too_late) return "";
        // Alone, nobody can notice. Other launchers than ours may tell another code.
        if (num_ranks == 1 || !setup_.launcher.empty())
          return code != 0 ? "" : unexpected("other than 0");
        return code == 4 ? "" : unexpected("4, a peer is gone,");
      case drill::Deed::full:
        if (read_text(output_).find("ALARM") == std::string::npos)
          return "a save met a full disk, and there is no ALARM in the output";
        return code == 0 || code == 1 ? "" : unexpected("0, or 1 after the last save,");
    }
    return "";
  }

  // Where a part went on from, and what was lost between.
  bool is_resumed_well(const std::optional<drill::Order>& order) {
    const bool may_be_killed_before = order.has_value();
    const std::vector<index_t> begins = resumed_from(run_);
    const bool has_said = begins.size() > std::exchange(num_begins_, begins.size());
    if (result_.parts.size() == 1 || (!has_said && may_be_killed_before)) return true;
    if (!has_said) return lost("events.jsonl does not say where the run went on from");
    const index_t from = begins.back();
    result_.resumed_from = from;
    result_.lost_steps += std::max<index_t>(0, logged_ - from);
    if (altered_) {
      if (from == *altered_)
        return lost(fmt::format("it went on from step {}, which was altered", from));
      return from > 0 || lost("it began anew, though an older checkpoint was whole");
    }
    if (from != newest_before_)
      return lost(fmt::format("it went on from step {}, and the newest checkpoint was of step {}",
                              from, newest_before_));
    // The save of one step may have been under way, or have failed.
    const index_t every = setup_.length.every;
    const index_t least = (std::max<index_t>(logged_, 1) - 1) / every * every - every;
    return from >= least ||
           lost(fmt::format("it had done {} steps and saves every {}, but went on from step {}",
                            logged_, every, from));
  }
  bool lost(const std::string& reason) {
    judge(DrillVerdict::lost_state, reason);
    return false;
  }

  void compare() {
    const DrillOutcome outcome = read_outcome(run_);
    const std::string fault = fault_of_log(run_, setup_.length.steps);
    if (outcome.state_hash != undisturbed_.state_hash)
      return judge(DrillVerdict::differs, fmt::format("state_hash {}, undisturbed {}",
                                                      outcome.state_hash, undisturbed_.state_hash));
    if (outcome.loss_hash != undisturbed_.loss_hash)
      return judge(DrillVerdict::differs, fmt::format("loss_hash {}, undisturbed {}",
                                                      outcome.loss_hash, undisturbed_.loss_hash));
    if (!fault.empty()) return judge(DrillVerdict::differs, fault);
    judge(DrillVerdict::same, "");
  }

  const DrillSetup& setup_;
  const DrillOutcome& undisturbed_;
  ProgressLine& progress_;
  std::string label_;
  DrillTryResult& result_;
  std::string run_;
  std::string output_;  // of the newest part
  index_t newest_before_ = 0;
  index_t logged_ = 0;          // steps, at the end of the last part
  std::size_t num_begins_ = 0;  // that the run has told of
  std::optional<index_t> altered_;
};

// "12 x save.commit, 9 x step", by the order in which points lie in a step.
std::string count_of_points(const std::vector<DrillPart>& parts) {
  std::string text;
  for (const drill::PointInfo& point : drill::points()) {
    const auto count = std::count_if(parts.begin(), parts.end(), [&](const DrillPart& part) {
      return !part.order.empty() && drill::parse_order(part.order).at == point.name;
    });
    if (count > 0) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, point.name);
  }
  return text;
}

DrillTryResult new_try(const DrillSetup& setup, index_t number) {
  DrillTryResult result{.number = number};
  result.folder = fmt::format("{}/try-{}", setup.folder, number);
  fs::create_directories(result.folder);
  return result;
}

std::mt19937_64 random_of(const DrillSetup& setup, index_t number) {
  std::seed_seq seeds{setup.seed, static_cast<std::uint64_t>(number)};
  return std::mt19937_64(seeds);
}

}  // namespace

DrillEnd run_drill_job(const DrillSetup& setup, const GridLayout& layout,
                       const std::string& run_folder, const std::string& output_path,
                       const std::optional<drill::Order>& order, const std::string& label,
                       ProgressLine& progress) {
  DrillJob job{.launcher = launch_words(setup.launcher, layout.plan.num_ranks()),
               .arguments = train_arguments(setup, layout, run_folder, order.has_value()),
               .output_path = output_path,
               .deadline_s = setup.deadline_s};
  if (order) job.order = drill::to_text(*order);
  job.stops_a_rank = order && order->deed == drill::Deed::stop;
  index_t steps_seen = -1;
  double seen_at_s = 0.0;
  job.watch = [&](double elapsed_s) {
    const index_t steps = num_logged_steps(run_folder);
    if (steps != steps_seen) seen_at_s = elapsed_s;
    steps_seen = steps;
    progress.show([&] {
      return fmt::format("{} on {}: step {}/{}, {:.0f} s", label, layout.name, steps,
                         setup.length.steps, elapsed_s);
    });
    return setup.deadline_s > 0.0 || elapsed_s - seen_at_s < longest_pause_s;
  };
  return run_to_its_end(job);
}

std::string last_words(const std::string& output_path) {
  std::istringstream lines(read_text(output_path));
  std::string last, ours;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" -") == std::string::npos) continue;
    last = line;
    if (line.starts_with("weft: ") || line.find("ends the run") != std::string::npos) ours = line;
  }
  const std::string& words = ours.empty() ? last : ours;
  return words.empty() ? "it said nothing" : words;
}

std::string_view name_of(DrillVerdict verdict) {
  static constexpr std::array<std::string_view, 7> names = {
      "same bits", "OTHER BITS", "HANG", "LOST STATE", "NOT REACHED", "FAILED", "interrupted"};
  return names[static_cast<std::size_t>(verdict)];
}

double DrillTryResult::seconds() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const DrillPart& part) { return sum + part.seconds; });
}

DrillTryResult run_drill_try(const DrillSetup& setup, const DrillOutcome& undisturbed,
                             double span_s, index_t number, const Disturbance& disturbance,
                             const std::string& label, ProgressLine& progress) {
  DrillTryResult result = new_try(setup, number);
  result.disturbance = disturbance;
  std::mt19937_64 random = random_of(setup, number);
  const auto orders = draw_orders(disturbance, setup.length, span_s, random);
  const auto order_of = [&](std::size_t i, index_t) {
    return i < orders.size() ? std::optional(orders[i]) : std::nullopt;
  };
  Try(setup, undisturbed, progress, label, result).run(order_of, most_parts, random);
  return result;
}

DrillTryResult run_kill_series(const DrillSetup& setup, const DrillOutcome& undisturbed,
                               index_t num_kills, const std::vector<Disturbance>& points,
                               index_t number, const std::string& label, ProgressLine& progress) {
  DrillTryResult result = new_try(setup, number);
  result.num_kills = num_kills;
  std::mt19937_64 random = random_of(setup, number);
  KillPlace place{.num_kills = num_kills, .start_s = undisturbed.start_s};
  place.step_s =
      (undisturbed.total_s - undisturbed.start_s) / static_cast<double>(setup.length.steps);
  const auto order_of = [&](std::size_t i, index_t checkpoint) -> std::optional<drill::Order> {
    place.num_done = static_cast<index_t>(i);
    place.checkpoint = checkpoint;
    if (place.num_done == num_kills) return std::nullopt;
    return draw_kill(points, setup.length, place, random);
  };
  const auto parts = static_cast<std::size_t>(num_kills) + 1;
  Try(setup, undisturbed, progress, label, result).run(order_of, parts, random);
  result.done = count_of_points(result.parts);
  return result;
}

}  // namespace weft
