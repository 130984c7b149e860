#include "apps/layouts_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <ostream>
#include <string_view>
#include <thread>
#include <utility>

#include "apps/agreement.hpp"
#include "apps/ideal_model.hpp"
#include "apps/layout_run.hpp"
#include "apps/layout_study.hpp"
#include "apps/layout_table.hpp"
#include "apps/progress_line.hpp"
#include "apps/weak_scaling.hpp"
#include "core/kokkos_session.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {

namespace {

constexpr index_t usual_steps = 20;

// What a rank says at a layout's end: its figures, or the error that all its ranks know of. A rank
// that has waited says nothing.
constexpr char says_figures = 'f';
constexpr char says_error = 'e';

// The first ranks of the run, as many as some layout has; without a session on the others.
struct Part {
  std::unique_ptr<Session> session;
  std::unique_ptr<RunStart> start;
};

class LayoutsJob {
 public:
  LayoutsJob(const LayoutsOptions& options, Session& session, std::ostream& text, std::ostream& out)
      : options_(options),
        text_(text),
        out_(out),
        session_(session),
        start_(session),
        progress_(text, isatty(STDERR_FILENO) != 0) {}

  int run() {
    read_grid();
    data_ = start_.open_data(options_.inputs, table_.plan);
    table_.skipped_rows = data_.skipped;
    index_t num_threads = 1;
    for (const LayoutRow& row : table_.rows) {
      make_part(row.num_ranks());
      num_threads = std::max(num_threads, row.layout.plan.layout.threads);
    }
    const KokkosSession kokkos(static_cast<int>(num_threads));
    if (is_first()) print_grid(table_, text_);
    // a b c a b c, so that a noisy while of the machine meets all layouts alike.
    try {
      for (index_t repeat = 0; repeat < options_.repeats; ++repeat) {
        for (LayoutRow& row : table_.rows) run_once(row);
      }
    } catch (const Error& error) {
      say_what_there_is(error);
      throw;
    }
    return finish();
  }

 private:
  bool is_first() const { return session_.rank() == 0; }

  void read_grid() {
    RunInputs inputs = options_.inputs;
    if (options_.steps) inputs.overrides.push_back(fmt::format("run.steps={}", *options_.steps));
    table_.plan = start_.read_plan(inputs, std::nullopt);
    if (!table_.plan.run.steps) table_.plan.run = {.steps = usual_steps, .epochs = std::nullopt};
    // It is a running job that splits again; here splits are named and compared.
    const bool measures = std::exchange(table_.plan.layout.measures_stages, false);
    if (measures && is_first())
      text_ << "layout.stages = \"measured\": the even split is run; others are lists in the grid\n";
    table_.num_ranks = session_.size();
    table_.num_repeats = options_.repeats;
    table_.num_warm_up = options_.warm_up;
    require_equal(start_.world(), "the grid",
                  fmt::format("{} --repeat {} --warmup {} --scaling {} --evaluate {}",
                              options_.grid.value_or("none"), options_.repeats, options_.warm_up,
                              options_.scaling, options_.evaluates),
                  "Start all ranks with the same arguments");
    agree(start_.world(), "grid", [&] {
      const Scaling scaling = parse_scaling(options_.scaling);
      check_counts();
      table_.study = choose_study(table_.plan, options_.grid);
      table_.grid = layouts_of(table_.plan, table_.study, session_.size(), built_in_transports());
      if (scaling == Scaling::weak) scale_weakly(table_.grid);
      require_some(table_.grid, table_.study.from);
    });
    for (const GridLayout& layout : table_.grid.to_run) table_.rows.push_back({layout});
  }

  void check_counts() const {
    require(options_.repeats >= 1, ExitCode::usage,
            fmt::format("--repeat: expected 1 or more; found {}", options_.repeats));
    const index_t steps = table_.plan.num_steps();
    require(options_.warm_up >= 0 && options_.warm_up < steps, ExitCode::usage,
            fmt::format("--warmup: expected 0 or more, and fewer than the {} steps of a run; found "
                        "{}. Give a smaller one, or more --steps",
                        steps, options_.warm_up));
  }

  // Collective over the run.
  void make_part(index_t num_ranks) {
    const auto [entry, is_new] = parts_.try_emplace(num_ranks);
    if (!is_new) return;
    Part& part = entry->second;
    part.session = session_.first_ranks(static_cast<int>(num_ranks));
    if (part.session) part.start = std::make_unique<RunStart>(*part.session);
  }

  // Collective over the run.
  void run_once(LayoutRow& row) {
    const Part& part = parts_.at(row.num_ranks());
    RankRun mine;
    const std::string report = part.session ? run_part(row, part, mine) : "";
    const std::vector<std::string> all =
        session_.all_gather("the end of " + row.layout.name, report, waiting(part));
    if (all[0][0] == says_error) {
      throw AgreedError(static_cast<ExitCode>(all[0][1] - '0'),
                        row.layout.name + ": " + all[0].substr(2));
    }
    std::vector<std::string_view> figures;
    for (index_t rank = 0; rank < row.num_ranks(); ++rank) {
      figures.push_back(std::string_view(all[static_cast<std::size_t>(rank)]).substr(1));
    }
    row.runs.push_back(combine(figures, std::move(mine)));
    ++num_finished_;
    if (is_first()) say_finished(row);
  }

  // This rank's part of a layout; returns what it says to all.
  std::string run_part(const LayoutRow& row, const Part& part, RankRun& mine) {
    const Plan& plan = row.layout.plan;
    try {
      // Outside of what follows, so that it goes in order when a trainer throws what all know of.
      const std::unique_ptr<Transport> transport = part.start->open_transport(plan);
      try {
        mine = run_layout(plan, data_, *transport, options_.warm_up, options_.evaluates,
                          [&](index_t step) { show_step(row, step); });
        return says_figures + mine.figures;
      } catch (const AgreedError& error) {
        return error_report(error);
      }
    } catch (const AgreedError& error) {
      return error_report(error);
    } catch (const Error& error) {
      throw Error(error.code(), row.layout.name + ": " + error.what());
    } catch (const std::exception& error) {
      throw Error(ExitCode::failed, row.layout.name + ": " + error.what());
    }
  }

  static std::string error_report(const Error& error) {
    const char code = static_cast<char>('0' + static_cast<int>(error.code()));
    return std::string{says_error, code} + error.what();
  }

  // Who has no part in a layout sleeps, and leaves the cores to those who have.
  static SessionWait waiting(const Part& part) {
    if (part.session) return {};
    using namespace std::chrono_literals;
    return {.meanwhile = [] { std::this_thread::sleep_for(5ms); }, .deadline = 24h * 365};
  }

  std::string place_text() const {
    return fmt::format("[{}/{}]", num_finished_ + 1,
                       options_.repeats * static_cast<index_t>(table_.rows.size()));
  }

  void show_step(const LayoutRow& row, index_t step) {
    if (!is_first()) return;
    progress_.show([&] {
      return fmt::format("{} {}: step {}/{}", place_text(), row.layout.name, step + 1,
                         table_.plan.num_steps());
    });
  }

  void say_finished(const LayoutRow& row) {
    const LayoutRun& run = row.runs.back();
    const bool is_same = same_bits(run, table_.first_alike(row));
    progress_.keep(
        fmt::format("[{}/{}] {}: {:.2f} ms a step, {:.1f} samples/s, state {:.8}{}", num_finished_,
                    options_.repeats * static_cast<index_t>(table_.rows.size()), row.layout.name,
                    run.steps.median_ms(), run.steps.samples_per_second(), run.state_hash.text(),
                    is_same ? "" : ", NOT THE SAME BITS"));
  }

  // The layouts that were measured before one failed. The error itself is the caller's to say.
  void say_what_there_is(const Error& error) {
    if (!is_first()) return;
    std::erase_if(table_.rows, [](const LayoutRow& row) { return row.runs.empty(); });
    if (!table_.rows.empty()) print_table(table_, text_);
    if (!options_.json) return;
    auto json = table_json(table_);
    json["error"] = {{"message", error.what()}, {"exit_code", static_cast<int>(error.code())}};
    out_ << json.dump() << std::endl;
  }

  int finish() {
    if (is_first()) {
      print_table(table_, text_);
      text_ << (table_.is_broken() ? "weft: " : "") << verdict_text(table_) << std::endl;
      if (options_.json) out_ << table_json(table_).dump() << std::endl;
    }
    return static_cast<int>(table_.is_broken() ? ExitCode::failed : ExitCode::done);
  }

  LayoutsOptions options_;
  std::ostream& text_;
  std::ostream& out_;
  Session& session_;
  RunStart start_;
  ProgressLine progress_;
  LayoutTable table_;
  TrainingData data_;
  std::map<index_t, Part> parts_;  // by number of ranks
  index_t num_finished_ = 0;
};

}  // namespace

int layouts(const LayoutsOptions& options, Session& session, std::ostream& text,
            std::ostream& out) {
  return LayoutsJob(options, session, text, out).run();
}

}  // namespace weft
