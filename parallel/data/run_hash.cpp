#include "parallel/data/run_hash.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/state_hash.hpp"

namespace weft {

namespace {

enum class Fault : std::int64_t { none, values, states, ownership, replicated };

// What one rank tells the others on an axis, then what they know together.
struct Report {
  StateHash hash;
  std::int64_t owned = 0;  // elements whose optimizer state is here
  // The first fault found, and the world ranks that it is about. It travels on with the sums, so
  // that all ranks come to the end and throw alike.
  Fault fault = Fault::none;
  std::int64_t ranks[2] = {0, 0};

  void blame(Fault what, const Communicator& axis, std::size_t other) {
    if (fault != Fault::none) return;
    fault = what;
    ranks[0] = axis.members()[0];
    ranks[1] = axis.members()[other];
  }
};

std::vector<Report> gather(Communicator& axis, const Report& mine) {
  const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof(mine));
  std::vector<Report> all;
  for (const std::string& text : axis.all_gather_strings("state_hash", bytes))
    std::memcpy(&all.emplace_back(), text.data(), sizeof(Report));
  return all;
}

// The first fault that any of them knows of.
Report begin_with(const std::vector<Report>& all) {
  Report sum = all[0];
  for (const Report& one : all) {
    if (sum.fault != Fault::none || one.fault == Fault::none) continue;
    sum.fault = one.fault;
    std::memcpy(sum.ranks, one.ranks, sizeof(sum.ranks));
  }
  return sum;
}

// Values are copies; states are copies too, or slices that make up the whole.
Report over_dp(const std::vector<Report>& all, const Communicator& dp, index_t num_elements) {
  Report sum = begin_with(all);
  std::int64_t owned = 0;
  for (const Report& one : all) owned += one.owned;
  const bool is_divided = dp.size() > 1 && owned == num_elements;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].hash.values != all[0].hash.values) sum.blame(Fault::values, dp, rank);
    if (is_divided) {
      sum.hash.states += all[rank].hash.states;
    } else if (all[rank].owned != num_elements || all[0].owned != num_elements) {
      sum.blame(Fault::ownership, dp, rank);
    } else if (all[rank].hash.states != all[0].hash.states) {
      sum.blame(Fault::states, dp, rank);
    }
  }
  return sum;
}

// Pieces add up; what is replicated is one thing.
Report over_tp(const std::vector<Report>& all, const Communicator& tp) {
  Report sum = begin_with(all);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const StateHash& one = all[rank].hash;
    if (one.values.replicated != all[0].hash.values.replicated ||
        one.states.replicated != all[0].hash.states.replicated) {
      sum.blame(Fault::replicated, tp, rank);
    }
    sum.hash.values.cut += one.values.cut;
    sum.hash.states.cut += one.states.cut;
  }
  return sum;
}

Report over_pp(const std::vector<Report>& all) {
  Report sum = begin_with(all);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    sum.hash.values += all[rank].hash.values;
    sum.hash.states += all[rank].hash.states;
  }
  return sum;
}

std::string message_of(const Report& report) {
  const std::string ranks = " between world ranks " + std::to_string(report.ranks[0]) + " and " +
                            std::to_string(report.ranks[1]);
  const std::string advice =
      ". Copies stay equal in a sound run: look for memory or a machine that is not, or report "
      "this "
      "with the plan";
  switch (report.fault) {
    case Fault::values:
      return "the data-parallel copies of the parameters differ" + ranks + advice;
    case Fault::states:
      return "the data-parallel copies of the optimizer's state differ" + ranks + advice;
    case Fault::ownership:
      return "the optimizer's state is neither held whole by each data-parallel rank nor divided "
             "among them: they differ in what they own" +
             ranks;
    case Fault::replicated:
      return "the copies of replicated parameters or of their optimizer's state differ" + ranks +
             advice;
    case Fault::none:
      break;
  }
  return "";
}

}  // namespace

Hash128 run_hash(const ParameterSet& parameters, const Optimizer& optimizer, Communicator& tp,
                 Communicator& dp, Communicator& pp) {
  Report report{.hash = hash_state(parameters, &optimizer),
                .owned = optimizer.owned().num_elements()};
  report = over_dp(gather(dp, report), dp, parameters.flat_elements());
  report = over_tp(gather(tp, report), tp);
  report = over_pp(gather(pp, report));
  require(report.fault == Fault::none, ExitCode::failed, message_of(report));
  Hash128 total = report.hash.values.total();
  return total += report.hash.states.total();
}

}  // namespace weft
