// One element of a parameter that is set to some value on every rank that holds it, and set back:
// a step in between is the fault that tests of the trainer need.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "apps/trainer.hpp"
#include "tests/core/shard_values.hpp"

namespace weft::testing {

class Poison {
 public:
  // `global`: row-major index in the whole parameter.
  Poison(std::string parameter, index_t global, float value)
      : parameter_(std::move(parameter)), global_(global), value_(value) {}

  void put(Trainer& trainer) {
    for_element(trainer, [&](float& element) {
      const std::lock_guard lock(mutex_);
      healthy_[trainer.mesh().world_rank()] = std::exchange(element, value_);
    });
  }
  void take_away(Trainer& trainer) {
    for_element(trainer, [&](float& element) {
      const std::lock_guard lock(mutex_);
      element = healthy_.at(trainer.mesh().world_rank());
    });
  }

 private:
  template <class F>
  void for_element(Trainer& trainer, const F& f) const {
    for (const auto& p : trainer.parameters().all()) {
      if (p->name != parameter_) continue;
      for_each_held(p->spec, [&](index_t global, index_t local) {
        if (global == global_) f(p->value[local]);
      });
    }
  }

  std::string parameter_;
  index_t global_;
  float value_;
  std::mutex mutex_;
  std::map<int, float> healthy_;  // by world rank
};

}  // namespace weft::testing
