// What a drill does to a run: the disturbances that there are, those that --points names, and the
// numbers of one try. Pure, but for the random numbers that are handed in.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/drill_point.hpp"
#include "core/range.hpp"

namespace weft {

// What is done: by a rank to itself at a point (drill::Deed), or, after one was killed, to the
// newest checkpoint: a bit flipped, a file cut short.
enum class DrillDeed { kill, term, stop, full, flip, tear };

struct Disturbance {
  DrillDeed deed = DrillDeed::kill;
  std::string point;            // of drill::points()
  std::optional<index_t> step;  // else drawn
  friend bool operator==(const Disturbance&, const Disturbance&) = default;

  bool alters_checkpoint() const { return deed == DrillDeed::flip || deed == DrillDeed::tear; }
  bool is_in_load() const { return point.starts_with("load"); }
};

// "kill@save.commit:12", as --points takes it.
std::string to_text(const Disturbance& disturbance);
std::string_view name_of(DrillDeed deed);

// The length of the drill's runs, and how often they save.
struct DrillLength {
  index_t steps = 0;
  index_t every = 0;
  index_t keep = 2;
  bool reads_back = true;  // a new checkpoint
  // After how many times `every` more a checkpoint is surely whole: one that is written beside the
  // steps is so when the next is due.
  index_t saves_late = 0;
};

// Items DEED@POINT[:STEP] apart by commas; POINT alone is kill@POINT, and flip, tear and full need
// no point. Throws Error(usage) that names the nearest deed or point, or the steps that there are.
std::vector<Disturbance> parse_disturbances(std::string_view text, const DrillLength& length);

// One of each kind, in an order that `seed` decides: what a drill does where no points are named.
std::vector<Disturbance> all_disturbances(const DrillLength& length, std::uint64_t seed);

// Orders for the parts of one try, in turn; the parts after them are not disturbed. A load is
// disturbed in the second part, once the first was killed. `span_s`: how long a part works.
std::vector<drill::Order> draw_orders(const Disturbance& disturbance, const DrillLength& length,
                                      double span_s, std::mt19937_64& random);

// A job that is killed again and again: how far it is.
struct KillPlace {
  index_t num_kills = 0;   // in all
  index_t num_done = 0;    // of them
  index_t checkpoint = 0;  // the newest one's step; 0: none
  double start_s = 0.0;    // until a process of it makes steps
  double step_s = 0.0;
};

// Every kill that one of a series may be: not those that come only when the job is at its end.
std::vector<Disturbance> all_kills(const DrillLength& length);
// Throws Error(usage) where `points` has one that none of a series may be.
void check_kills(const std::vector<Disturbance>& points);

// One of `points`, at a moment such that the kills are spread over the job's steps and none of them
// comes after its last checkpoint.
drill::Order draw_kill(const std::vector<Disturbance>& points, const DrillLength& length,
                       const KillPlace& place, std::mt19937_64& random);

}  // namespace weft
