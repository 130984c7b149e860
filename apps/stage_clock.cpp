#include "apps/stage_clock.hpp"

#include <algorithm>

namespace weft {

namespace {

constexpr int forward = 0, backward = 1;

template <class Number>
double median(const std::vector<pipeline::StageCost>& steps, Number&& number_of) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const pipeline::StageCost& step : steps) values.push_back(number_of(step));
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

StageClock::Pass::Pass(StageClock* clock, bool is_forward)
    : clock_(clock), is_forward_(is_forward) {
  if (!clock_) return;
  clock_->model_.set_watch(clock_);
  begin_ns_ = clock_->now_ns();
}

StageClock::Pass::~Pass() {
  if (!clock_) return;
  clock_->model_.set_watch(nullptr);
  clock_->now_.all_ns[is_forward_ ? forward : backward] += clock_->now_ns() - begin_ns_;
  if (is_forward_) ++clock_->now_.num_microbatches;
}

std::int64_t StageClock::now_ns() const {
  context_.device.fence();
  return context_.trace.now_ns();
}

void StageClock::after_layer(int pass, const std::string& name) {
  const std::int64_t now = now_ns();
  if (name.starts_with("block.")) now_.blocks_ns[pass] += now - last_ns_;
  last_ns_ = now;
}

void StageClock::after_forward(index_t, const std::string& name, const Activation&) {
  after_layer(forward, name);
}

void StageClock::after_backward_weight(index_t, const std::string& name) {
  after_layer(backward, name);
}

void StageClock::end_step() {
  if (now_.num_microbatches == 0) return;
  const double microbatches = static_cast<double>(now_.num_microbatches);
  const auto fixed_ms = [&](int pass) {
    return 1e-6 * static_cast<double>(now_.all_ns[pass] - now_.blocks_ns[pass]) / microbatches;
  };
  const auto block_ms = [&](int pass) {
    return 1e-6 * static_cast<double>(now_.blocks_ns[pass]) /
           (microbatches * static_cast<double>(num_blocks_));
  };
  steps_.push_back({.fixed = {fixed_ms(forward), fixed_ms(backward)},
                    .block = {block_ms(forward), block_ms(backward)}});
  now_ = {};
}

pipeline::StageCost StageClock::cost() const {
  using pipeline::StageCost;
  return {.fixed = {median(steps_, [](const StageCost& s) { return s.fixed.forward; }),
                    median(steps_, [](const StageCost& s) { return s.fixed.backward; })},
          .block = {median(steps_, [](const StageCost& s) { return s.block.forward; }),
                    median(steps_, [](const StageCost& s) { return s.block.backward; })}};
}

}  // namespace weft
