// The table of `weft layouts` for people: speed and bits, then where the time of a step goes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <sstream>

#include "apps/layout_table.hpp"
#include "apps/leak_mark.hpp"
#include "apps/study_figures.hpp"

namespace weft {

namespace {

const char* plural(std::size_t count) { return count == 1 ? "" : "s"; }

constexpr std::size_t line_width = 118;

// Words in lines of `line_width`, the first after `begin`, the others after as many spaces.
void print_wrapped(const std::string& begin, const std::vector<std::string>& words,
                   std::ostream& text) {
  std::string line = begin;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && line.size() + words[i].size() > line_width) {
      text << line.substr(0, line.size() - 1) << '\n';
      line = std::string(begin.size(), ' ');
    }
    line += words[i] + (i + 1 < words.size() ? " " : "");
  }
  text << line << '\n';
}

std::vector<std::string> words_of(const std::string& sentence) {
  std::istringstream words(sentence);
  return {std::istream_iterator<std::string>(words), {}};
}

std::vector<std::string> with_commas(std::vector<std::string> list) {
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i] += ',';
  return list;
}

// Reasons in the order of their first layouts, with all layouts of each.
void print_skipped(const std::vector<SkippedLayout>& skipped, std::ostream& text) {
  std::vector<std::string> reasons;
  for (const SkippedLayout& one : skipped) {
    if (std::find(reasons.begin(), reasons.end(), one.reason) == reasons.end()) {
      reasons.push_back(one.reason);
    }
  }
  for (const std::string& reason : reasons) {
    print_wrapped("skipped: ", words_of(reason), text);
    std::vector<std::string> names;
    for (const SkippedLayout& one : skipped) {
      if (one.reason == reason) names.push_back(one.name);
    }
    print_wrapped("  ", with_commas(names), text);
  }
}

std::string shown_name(const LayoutTable& table, const LayoutRow& row) {
  return row.layout.name + (&row == &table.reference() ? " (baseline)" : "");
}

std::size_t name_width(const LayoutTable& table) {
  std::size_t width = 6;  // "layout"
  for (const LayoutRow& row : table.rows) width = std::max(width, shown_name(table, row).size());
  return width;
}

// Whose layouts these are, where the plan names some.
void print_study(const LayoutTable& table, std::ostream& text) {
  const LayoutStudy& study = table.study;
  const StudyPlan& stated = table.plan.study;
  if (study.from == "study.candidates") {
    const std::string baseline = study.baseline.empty()
                                     ? "the smallest of them"
                                     : fmt::format("study.baseline = \"{}\"", study.baseline);
    print_wrapped("layouts of the plan: ",
                  words_of(fmt::format("study.candidates = \"{}\", compared with {}",
                                       study.candidates, baseline)),
                  text);
  } else if (!stated.candidates.empty() || !stated.baseline.empty()) {
    print_wrapped("", words_of("layouts of --grid; those of the plan's [study] are passed over"),
                  text);
  }
}

constexpr double mib = 1024.0 * 1024.0;

void print_speeds(const LayoutTable& table, std::ostream& text) {
  const std::size_t width = name_width(table);
  text << fmt::format("\n{:{}} {:>5} {:>9} {:>8} {:>9} {:>8} {:>6} {:>8} {:>8}  {:8} {}\n",
                      "layout", width, "ranks", "median ms", "P95 ms", "samples/s", "speed-up",
                      "effic.", "device-s", "peak MiB", "state", "same");
  for (const LayoutRow& row : table.rows) {
    const RowFigures figures = table.figures(row);
    text << fmt::format(
        "{:{}} {:5} {:9.2f} {:8.2f} {:9.1f} {:8.2f} {:5.0f}% {:8.3f} {:8.2f}  {:.8} {}\n",
        shown_name(table, row), width, row.num_ranks(), figures.median_ms, figures.p95_ms,
        figures.samples_per_s, figures.speed_up, 100 * figures.efficiency,
        figures.device_s_per_1000_samples, static_cast<double>(figures.peak_bytes) / mib,
        row.runs.front().state_hash.text(), figures.same_bits ? "yes" : "NO");
  }
  text << fmt::format(
      "speed-up: of the median, against {}; effic.: by times as many ranks; device-s: ranks x "
      "seconds\nper 1000 samples; peak: of the largest rank; state: first digits of state_hash; "
      "same: all bits of\nstate_hash and loss_hash\n",
      table.reference().layout.name);
}

// Percent with one digit; "-" where there is nothing to measure.
std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }
std::string percent(double share, bool means_something) {
  return means_something ? percent(share) : "-";
}

void print_accounts(const LayoutTable& table, std::ostream& text) {
  const std::size_t width = name_width(table);
  text << fmt::format("\n{:{}} {:>7} {:>8} {:>6} {:>6} {:>6} {:>5} {:>5} {:>7} {:>7} {:>8}\n",
                      "% of a step", width, "forward", "backward", "comm.", "bubble", "update",
                      "data", "other", "(ideal)", "hidden", "MiB sent");
  for (const LayoutRow& row : table.rows) {
    const RowFigures figures = table.figures(row);
    const Plan& plan = row.layout.plan;
    const auto share = [&](Activity which) { return percent(figures.activity(which)); };
    const double other = figures.other + figures.activity(Activity::start_up) +
                         figures.activity(Activity::evaluation) +
                         figures.activity(Activity::output);
    text << fmt::format(
        "{:{}} {:>7} {:>8} {:>6} {:>6} {:>6} {:>5} {:>5} {:>7} {:>7} {:8.2f}\n",
        shown_name(table, row), width, share(Activity::forward), share(Activity::backward),
        share(Activity::communication),
        percent(figures.activity(Activity::bubble), plan.layout.pp > 1), share(Activity::update),
        share(Activity::data_wait), percent(other),
        percent(figures.ideal_bubble, plan.layout.pp > 1),
        percent(figures.hidden_share.value_or(0.0), figures.hidden_share.has_value()),
        figures.bytes_per_step / mib);
  }
  text << "mean over ranks; forward to other add up to 100. comm.: waiting for other ranks, not "
          "hidden; bubble:\nstages without work, (ideal) (p - 1) / (m + p - 1); hidden: part of "
          "the time of gradient buckets that\nnobody waited for; MiB sent: by all ranks a step\n";
}

}  // namespace

void print_grid(const LayoutTable& table, std::ostream& text) {
  const std::size_t num_rows = table.grid.to_run.size();
  text << fmt::format(
      "weft layouts {}: {} layout{} on up to {} rank{}, {} step{} each, {} of them "
      "warm-up; {} repeat{}\n",
      table.plan.name, num_rows, plural(num_rows), table.num_ranks,
      plural(static_cast<std::size_t>(table.num_ranks)), table.plan.num_steps(),
      plural(static_cast<std::size_t>(table.plan.num_steps())), table.num_warm_up,
      table.num_repeats, plural(static_cast<std::size_t>(table.num_repeats)));
  print_study(table, text);
  if (table.grid.num_duplicates > 0) {
    text << fmt::format("left out: {} combination{}, each the same run as another:\n",
                        table.grid.num_duplicates,
                        plural(static_cast<std::size_t>(table.grid.num_duplicates)));
    print_wrapped("  ", with_commas(duplicate_rules()), text);
  }
  print_skipped(table.grid.skipped, text);
  say_leak(table.plan.task, text);
  say_skipped(table.skipped_rows, text);
  text << std::flush;
}

void print_table(const LayoutTable& table, std::ostream& text) {
  print_speeds(table, text);
  print_accounts(table, text);
  print_scaling(table, text);
  say_leak(table.plan.task, text);
  text << std::flush;
}

std::string verdict_text(const LayoutTable& table) {
  const std::vector<std::string> differing = table.differing();
  const LayoutRow& first = table.rows.front();
  const bool is_one_batch =
      std::all_of(table.rows.begin(), table.rows.end(), [&](const LayoutRow& row) {
        return row.layout.plan.batch.global == first.layout.plan.batch.global;
      });
  if (differing.empty() && !is_one_batch) {
    return fmt::format("same bits on all layouts of equal batch, of {} layouts", table.rows.size());
  }
  if (differing.empty()) {
    return fmt::format("same bits on {}: state_hash {}, loss_hash {}",
                       table.rows.size() == 1 ? "the one layout"
                                              : fmt::format("all {} layouts", table.rows.size()),
                       first.runs.front().state_hash.text(), first.runs.front().loss_hash.text());
  }
  const std::string who =
      fmt::format("{} of {} layouts have other bits than the first run of {}: {}", differing.size(),
                  table.rows.size(),
                  is_one_batch ? first.layout.name : "the first layout with the same batch",
                  fmt::join(differing, "; "));
  if (!table.is_broken()) return who + " (fast mode promises none)";
  return who + ". In exact mode this is a fault of weft: please report it with this table";
}

}  // namespace weft
