#include "parallel/pipeline/stage_split.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace weft::pipeline {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// times[stage][k - 1]: of k blocks.
using Times = std::vector<std::vector<double>>;

// The least sum of the stages' times where none takes longer than `cap`.
//
//   sum(s, b) = min over k of sum(s - 1, b - k) + times[s][k], times[s][k] <= cap
class CappedSplit {
 public:
  CappedSplit(const Times& times, index_t num_blocks, double cap)
      : num_blocks_(num_blocks), least_(times.size() + 1, row(never)), taken_(times.size()) {
    least_[0][0] = 0.0;
    for (std::size_t stage = 0; stage < times.size(); ++stage) {
      taken_[stage].assign(static_cast<std::size_t>(num_blocks) + 1, 0);
      for (index_t end = 1; end <= num_blocks; ++end) add(times[stage], stage, end, cap);
    }
  }

  double sum() const { return least_.back().back(); }

  std::vector<index_t> blocks() const {
    std::vector<index_t> blocks(taken_.size());
    index_t end = num_blocks_;
    for (std::size_t stage = taken_.size(); stage-- > 0;) {
      blocks[stage] = taken_[stage][static_cast<std::size_t>(end)];
      end -= blocks[stage];
    }
    return blocks;
  }

 private:
  std::vector<double> row(double value) const {
    return std::vector<double>(static_cast<std::size_t>(num_blocks_) + 1, value);
  }

  void add(const std::vector<double>& times, std::size_t stage, index_t end, double cap) {
    for (index_t k = 1; k <= end; ++k) {
      const double time = times[static_cast<std::size_t>(k - 1)];
      if (time > cap) continue;
      const double sum = least_[stage][static_cast<std::size_t>(end - k)] + time;
      double& least = least_[stage + 1][static_cast<std::size_t>(end)];
      if (sum >= least) continue;
      least = sum;
      taken_[stage][static_cast<std::size_t>(end)] = k;
    }
  }

  index_t num_blocks_;
  std::vector<std::vector<double>> least_;   // [stages so far][blocks so far]
  std::vector<std::vector<index_t>> taken_;  // [stage][blocks so far]: its own
};

// Whether there can be a split: each stage as many blocks as it can take.
bool has_room(const Times& times, index_t num_blocks, double cap) {
  index_t room = 0;
  for (const std::vector<double>& of_stage : times) {
    index_t most = 0;
    for (std::size_t i = 0; i < of_stage.size(); ++i) {
      if (of_stage[i] <= cap) most = static_cast<index_t>(i) + 1;
    }
    if (most == 0) return false;
    room += most;
  }
  return room >= num_blocks;
}

}  // namespace

PassTime StageCost::of(index_t num_blocks) const {
  const auto n = static_cast<double>(num_blocks);
  return {fixed.forward + n * block.forward, fixed.backward + n * block.backward};
}

std::vector<PassTime> times_of(const std::vector<StageCost>& costs,
                               const std::vector<index_t>& blocks) {
  std::vector<PassTime> times;
  for (std::size_t stage = 0; stage < costs.size(); ++stage)
    times.push_back(costs[stage].of(blocks[stage]));
  return times;
}

double length_of(const Schedule& schedule, const std::vector<PassTime>& stages) {
  require(std::ssize(stages) == schedule.num_stages(), ExitCode::failed,
          "times of " + std::to_string(stages.size()) + " stages for a schedule of " +
              std::to_string(schedule.num_stages()));
  const auto num_microbatches = static_cast<std::size_t>(schedule.num_microbatches);
  // When each computation ended, forward and backward: [stage][microbatch]; -1: not yet.
  const std::vector<std::vector<double>> none(stages.size(),
                                              std::vector<double>(num_microbatches, -1.0));
  std::vector<std::vector<double>> ends[] = {none, none};
  const auto end_of = [&](const Action& action) -> double& {
    auto& of_kind = ends[action.kind == ActionKind::forward ? 0 : 1];
    return of_kind[static_cast<std::size_t>(action.stage)]
                  [static_cast<std::size_t>(action.microbatch)];
  };
  std::vector<std::size_t> next(stages.size());
  std::vector<double> now(stages.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const std::vector<Action>& actions = schedule.stages[stage];
      for (; next[stage] < actions.size(); ++next[stage]) {
        const Action& action = actions[next[stage]];
        if (!is_compute(action.kind)) continue;
        const std::optional<Action> needed = needed_by(action, schedule.num_stages() - 1);
        const double input = needed ? end_of(*needed) : 0.0;
        if (input < 0.0) break;
        const double time =
            action.kind == ActionKind::forward ? stages[stage].forward : stages[stage].backward;
        now[stage] = std::max(now[stage], input) + time;
        end_of(action) = now[stage];
        moved = true;
      }
    }
  }
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    require(next[stage] == schedule.stages[stage].size(), ExitCode::failed,
            "the schedule does not come to its end:\n" + print(schedule));
  }
  return *std::max_element(now.begin(), now.end());
}

double flow_time(const std::vector<PassTime>& stages, index_t num_microbatches) {
  double sum = 0.0, slowest = 0.0;
  for (const PassTime& stage : stages) {
    sum += stage.both();
    slowest = std::max(slowest, stage.both());
  }
  return sum + static_cast<double>(num_microbatches - 1) * slowest;
}

// The slowest stage takes one of the times in the table: for each of these as a cap, the least sum.
std::vector<index_t> best_split(const std::vector<StageCost>& costs, index_t num_blocks,
                                index_t num_microbatches) {
  const auto num_stages = std::ssize(costs);
  require(num_stages >= 1 && num_stages <= num_blocks, ExitCode::failed,
          std::to_string(num_blocks) + " blocks for " + std::to_string(num_stages) + " stages");
  Times times;
  std::vector<double> caps;
  for (const StageCost& cost : costs) {
    times.emplace_back();
    for (index_t k = 1; k <= num_blocks - num_stages + 1; ++k)
      times.back().push_back(cost.of(k).both());
    // So that `end` may be any number of blocks.
    caps.insert(caps.end(), times.back().begin(), times.back().end());
    times.back().resize(static_cast<std::size_t>(num_blocks), never);
  }
  std::sort(caps.begin(), caps.end());
  caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
  const double least_sum = CappedSplit(times, num_blocks, caps.back()).sum();
  std::vector<index_t> best;
  double best_time = never;
  for (const double cap : caps) {
    const double others = static_cast<double>(num_microbatches - 1) * cap;
    if (least_sum + others >= best_time) break;
    if (!has_room(times, num_blocks, cap)) continue;
    const CappedSplit split(times, num_blocks, cap);
    if (split.sum() + others >= best_time) continue;
    best_time = split.sum() + others;
    best = split.blocks();
  }
  return best;
}

std::vector<index_t> refine_split(const Schedule& schedule, const std::vector<StageCost>& costs,
                                  std::vector<index_t> blocks) {
  double least = length_of(schedule, times_of(costs, blocks));
  for (bool moved = true; moved;) {
    moved = false;
    const std::vector<index_t> from_here = blocks;
    for (std::size_t from = 0; from < blocks.size(); ++from) {
      for (std::size_t to = 0; to < blocks.size(); ++to) {
        if (from == to || from_here[from] == 1) continue;
        std::vector<index_t> trial = from_here;
        --trial[from];
        ++trial[to];
        const double length = length_of(schedule, times_of(costs, trial));
        if (length >= least) continue;
        least = length;
        blocks = std::move(trial);
        moved = true;
      }
    }
  }
  return blocks;
}

}  // namespace weft::pipeline
