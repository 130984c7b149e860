#include "apps/ideal_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "parallel/plan/nearest.hpp"

namespace weft {

std::string name_of(Scaling scaling) { return scaling == Scaling::strong ? "strong" : "weak"; }

Scaling parse_scaling(const std::string& text) {
  const std::vector<std::string> kinds{"strong", "weak"};
  for (const Scaling scaling : {Scaling::strong, Scaling::weak})
    if (text == name_of(scaling)) return scaling;
  throw Error(ExitCode::usage,
              fmt::format("--scaling: expected strong or weak; found {}; did you mean {}?", text,
                          kinds[nearest_name(text, kinds)]));
}

double ideal_busy_share(index_t num_stages, index_t num_microbatches) {
  const auto m = static_cast<double>(num_microbatches);
  return m / (m + static_cast<double>(num_stages) - 1.0);
}

namespace {

// "--ranks: expected a multiple of the 4 stages; found 6: give 8 or 4".
std::string stages_fault(const IdealModel& model, index_t devices) {
  std::string advice;
  for (const index_t near : nearest_legal(devices, model.stages, devices + model.stages,
                                          model.stages, [](index_t) { return true; })) {
    advice += fmt::format("{}{}", advice.empty() ? "" : " or ", near);
  }
  return fmt::format("--ranks: expected a multiple of the {} stages, or 1; found {}. Give {}",
                     model.stages, devices, advice);
}

std::string number_fault(const char* option, double value, double least) {
  if (std::isfinite(value) && value >= least) return "";
  return fmt::format("{}: expected {:g} or more; found {:g}", option, least, value);
}

}  // namespace

std::string fault_of(const IdealModel& model, index_t devices) {
  for (const std::string& fault :
       {number_fault("--compute", model.compute_ms, 0.0),
        number_fault("--fixed", model.fixed_ms, 0.0),
        number_fault("--communication", model.communication_ms, 0.0),
        number_fault("--hidden", model.hidden_ms, 0.0),
        number_fault("--split", model.split_ms, 0.0), number_fault("--batch", model.batch, 1.0),
        number_fault("--stages", static_cast<double>(model.stages), 1.0),
        number_fault("--microbatches", static_cast<double>(model.microbatches), 1.0),
        number_fault("--ranks", static_cast<double>(devices), 1.0)}) {
    if (!fault.empty()) return fault;
  }
  if (model.compute_ms + model.fixed_ms <= 0.0)
    return "--compute and --fixed: expected a step that takes some time; found 0 ms";
  if (model.hidden_ms > model.communication_ms) {
    return fmt::format(
        "--hidden: expected at most the {0:g} ms of --communication, a part of which is hidden; "
        "found {1:g}. Give --hidden {0:g}, or --communication {1:g}",
        model.communication_ms, model.hidden_ms);
  }
  if (devices > 1 && devices % model.stages != 0) return stages_fault(model, devices);
  return "";
}

IdealStep ideal_step(const IdealModel& model, index_t devices) {
  const bool is_alone = devices == 1;
  const auto n = static_cast<double>(devices);
  const double replicas = is_alone ? 1.0 : n / static_cast<double>(model.stages);
  const double growth = model.scaling == Scaling::weak ? replicas : 1.0;
  const double busy =
      ideal_busy_share(is_alone ? 1 : model.stages, is_alone ? 1 : model.microbatches);
  IdealStep step{};
  step.devices = devices;
  step.batch = model.batch * growth;
  step.compute_ms = model.compute_ms * growth / n + (is_alone ? 0.0 : model.split_ms);
  step.bubble_ms = step.compute_ms / busy - step.compute_ms;
  step.fixed_ms = model.fixed_ms;
  step.exposed_ms = is_alone ? 0.0 : model.communication_ms - model.hidden_ms;
  step.step_ms = step.compute_ms + step.bubble_ms + step.fixed_ms + step.exposed_ms;
  step.samples_per_s = 1000.0 * step.batch / step.step_ms;
  step.speed_up = (model.compute_ms + model.fixed_ms) * growth / step.step_ms;
  step.efficiency = step.speed_up / n;
  step.device_s = n * step.step_ms / 1000.0;
  step.updates = 1.0 / growth;
  return step;
}

SlowestRank slowest_of(const std::vector<double>& local_ms) {
  const auto slowest = std::max_element(local_ms.begin(), local_ms.end());
  SlowestRank all{.rank = static_cast<std::size_t>(slowest - local_ms.begin()),
                  .step_ms = *slowest,
                  .waits = {},
                  .mean_ms = std::accumulate(local_ms.begin(), local_ms.end(), 0.0) /
                             static_cast<double>(local_ms.size())};
  for (const double ms : local_ms) all.waits.push_back(*slowest - ms);
  return all;
}

}  // namespace weft
