#include "apps/stage_resplit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>

#include "apps/layout_json.hpp"
#include "parallel/comm/gather_values.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* split_key = "stages_split";  // of the event that split_of_events() looks for

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// What a split was measured for: on another layout other ranks have the stages.
Json layout_of_split(const Plan& plan) {
  Json json = layout_json(plan);
  json.erase("stages");
  return json;
}

bool fits(const std::vector<index_t>& blocks, const Plan& plan) {
  const bool has_all = std::all_of(blocks.begin(), blocks.end(), [](index_t n) { return n >= 1; });
  return has_all && std::ssize(blocks) == plan.layout.pp &&
         std::accumulate(blocks.begin(), blocks.end(), index_t{0}) == plan.model.layers;
}

std::vector<double> stage_ms(const SplitChoice& choice) {
  std::vector<double> ms;
  for (const pipeline::PassTime& time : pipeline::times_of(choice.costs, choice.before))
    ms.push_back(time.both());
  return ms;
}

Json choice_json(const SplitChoice& choice) {
  Json fixed = Json::array(), block = Json::array();
  for (const pipeline::StageCost& cost : choice.costs) {
    fixed.push_back(cost.fixed.both());
    block.push_back(cost.block.both());
  }
  return {{"before", choice.before},
          {"after", choice.after},
          {"stage_ms", stage_ms(choice)},
          {"block_ms", std::move(block)},
          {"fixed_ms", std::move(fixed)},
          {"step_ms", choice.step_ms},
          {"pipeline_ms", choice.pipeline_before_ms},
          {"predicted_step_ms", choice.predicted_step_ms()},
          {"predicted_gain", choice.predicted_gain()}};
}

Json cuts_of(Plan plan, const std::vector<index_t>& blocks) {
  plan.layout.stages = blocks;
  return cuts_json(plan);
}

std::string gain_text(double gain) {
  return fmt::format("{:.1f} % {}", 100 * std::abs(gain), gain < 0 ? "longer" : "shorter");
}

// "12.0 KiB behind block 2, 12.0 KiB behind block 5"
std::string cuts_text(const Json& cuts) {
  std::string text;
  for (const Json& cut : cuts) {
    text += fmt::format("{}{:.1f} KiB behind block {}", text.empty() ? "" : ", ",
                        cut.at("activation_bytes").get<double>() / 1024,
                        cut.at("behind_block").get<index_t>());
  }
  return text;
}

}  // namespace

SplitChoice choose_split(const Plan& plan, std::vector<index_t> before,
                         std::vector<pipeline::StageCost> costs, double step_ms) {
  index_t microbatches = 0;
  for (index_t dp = 0; dp < plan.layout.dp; ++dp)
    microbatches = std::max(microbatches, plan.microbatches_of(dp));
  const pipeline::Schedule schedule =
      pipeline::make_schedule(plan.layout.schedule, static_cast<int>(plan.layout.pp), microbatches);
  const auto length = [&](const std::vector<index_t>& blocks) {
    return pipeline::length_of(schedule, pipeline::times_of(costs, blocks));
  };
  SplitChoice choice{.before = std::move(before), .after = {}, .costs = {}, .step_ms = step_ms};
  choice.after = pipeline::refine_split(
      schedule, costs, pipeline::best_split(costs, plan.model.layers, microbatches));
  choice.pipeline_before_ms = length(choice.before);
  choice.pipeline_after_ms = length(choice.after);
  if (choice.pipeline_after_ms >= choice.pipeline_before_ms) {
    choice.after = choice.before;
    choice.pipeline_after_ms = choice.pipeline_before_ms;
  }
  choice.costs = std::move(costs);
  return choice;
}

std::vector<index_t> blocks_of_stages(const Plan& plan) {
  std::vector<index_t> blocks;
  for (index_t stage = 0; stage < plan.layout.pp; ++stage)
    blocks.push_back(plan.blocks_of_stage(stage).size());
  return blocks;
}

std::vector<index_t> split_of_events(const std::string& events, const Plan& plan) {
  const Json layout = layout_of_split(plan);
  std::vector<index_t> last;
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains(split_key)) continue;
    const Json& split = event.at(split_key);
    try {
      const auto blocks = split.at("after").get<std::vector<index_t>>();
      if (split.at("layout") == layout && fits(blocks, plan)) last = blocks;
    } catch (const Json::exception&) {
      continue;
    }
  }
  return last;
}

StageResplit::StageResplit(const Plan& plan, Trainer& trainer) : plan_(plan), trainer_(trainer) {
  if (!is_asked_for()) return;
  num_steps_ = trainer.num_steps() - trainer.steps_done();
  const index_t needed = 2 * (num_warm_up + num_measured);
  if (num_steps_ < needed) {
    why_not_ = fmt::format("{} steps are left and {} are needed: {} before and after a split",
                           num_steps_, needed, needed / 2);
    tell("stages " + list_text(blocks_of_stages(trainer.plan())) + " stay: " + why_not_,
         {{"stages_stay", why_not_}});
    return;
  }
  const Range mine = trainer.plan().blocks_of_stage(trainer.mesh().rank("pp"));
  clock_.emplace(trainer.context(), trainer.model(), mine.size());
}

bool StageResplit::after_step(double step_ms) {
  const bool is_measuring = clock_ || (is_split_ && !step_ms_after_);
  if (!is_measuring) return false;
  ++num_since_;
  if (clock_) {
    if (num_since_ == num_warm_up) trainer_.time_stage(&*clock_);
    if (num_since_ > num_warm_up) clock_->end_step();
  }
  if (num_since_ > num_warm_up) step_ms_.push_back(step_ms);
  if (std::ssize(step_ms_) < num_measured) return false;
  // As with other saves on the way: none of a state whose steps are being skipped.
  if (clock_ && trainer_.num_skipped_in_a_row() > 0) return false;
  if (is_split_) {
    judge();
    return false;
  }
  choose();
  return choice_->after != choice_->before;
}

// Rank 0's clock of steps and arithmetic decide for all.
void StageResplit::choose() {
  trainer_.time_stage(nullptr);
  Communicator& world = trainer_.mesh().world();
  const std::vector<index_t> before = blocks_of_stages(trainer_.plan());
  std::vector<pipeline::StageCost> costs(before.size());
  const auto all = all_gather_values(world, "stages.costs", std::vector{clock_->cost()});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto stage =
        static_cast<std::size_t>(trainer_.mesh().shape().coordinate(static_cast<int>(rank), "pp"));
    const pipeline::StageCost& cost = all[rank].front();
    const auto time = [&](const pipeline::StageCost& one) { return one.of(before[stage]).both(); };
    if (time(cost) > time(costs[stage])) costs[stage] = cost;
  }
  clock_.reset();
  choice_ = choose_split(plan_, before, std::move(costs), median(step_ms_));
  if (choice_->predicted_gain() < least_gain) {
    why_not_ =
        fmt::format("no other split is predicted to make steps {:.0f} % shorter", 100 * least_gain);
    choice_->after = choice_->before;
    choice_->pipeline_after_ms = choice_->pipeline_before_ms;
  }
  choice_->after = values_of<index_t>(
      world.broadcast_string("stages.after", 0, std::string(bytes_of(choice_->after))));
  chosen_at_ = trainer_.steps_done();
  const Json cuts = cuts_of(plan_, choice_->before);
  Json event = choice_json(*choice_);
  event["step"] = chosen_at_;
  event["cuts"] = cuts;
  const std::string found = fmt::format(
      "stages {} measured: {:.2f} ms a microbatch, steps {:.2f} ms; each microbatch sends {}, and "
      "as "
      "much back",
      list_text(choice_->before), fmt::join(stage_ms(*choice_), ", "), choice_->step_ms,
      cuts_text(cuts));
  const bool stays = choice_->after == choice_->before;
  tell(found + (stays ? fmt::format("; they stay: {}", why_not_)
                      : fmt::format("; with {} they are predicted to be {}: {:.2f} ms",
                                    list_text(choice_->after), gain_text(choice_->predicted_gain()),
                                    choice_->predicted_step_ms())),
       {{"stages_measured", std::move(event)}});
}

void StageResplit::end(double moved_ms, const std::string& fault) {
  step_ms_.clear();
  num_since_ = 0;
  moved_ms_ = moved_ms;
  why_not_ = fault;
  is_split_ = fault.empty();
  if (!is_split_) {
    tell(fmt::format("stages {} stay: {}", list_text(choice_->before), fault),
         {{"stages_stay", fault}});
    return;
  }
  const Json cuts = cuts_of(plan_, choice_->after);
  tell(fmt::format("stages {} from here on, changed in {:.2f} s; each microbatch sends {}, and as "
                   "much back",
                   list_text(choice_->after), 1e-3 * moved_ms, cuts_text(cuts)),
       {{split_key,
         {{"step", chosen_at_},
          {"after", choice_->after},
          {"layout", layout_of_split(plan_)},
          {"moved_ms", moved_ms},
          {"cuts", cuts}}}});
}

void StageResplit::judge() {
  step_ms_after_ = median(step_ms_);
  const double gain = 1.0 - *step_ms_after_ / choice_->step_ms;
  tell(fmt::format("stages {}: steps {:.2f} ms instead of {:.2f}, {}; predicted was {}",
                   list_text(choice_->after), *step_ms_after_, choice_->step_ms, gain_text(gain),
                   gain_text(choice_->predicted_gain())),
       {{"stages_gain",
         {{"step", trainer_.steps_done()},
          {"step_ms_before", choice_->step_ms},
          {"step_ms_after", *step_ms_after_},
          {"achieved_gain", gain},
          {"predicted_gain", choice_->predicted_gain()}}}});
}

void StageResplit::tell(std::string text, Json event) {
  news_.push_back({std::move(text), event.dump()});
}

StageResplit::News StageResplit::take_news() {
  if (news_.empty()) return {};
  News first = std::move(news_.front());
  news_.erase(news_.begin());
  return first;
}

Json StageResplit::json() const {
  if (!is_asked_for()) return nullptr;
  const std::vector<index_t> now = blocks_of_stages(trainer_.plan());
  Json json{{"now", now}, {"cuts", cuts_of(plan_, now)}, {"why_not", why_not_}};
  if (choice_) {
    json["measured_at_step"] = chosen_at_;
    json.update(choice_json(*choice_));
  }
  if (is_split_) json["moved_ms"] = moved_ms_;
  if (step_ms_after_) {
    json["step_ms_after"] = *step_ms_after_;
    json["achieved_gain"] = 1.0 - *step_ms_after_ / choice_->step_ms;
  }
  return json;
}

}  // namespace weft
