// `weft profile` for people.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"
#include "apps/profile_report.hpp"
#include "apps/step_statistics.hpp"
#include "parallel/plan/memory_model.hpp"

namespace weft {

namespace {

constexpr std::size_t most_ranks = 64;  // shown; JSON has all
constexpr std::size_t most_waits = 8;

double ms(double ns) { return ns * 1e-6; }
double mib(double bytes) { return bytes / (1 << 20); }

class ProfileText {
 public:
  ProfileText(const Profile& profile, std::ostream& text) : profile_(profile), text_(text) {}

  void print() {
    print_head();
    print_rows();
    print_hidden();
    print_waits();
    print_buckets();
    print_memory();
  }

 private:
  std::size_t num_shown() const { return std::min(profile_.ranks.size(), most_ranks); }
  double num_steps() const {
    return static_cast<double>(profile_.ranks.front().account.steps.size());
  }

  void print_head() {
    // The slowest rank's: all ranks go on together.
    double median = 0.0, p95 = 0.0;
    for (const ProfiledRank& rank : profile_.ranks) {
      StepStatistics times(0);
      for (const ProfiledStep& step : rank.account.steps)
        times.add(ms(static_cast<double>(step.wall_ns)), 0.0);
      median = std::max(median, times.median_ms());
      p95 = std::max(p95, times.p95_ms());
    }
    text_ << fmt::format(
        "weft profile {}: {} ranks ({}) over {}, {} steps after {} of warm-up\n"
        "step {:.2f} ms median, {:.2f} ms P95\n",
        profile_.plan.name, profile_.ranks.size(), layout_text(profile_.plan), profile_.transport,
        num_steps(), profile_.warm_up, median, p95);
    if (!profile_.delays.empty()) text_ << fmt::format("DELAYS INJECTED: {}\n", profile_.delays);
    say_leak(profile_.plan.task, text_);
    say_skipped(profile_.skipped_rows, text_);
    say_dropped();
  }

  // What a trace has no room for is missing from the account.
  void say_dropped() {
    std::uint64_t most = 0;
    for (const ProfiledRank& rank : profile_.ranks) most = std::max(most, rank.dropped_events);
    if (most > 0)
      text_ << fmt::format(
          "WARNING: {} spans of a rank did not fit into its trace; their time counts as what it "
          "did around them, and the last steps as unexplained. Measure fewer --steps\n",
          most);
  }

  // Rows of groups of one rank, and of a pipeline of one stage, are left out: nobody waits there.
  bool is_shown(ProfileRow row) const {
    const LayoutPlan& layout = profile_.plan.layout;
    if (row == ProfileRow::communication_tp) return layout.tp > 1;
    if (row == ProfileRow::communication_dp) return layout.dp > 1;
    if (row == ProfileRow::communication_pp || row == ProfileRow::bubble) return layout.pp > 1;
    return true;
  }

  // A line of the table: its cells are those of the rows that are shown.
  void print_line(std::string_view name, std::string_view wall, const auto& cell_of) {
    text_ << fmt::format("  {:<{}}{:>10}", name, place_width(), wall);
    for (int i = 0; i < num_profile_rows; ++i)
      if (is_shown(static_cast<ProfileRow>(i))) text_ << fmt::format("  {:>11}", cell_of(i));
    text_ << '\n';
  }

  void print_rows() {
    text_ << '\n';
    print_line("mean of a step, ms", "wall",
               [](int row) { return short_name(static_cast<ProfileRow>(row)); });
    std::array<double, num_profile_rows> share{};
    for (std::size_t r = 0; r < profile_.ranks.size(); ++r) {
      const ProfileAccount& account = profile_.ranks[r].account;
      const RowTotals totals = totals_of(account);
      const auto wall = static_cast<double>(wall_ns(account));
      for (std::size_t i = 0; i < totals.size(); ++i)
        share[i] += 100.0 * static_cast<double>(totals[i]) / wall /
                    static_cast<double>(profile_.ranks.size());
      if (r >= num_shown()) continue;
      print_line(place_of(r), fmt::format("{:.3f}", ms(wall) / num_steps()), [&](int row) {
        const auto ns = static_cast<double>(totals[static_cast<std::size_t>(row)]);
        return fmt::format("{:.3f}", ms(ns) / num_steps());
      });
    }
    say_more();
    print_line("all ranks, %", "100.0", [&](int row) {
      return fmt::format("{:.1f}", share[static_cast<std::size_t>(row)]);
    });
  }

  void say_more() {
    if (profile_.ranks.size() > num_shown())
      text_ << fmt::format("  and {} ranks more; --json has all\n",
                           profile_.ranks.size() - num_shown());
  }

  std::string place_of(std::size_t r) const {
    const ProfiledRank& rank = profile_.ranks[r];
    return fmt::format("rank {} (tp {} dp {} pp {})", r, rank.tp, rank.dp, rank.pp);
  }

  std::size_t place_width() const { return place_of(num_shown() - 1).size() + 1; }

  static std::string short_name(ProfileRow row) {
    switch (row) {
      case ProfileRow::data_wait:
        return "data";
      case ProfileRow::communication_tp:
        return "comm tp";
      case ProfileRow::communication_dp:
        return "comm dp";
      case ProfileRow::communication_pp:
        return "comm pp";
      case ProfileRow::communication_run:
        return "comm run";
      case ProfileRow::straggler_wait:
        return "straggler";
      default:
        return std::string(name_of(row));
    }
  }

  void print_hidden() {
    std::string line;
    for (std::size_t g = 0; g < profile_groups.size(); ++g) {
      double sum = 0.0;
      for (const ProfiledRank& rank : profile_.ranks)
        for (const ProfiledStep& step : rank.account.steps)
          sum += static_cast<double>(step.hidden_ns[g]);
      const double mean = ms(sum) / num_steps() / static_cast<double>(profile_.ranks.size());
      if (mean > 0.0)
        line += fmt::format("{}{} {:.3f} ms", line.empty() ? "" : ", ", profile_groups[g], mean);
    }
    if (!line.empty())
      text_ << fmt::format("communication hidden behind work, of a mean step and rank: {}\n", line);
  }

  void print_waits() {
    struct Wait {
      std::size_t rank;
      WaitedFor whom;
      double ms_a_step;
    };
    std::vector<Wait> waits;
    for (std::size_t r = 0; r < profile_.ranks.size(); ++r)
      for (const auto& [whom, ns] : profile_.ranks[r].account.waited_ns)
        waits.push_back({r, whom, ms(static_cast<double>(ns)) / num_steps()});
    std::stable_sort(waits.begin(), waits.end(),
                     [](const Wait& a, const Wait& b) { return a.ms_a_step > b.ms_a_step; });
    const double least_ms =
        5e-3 * ms(static_cast<double>(wall_ns(profile_.ranks[0].account))) / num_steps();
    std::erase_if(waits, [&](const Wait& wait) { return wait.ms_a_step < least_ms; });
    text_ << fmt::format("\nwho waited for whom, of a mean step, where it is {:.3f} ms or more\n",
                         least_ms);
    for (std::size_t i = 0; i < std::min(waits.size(), most_waits); ++i)
      text_ << fmt::format("  rank {} {:.3f} ms for rank {}, over {}, whose {} took longer\n",
                           waits[i].rank, waits[i].ms_a_step, waits[i].whom.rank,
                           profile_groups[static_cast<std::size_t>(waits[i].whom.group)],
                           name_of(waits[i].whom.cause));
    if (const auto straggler = straggler_of(profile_.ranks))
      text_ << fmt::format("STRAGGLER: rank {}; the others waited {:.3f} ms a step for its {}\n",
                           straggler->rank, straggler->ms_a_step, name_of(straggler->cause));
    else
      text_ << "no straggler: nobody made the others wait for 2 % of their time\n";
    say_slow_links();
  }

  // What remains where all have come: the bytes, or the links.
  void say_slow_links() {
    for (const SlowLinks& slow : slow_links_of(profile_.ranks))
      text_ << fmt::format(
          "LINKS: {:.1f} % of the time went on {} when all had come to it: its links or its bytes, "
          "no late rank\n",
          slow.percent, profile_groups[static_cast<std::size_t>(slow.group)]);
  }

  void print_buckets() {
    const ProfiledRank& rank = profile_.ranks.front();
    if (rank.buckets.empty()) return;
    text_ << fmt::format(
        "\nbuckets of gradients on rank 0, ms from a step's begin; backward ends at {:.3f}, "
        "the tail behind it is {:.3f}\n{:<26}{:>10}{:>12}{:>12}\n",
        ms(rank.backward_end_ns), ms(tail_ns(rank)), "", "ready", "launched", "completed");
    for (const BucketTimes& bucket : rank.buckets)
      text_ << fmt::format("  {:<24}{:>10.3f}{:>12.3f}{:>12.3f}\n", bucket.name,
                           ms(bucket.ready_ns), ms(bucket.launched_ns), ms(bucket.completed_ns));
  }

  void print_memory() {
    text_ << "\nmemory at the peak, MiB; in brackets what weft check foresees\n";
    for (std::size_t r = 0; r < num_shown(); ++r) {
      const ProfiledRank& rank = profile_.ranks[r];
      const RankMemory foreseen = rank_memory(profile_.plan, rank.tp, rank.dp, rank.pp);
      text_ << fmt::format("  {:<{}}{:>10.2f} in {}:", place_of(r), place_width(),
                           mib(static_cast<double>(rank.peak.total)), name_of(rank.peak.phase));
      for (std::size_t i = 0; i < rank.peak.by_kind.size(); ++i) {
        const auto kind = static_cast<MemoryKind>(i);
        text_ << fmt::format("{} {} {:.2f}", i == 0 ? "" : ",", name_of(kind),
                             mib(static_cast<double>(rank.peak.by_kind[i])));
        const index_t bytes = kind == MemoryKind::parameters  ? foreseen.parameter_bytes
                              : kind == MemoryKind::gradients ? foreseen.gradient_bytes
                              : kind == MemoryKind::optimizer ? foreseen.optimizer_bytes
                                                              : 0;
        if (bytes > 0) text_ << fmt::format(" ({:.2f})", mib(static_cast<double>(bytes)));
      }
      text_ << '\n';
    }
    say_more();
  }

  const Profile& profile_;
  std::ostream& text_;
};

}  // namespace

void print(const Profile& profile, std::ostream& text) { ProfileText(profile, text).print(); }

}  // namespace weft
