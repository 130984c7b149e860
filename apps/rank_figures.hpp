// What each rank adds to a run's summary: its memory, its traffic, where its time went.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/sample_record.hpp"
#include "apps/time_account.hpp"
#include "apps/trainer.hpp"
#include "core/arena.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

struct RankFigures {
  int tp, dp, pp;  // place on the mesh
  std::uint64_t parameters;
  std::uint64_t bytes_sent;  // over tp, dp and pp, since the process began
  Arena::Peak peak;
  std::array<Arena::Bytes, num_phases> peak_by_phase;
  TimeAccount steps;  // the measured ones
  SampleRecord samples;
};

// Collective over `world`: of all ranks in rank order, at rank 0 alone. `steps` and `samples`: of
// this rank.
std::vector<RankFigures> gather_figures(Communicator& world, Trainer& trainer,
                                        const TimeAccount& steps, const SampleRecord& samples);

// "ranks" of the summary. Bytes, and milliseconds that add up to "steps_ms".
nlohmann::ordered_json ranks_json(const std::vector<RankFigures>& ranks);
// "replicas": of each dp rank updates and samples. Throws Error(failed) where two ranks of a
// replica had others.
nlohmann::ordered_json replicas_json(const std::vector<RankFigures>& ranks);

}  // namespace weft
