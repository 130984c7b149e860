// From the command line to a setup, the undisturbed run, the tries, the verdict; see the header.
#include "apps/drill_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <utility>

#include "apps/drill_report.hpp"
#include "apps/drill_try.hpp"
#include "apps/leak_mark.hpp"
#include "apps/run_checkpoints.hpp"
#include "apps/stop_text.hpp"
#include "core/error.hpp"
#include "io/file.hpp"
#include "io/plan_file.hpp"
#include "io/run_log.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr index_t default_steps = 24;
constexpr index_t default_tries = 8;
constexpr index_t most_tries = 10000;
constexpr index_t most_kills = 10000;

// Of an item of --layouts, which has the grammar of a grid with one value a key.
GridLayout layout_of(const Plan& plan, const std::string& item, index_t num_ranks) {
  const auto fail = [&](const std::string& reason) {
    throw Error(ExitCode::usage, fmt::format("--layouts: \"{}\": {}", item, reason));
  };
  Plan base = plan;
  base.layout.tp = base.layout.dp = base.layout.pp = 1;
  base.layout.stages.clear();
  const auto axes = parse_grid(item, fmt::format("--layouts: \"{}\"", item));
  GridLayouts found = layouts_of(base, axes, static_cast<int>(num_ranks), built_in_transports());
  if (!found.skipped.empty()) {
    const index_t needed = found.skipped.front().plan.num_ranks();
    fail(needed > num_ranks
             ? fmt::format("needs {} ranks, and the drill starts at most {}; raise --ranks", needed,
                           num_ranks)
             : found.skipped.front().reason);
  }
  if (found.to_run.size() != 1) fail("expected one value for each key; separate layouts by \";\"");
  return found.to_run.front();
}

std::vector<std::string> items_of(const std::string& layouts) {
  std::vector<std::string> items(1);
  for (const char c : layouts) {
    if (c == ';') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  std::erase_if(items, [](const std::string& item) {
    return item.find_first_not_of(' ') == std::string::npos;
  });
  return items;
}

// The plan's own layout first; in exact mode then every other one of as many ranks, and one rank.
std::vector<GridLayout> layouts_that_fit(const Plan& plan, index_t num_ranks) {
  const auto transports = built_in_transports();
  GridLayouts own = layouts_of(plan, {}, static_cast<int>(num_ranks), transports);
  require(own.skipped.empty(), ExitCode::usage,
          fmt::format("--ranks {}: the plan's own layout {}; raise --ranks or name others with "
                      "--layouts",
                      num_ranks, own.skipped.empty() ? "" : own.skipped.front().reason));
  std::vector<GridLayout> layouts = std::move(own.to_run);
  if (!plan.is_exact()) return layouts;
  std::string divisors;
  for (index_t n = 1; n <= num_ranks; ++n)
    if (num_ranks % n == 0) divisors += (divisors.empty() ? "" : ",") + std::to_string(n);
  Plan base = plan;
  base.layout.stages.clear();
  const auto axes = parse_grid(fmt::format("tp={0} dp={0} pp={0}", divisors));
  for (const GridLayout& one :
       layouts_of(base, axes, static_cast<int>(num_ranks), transports).to_run) {
    const index_t size = one.plan.num_ranks();
    if ((size == num_ranks || size == 1) && one.name != layouts.front().name)
      layouts.push_back(one);
  }
  return layouts;
}

std::vector<GridLayout> choose_layouts(const Plan& plan, const DrillOptions& options) {
  const std::vector<std::string> items = items_of(options.layouts);
  constexpr index_t any = 4096;
  if (items.empty()) return layouts_that_fit(plan, options.num_ranks.value_or(plan.num_ranks()));
  std::vector<GridLayout> layouts;
  for (const std::string& item : items)
    layouts.push_back(layout_of(plan, item, options.num_ranks.value_or(any)));
  require(plan.is_exact() || layouts.size() == 1, ExitCode::usage,
          "--layouts: in fast mode bits depend on the layout: expected one, or numerics.mode = "
          "\"exact\"");
  return layouts;
}

// How long runs are and how often they save: as the plan says, unless it is a long job's.
DrillLength choose_length(const Plan& plan, const DrillOptions& options) {
  require(plan.checkpoint.every_steps > 0, ExitCode::usage,
          "checkpoint.every_steps is 0: there is no checkpoint to resume from before the end; "
          "expected a plan that saves: give --set checkpoint.every_steps=N");
  const index_t kills = options.kills.value_or(0);
  const index_t steps = options.steps.value_or(
      std::min<index_t>(plan.num_steps(), std::max(default_steps, 2 * kills)));
  require(steps >= 4, ExitCode::usage,
          fmt::format("a drill needs 4 steps or more, found {}: give --steps N", steps));
  // A job that is killed every few steps gets nowhere with rare checkpoints.
  const index_t every = std::max<index_t>(
      1, std::min(plan.checkpoint.every_steps, steps / std::max<index_t>(4, kills / 4)));
  return {.steps = steps,
          .every = every,
          .keep = plan.checkpoint.keep,
          .reads_back = plan.checkpoint.read_back,
          .saves_late = plan.stages_checkpoints() ? 1 : 0};
}

class Drill {
 public:
  Drill(const DrillOptions& options, std::ostream& text, std::ostream& out)
      : options_(options),
        text_(text),
        out_(out),
        progress_(text, isatty(STDERR_FILENO) != 0),
        plan_(load_plan(options.inputs.plan_path, options.inputs.overrides)) {
    RunCheckpoints::check_build(plan_, true);
    setup_.inputs = options.inputs;
    setup_.launcher = options.launcher;
    setup_.length = choose_length(plan_, options);
    setup_.layouts = choose_layouts(plan_, options);
    setup_.seed = options.seed ? *options.seed : std::random_device{}();
    setup_.deadline_s = options.deadline_s.value_or(0.0);
    setup_.inputs.overrides.push_back(fmt::format("run.steps={}", setup_.length.steps));
    setup_.inputs.overrides.push_back(
        fmt::format("checkpoint.every_steps={}", setup_.length.every));
    // A clock's would come at other steps in each run.
    setup_.inputs.overrides.push_back("checkpoint.overhead=0.0");
    load_plan(setup_.inputs.plan_path, setup_.inputs.overrides);  // what both mean together
    choose_disturbances();
    make_drill_folder();
  }

  int run() {
    say_begin();
    if (const int code = run_undisturbed(); code != 0) return code;
    say_estimate();
    text_ << drill_table_head() << std::endl;
    const index_t first = options_.only.value_or(1);
    const index_t last = options_.only.value_or(num_tries_);
    for (index_t number = first; number <= last; ++number) {
      results_.push_back(run_try(number));
      progress_.keep(drill_table_row(results_.back()));
      if (results_.back().verdict == DrillVerdict::interrupted) return interrupted();
      if (results_.back().verdict == DrillVerdict::same && options_.keep.empty())
        fs::remove_all(results_.back().folder);
    }
    return finish();
  }

 private:
  DrillTryResult run_try(index_t number) {
    const std::string label = fmt::format("try {}/{}", number, num_tries_);
    if (options_.kills)
      return run_kill_series(setup_, undisturbed_, *options_.kills, disturbances_, number, label,
                             progress_);
    const Disturbance& disturbance =
        disturbances_[static_cast<std::size_t>(number - 1) % disturbances_.size()];
    return run_drill_try(setup_, undisturbed_, span_s_, number, disturbance,
                         label + " " + to_text(disturbance), progress_);
  }

  void choose_disturbances() {
    if (!options_.points.empty()) {
      disturbances_ = parse_disturbances(options_.points, setup_.length);
    } else {
      disturbances_ =
          options_.kills ? all_kills(setup_.length) : all_disturbances(setup_.length, setup_.seed);
    }
    if (options_.kills) {
      require(*options_.kills >= 1 && *options_.kills <= most_kills, ExitCode::usage,
              fmt::format("--kills: expected 1 to {}, found {}", most_kills, *options_.kills));
      check_kills(disturbances_);
    }
    num_tries_ = options_.tries.value_or(options_.kills ? 1
                                         : options_.points.empty()
                                             ? default_tries
                                             : static_cast<index_t>(disturbances_.size()));
    require(num_tries_ >= 1 && num_tries_ <= most_tries, ExitCode::usage,
            fmt::format("--tries: expected 1 to {}, found {}", most_tries, num_tries_));
    require(!options_.only || *options_.only >= 1, ExitCode::usage,
            fmt::format("--only: expected the number of a try, 1 or more, found {}",
                        options_.only.value_or(0)));
    if (options_.only) num_tries_ = std::max(num_tries_, *options_.only);
  }

  // Paths without links: runs are compared and found by them.
  void make_drill_folder() {
    std::string folder = options_.keep;
    if (folder.empty()) {
      folder = default_run_folder(plan_.name);
      folder.insert(folder.rfind('/') + 1, "drill-");
    }
    require(!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder)),
            ExitCode::usage,
            fmt::format("--keep: expected a new or an empty folder, found {}", folder));
    make_folder(folder);
    setup_.folder = fs::canonical(folder).string();
  }

  void say_begin() {
    const DrillLength& length = setup_.length;
    text_ << fmt::format("weft drill {}: runs of {} steps, a checkpoint every {}{}, seed {}\n",
                         plan_.name, length.steps, length.every,
                         length.every == plan_.checkpoint.every_steps
                             ? ""
                             : fmt::format(" (the plan says {})", plan_.checkpoint.every_steps),
                         setup_.seed);
    if (length.keep < 2)
      text_ << "weft: WARNING: checkpoint.keep = 1: one damaged file would lose the run, so no "
               "checkpoint is altered here; keep 2\n";
    text_ << "layouts:";
    for (const GridLayout& layout : setup_.layouts) text_ << "  " << layout.name;
    text_ << fmt::format("\nfolder {}\n", setup_.folder);
    say_leak(plan_.task, text_);
    text_ << std::flush;
  }

  int run_undisturbed() {
    const std::string run = setup_.folder + "/undisturbed";
    const std::string output = setup_.folder + "/undisturbed-output.txt";
    const DrillEnd end = run_drill_job(setup_, setup_.layouts.front(), run, output, std::nullopt,
                                       "undisturbed", progress_);
    if (end.is_interrupted) return interrupted();
    if (end.is_hang || end.exit_code != 0) {
      progress_.keep(
          fmt::format("weft: the undisturbed run {} after {:.1f} s: {}\nall that it said: {}",
                      end.is_hang ? "hung, and was killed,"
                                  : fmt::format("ended with exit code {}", end.exit_code),
                      end.seconds, last_words(output), output));
      const bool is_ours = !end.is_hang && end.exit_code <= static_cast<int>(ExitCode::data);
      return is_ours ? end.exit_code : static_cast<int>(ExitCode::failed);
    }
    undisturbed_ = read_outcome(run);
    run_s_ = end.seconds;
    // Ranks arm their timers soon after they start.
    span_s_ = std::max(0.0, undisturbed_.total_s);
    return 0;
  }

  // Deadlines come from the undisturbed run: no wait for a peer is as long as all of it without its
  // steps, but for layouts that are slower and machines that are busy.
  void say_estimate() {
    const double steps_s = static_cast<double>(setup_.length.steps) * undisturbed_.longest_step_s;
    const double rest_s = std::max(0.0, undisturbed_.total_s - steps_s);
    setup_.timeout_s = std::min(plan_.comm.timeout_s,
                                std::max({10.0, 10 * undisturbed_.longest_step_s, 3 * rest_s}));
    if (!options_.deadline_s) setup_.deadline_s = 60.0 + 10 * run_s_ + 2 * setup_.timeout_s;
    double estimate_s = 0.0;
    for (index_t i = 0; i < (options_.only ? 1 : num_tries_); ++i) {
      const Disturbance& one = disturbances_[static_cast<std::size_t>(i) % disturbances_.size()];
      // A start, and the steps from a checkpoint to the kill.
      const double start_s = run_s_ - undisturbed_.total_s + undisturbed_.start_s;
      if (options_.kills) {
        estimate_s += 2 * run_s_ + static_cast<double>(*options_.kills) * 1.3 * start_s;
        continue;
      }
      estimate_s += 1.7 * run_s_ + (one.deed == DrillDeed::stop ? setup_.timeout_s : 0.0);
    }
    progress_.keep(fmt::format(
        "undisturbed on {}: {:.1f} s, {} checkpoints, state_hash {}\n{} to come: about {:.0f} s; "
        "waits for a silent peer end after {:.0f} s, a run after {:.0f} s\n",
        setup_.layouts.front().name, run_s_, undisturbed_.num_saved, undisturbed_.state_hash,
        options_.only || num_tries_ == 1 ? "one try" : fmt::format("{} tries", num_tries_),
        estimate_s, setup_.timeout_s, setup_.deadline_s));
  }

  int interrupted() {
    progress_.keep(
        fmt::format("weft: the drill was interrupted; its runs are in {}", setup_.folder));
    return static_cast<int>(ExitCode::stopped);
  }

  int finish() {
    const auto is_bad = [](const DrillTryResult& one) { return one.verdict != DrillVerdict::same; };
    const auto num_bad = std::count_if(results_.begin(), results_.end(), is_bad);
    index_t lost = 0;
    index_t too_late = 0;
    for (const DrillTryResult& one : results_) {
      lost += one.lost_steps;
      too_late += one.came_too_late ? 1 : 0;
    }
    if (too_late > 0)
      text_ << fmt::format(
          "weft: WARNING: {} of {} tries rehearsed nothing: the moment that was drawn came after "
          "the run's end\n",
          too_late, results_.size());
    if (num_bad == 0) {
      text_ << fmt::format(
          "PASSED: {} of {} tries ended with the undisturbed run's state_hash and loss_hash; {} "
          "steps were done twice\n",
          results_.size(), results_.size(), lost);
      if (options_.keep.empty()) remove_tree(setup_.folder);
    } else {
      text_ << fmt::format("FAILED: {} of {} tries; their runs are in {}\n", num_bad,
                           results_.size(), setup_.folder);
      for (const DrillTryResult& one : results_)
        if (is_bad(one)) text_ << "repeat try " << one.number << ": " << repeat(one) << '\n';
    }
    say_leak(plan_.task, text_);
    text_ << std::flush;
    if (options_.json) {
      auto json = drill_json(setup_, plan_.name, undisturbed_, results_);
      mark_leak(plan_.task, json);
      out_ << json.dump() << std::endl;
    }
    return static_cast<int>(num_bad == 0 ? ExitCode::done : ExitCode::failed);
  }

  std::string repeat(const DrillTryResult& one) const {
    std::string command = "weft drill " + shell_word(options_.inputs.plan_path);
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) command += fmt::format(" {} {}", option, shell_word(value));
    };
    for (const std::string& setting : options_.inputs.overrides) add("--set", setting);
    add("--data", options_.inputs.data_folder);
    if (options_.kills) add("--kills", std::to_string(*options_.kills));
    if (options_.num_ranks) add("--ranks", std::to_string(*options_.num_ranks));
    add("--layouts", options_.layouts);
    add("--points", options_.points);
    add("--launcher", options_.launcher);
    if (options_.deadline_s) add("--deadline", fmt::format("{}", *options_.deadline_s));
    return command + fmt::format(" --steps {} --seed {} --only {}", setup_.length.steps,
                                 setup_.seed, one.number);
  }

  const DrillOptions& options_;
  std::ostream& text_;
  std::ostream& out_;
  ProgressLine progress_;
  Plan plan_;
  DrillSetup setup_;
  std::vector<Disturbance> disturbances_;
  index_t num_tries_ = 0;
  DrillOutcome undisturbed_;
  double run_s_ = 0.0;   // of the undisturbed run, with its launcher
  double span_s_ = 0.0;  // and without it
  std::vector<DrillTryResult> results_;
};

}  // namespace

std::string drill_points_help() {
  std::string text =
      "what to do where: DEED@POINT[:STEP], apart by commas; POINT alone is kill@POINT "
      "(default: a bit of everything, in an order drawn). DEED: kill, term, stop (SIGSTOP: the "
      "others "
      "must notice), full (a write fails as on a full disk), flip or tear (a bit of, or the end of "
      "a file of, the newest checkpoint). POINT:";
  for (const drill::PointInfo& point : drill::points())
    text += fmt::format(" {} ({});", point.name, point.meaning);
  text.back() = '.';
  return text;
}

int drill_plan(const DrillOptions& options, std::ostream& text, std::ostream& out) {
  const DrillSignals signals;
  return Drill(options, text, out).run();
}

}  // namespace weft
