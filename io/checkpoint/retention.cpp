#include "io/checkpoint/retention.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/pins.hpp"

namespace weft {

bool opens(const CheckpointPlace& place) {
  try {
    read_checkpoint_texts(place.path);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

std::set<index_t> best_steps(const Retention& retention, const std::vector<CheckpointPlace>& places,
                             const std::function<bool(const CheckpointPlace&)>& is_sound) {
  std::set<index_t> best;
  for (const index_t step : retention.ranked) {
    if (std::ssize(best) >= retention.keep_best) break;
    const auto place = std::find_if(places.begin(), places.end(),
                                    [&](const CheckpointPlace& one) { return one.step == step; });
    if (place != places.end() && is_sound(*place)) best.insert(step);
  }
  return best;
}

void retire_older(const std::string& folder, index_t newest, const Retention& retention) {
  std::set<index_t> stays = pinned_steps(folder);
  std::vector<CheckpointPlace> places = list_checkpoints(folder);
  std::erase_if(places, [&](const CheckpointPlace& place) { return place.step > newest; });
  std::map<index_t, bool> asked;
  const auto is_sound = [&](const CheckpointPlace& place) {
    const auto [entry, is_new] = asked.try_emplace(place.step, false);
    if (is_new) entry->second = opens(place);
    return entry->second;
  };
  stays.merge(best_steps(retention, places, is_sound));
  index_t valid = 0;
  for (const CheckpointPlace& place : places) {
    if (valid < retention.keep) {
      valid += is_sound(place) ? 1 : 0;
    } else if (!stays.contains(place.step) && !retention.keeps_step(place.step)) {
      remove_checkpoint(folder, place);
    }
  }
}

}  // namespace weft
