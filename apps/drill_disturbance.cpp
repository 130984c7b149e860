// The catalogue of disturbances, the grammar of --points, and what is drawn.
#include "apps/drill_disturbance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.hpp"
#include "parallel/plan/nearest.hpp"

namespace weft {

namespace {

const std::vector<std::string>& deed_names() {
  static const std::vector<std::string> names = {"kill", "term", "stop", "full", "flip", "tear"};
  return names;
}

std::vector<std::string> point_names() {
  std::vector<std::string> names;
  for (const drill::PointInfo& point : drill::points()) names.push_back(point.name);
  return names;
}

[[noreturn]] void fail(const std::string& item, const std::string& message) {
  throw Error(ExitCode::usage, fmt::format("--points: {}: {}", item, message));
}

std::size_t index_of(const std::string& item, const char* what, const std::string& name,
                     const std::vector<std::string>& names) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    fail(item, fmt::format("expected a {}, found \"{}\"; did you mean {}? There are {}", what, name,
                           names[nearest_name(name, names)], fmt::join(names, ", ")));
  return static_cast<std::size_t>(at - names.begin());
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::string_view read_back_point = "save.read_back";
constexpr std::string_view evaluate_point = "evaluate";
// Only where the plan measures its stages and another split is better: by name, never drawn.
constexpr std::string_view split_point = "split";

// It comes in every step.
bool is_between_saves(const Disturbance& one) {
  return !one.is_in_load() && !one.point.starts_with("save.") && one.point != drill::at_time &&
         one.point != split_point;
}

// Where a deed is done if its user names no point.
std::string point_of(DrillDeed deed) { return deed == DrillDeed::full ? "save.shard" : "step"; }

// The first step at which this can be done, and the last one.
Range steps_for(const Disturbance& one, const DrillLength& length) {
  const index_t last_save = length.steps / length.every * length.every;
  if (one.alters_checkpoint())
    return {(2 + length.saves_late) * length.every + 1, length.steps + 1};
  if (one.is_in_load()) return {(1 + length.saves_late) * length.every + 1, length.steps + 1};
  if (one.point.starts_with("save.")) return {1, last_save + 1};
  return {1, length.steps + 1};
}

void check(const std::string& item, const Disturbance& one, const DrillLength& length) {
  if (one.deed == DrillDeed::full && one.point != "save.shard")
    fail(item, "a disk is full while a shard is written: write full, or full@save.shard");
  if (one.alters_checkpoint() && one.point != "step")
    fail(item, fmt::format("a checkpoint is altered after a kill before a step: write {0}, or "
                           "{0}@step:N",
                           name_of(one.deed)));
  if (one.alters_checkpoint() && length.keep < 2)
    fail(item,
         "expected a plan that keeps two checkpoints or more, so that there is an older one "
         "to go on from; found checkpoint.keep = 1: with it one damaged file loses the run");
  if (one.point == read_back_point && !length.reads_back)
    fail(item, "the plan does not read checkpoints back: give --set checkpoint.read_back=true");
  if (one.step && one.point == drill::at_time)
    fail(item, "a moment at random has no step: leave out what follows the colon");
  const Range steps = steps_for(one, length);
  if (one.step && !steps.contains(*one.step))
    fail(item, fmt::format("expected a step from {} to {}{}; found {}", steps.begin, steps.end - 1,
                           steps.begin > 1 ? ", when there are checkpoints to go on from" : "",
                           *one.step));
}

Disturbance parse_one(std::string item, const DrillLength& length) {
  const std::string whole = item;
  Disturbance one;
  if (const std::size_t colon = item.find(':'); colon != std::string::npos) {
    const std::string number = item.substr(colon + 1);
    index_t step = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), step);
    if (error != std::errc() || end != number.data() + number.size())
      fail(whole,
           fmt::format("expected the number of a step after the colon, found \"{}\"", number));
    one.step = step;
    item.resize(colon);
  }
  const std::size_t at = item.find('@');
  const std::string first = item.substr(0, at);
  if (at == std::string::npos && !contains(deed_names(), first)) {
    one.point = point_names()[index_of(whole, "point", first, point_names())];
  } else {
    one.deed = static_cast<DrillDeed>(index_of(whole, "deed", first, deed_names()));
    one.point = point_of(one.deed);
    if (at != std::string::npos)
      one.point = point_names()[index_of(whole, "point", item.substr(at + 1), point_names())];
  }
  check(whole, one, length);
  return one;
}

template <typename Number>
Number draw(std::mt19937_64& random, Number first, Number last) {
  if constexpr (std::is_floating_point_v<Number>) {
    return std::uniform_real_distribution<Number>(first, last)(random);
  } else {
    return std::uniform_int_distribution<Number>(first, last)(random);
  }
}

}  // namespace

std::string_view name_of(DrillDeed deed) { return deed_names()[static_cast<std::size_t>(deed)]; }

std::string to_text(const Disturbance& disturbance) {
  return fmt::format("{}@{}{}", name_of(disturbance.deed), disturbance.point,
                     disturbance.step ? fmt::format(":{}", *disturbance.step) : "");
}

std::vector<Disturbance> parse_disturbances(std::string_view text, const DrillLength& length) {
  std::vector<Disturbance> all;
  std::string item;
  const auto take = [&] {
    if (!item.empty()) all.push_back(parse_one(item, length));
    item.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ' ') {
      take();
    } else {
      item += c;
    }
  }
  take();
  require(!all.empty(), ExitCode::usage, "--points: expected DEED@POINT[:STEP],..., found nothing");
  return all;
}

std::vector<Disturbance> all_disturbances(const DrillLength& length, std::uint64_t seed) {
  std::vector<Disturbance> all;
  for (const std::string& point : point_names()) {
    const bool is_there = length.reads_back || point != read_back_point;
    if (is_there && point != split_point) all.push_back({DrillDeed::kill, point, {}});
  }
  for (const DrillDeed deed : {DrillDeed::full, DrillDeed::flip, DrillDeed::tear}) {
    if (deed == DrillDeed::full || length.keep >= 2) all.push_back({deed, point_of(deed), {}});
  }
  for (const char* point : {"step", "save.write", "time"})
    all.push_back({DrillDeed::term, point, {}});
  for (const char* point : {"backward", "save.write", "time"})
    all.push_back({DrillDeed::stop, point, {}});
  std::mt19937_64 random(seed);
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

std::vector<drill::Order> draw_orders(const Disturbance& disturbance, const DrillLength& length,
                                      double span_s, std::mt19937_64& random) {
  const Range steps = steps_for(disturbance, length);
  const index_t step = disturbance.step.value_or(draw<index_t>(random, steps.begin, steps.end - 1));
  if (disturbance.alters_checkpoint()) return {{.at = "step", .step = step}};
  const auto deed = static_cast<drill::Deed>(disturbance.deed);
  if (disturbance.is_in_load())
    return {{.at = "step", .step = step}, {.deed = deed, .at = disturbance.point}};
  if (disturbance.point == drill::at_time)
    return {{.deed = deed, .at = disturbance.point, .seconds = draw(random, 0.0, span_s)}};
  return {{.deed = deed, .at = disturbance.point, .step = step}};
}

std::vector<Disturbance> all_kills(const DrillLength& length) {
  std::vector<Disturbance> all;
  for (const std::string& point : point_names()) {
    const bool is_there = length.reads_back || point != read_back_point;
    if (is_there && point != evaluate_point && point != split_point)
      all.push_back({DrillDeed::kill, point, {}});
  }
  return all;
}

void check_kills(const std::vector<Disturbance>& points) {
  for (const Disturbance& one : points) {
    require(one.deed == DrillDeed::kill && !one.step && one.point != evaluate_point &&
                one.point != split_point,
            ExitCode::usage,
            fmt::format("--kills: expected points of kills, without a step and without {} and {}, "
                        "which a run may come to only once; found {}",
                        evaluate_point, split_point, to_text(one)));
  }
  require(std::any_of(points.begin(), points.end(), is_between_saves), ExitCode::usage,
          "--kills: expected a point that is none of save, load or time among --points: add step");
}

drill::Order draw_kill(const std::vector<Disturbance>& points, const DrillLength& length,
                       const KillPlace& place, std::mt19937_64& random) {
  const index_t every = length.every;
  const index_t last_save = length.steps / every * every;
  // A save after one of these steps is not the last one.
  const index_t last = last_save - every;
  const index_t until = every + (last - every) * (place.num_done + 1) / place.num_kills;
  const index_t next = place.checkpoint + 1;
  const auto may_be = [&](const Disturbance& one) {
    if (one.is_in_load()) return place.checkpoint > 0;
    if (one.point == drill::at_time) return place.checkpoint + 2 * every <= last_save;
    return is_between_saves(one) || next <= last;
  };
  Disturbance one;
  do {
    one = points[random() % points.size()];
  } while (!may_be(one));
  if (one.is_in_load()) return {.at = one.point};
  const index_t end = std::max(next, until);
  if (one.point == drill::at_time)
    return {.at = one.point,
            .seconds = draw(random, 0.0,
                            place.start_s + place.step_s * static_cast<double>(
                                                               std::min(end - next, every) + 1))};
  return {.at = one.point, .step = draw(random, next, end)};
}

}  // namespace weft
