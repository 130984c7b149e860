#include "apps/async_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "apps/async_record.hpp"
#include "apps/async_worker.hpp"
#include "core/kokkos_session.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

// How many versions back the stalest gradient looks.
index_t largest_staleness(const std::vector<RecordedUpdate>& updates) {
  index_t most = 0;
  for (std::size_t version = 0; version < updates.size(); ++version)
    most = std::max(most, static_cast<index_t>(version) - updates[version].task.version);
  return most;
}

// Empty where all losses have the recorded bits; else which one has not.
std::string repeat(const std::vector<RecordedUpdate>& updates, AsyncWorker& worker,
                   LoneTrainer& owner) {
  const index_t kept = largest_staleness(updates);
  std::map<index_t, std::vector<float>> values;  // by version
  for (const RecordedUpdate& update : updates) {
    const index_t version = owner->steps_done();
    values.erase(values.begin(), values.lower_bound(version - kept));
    values[version].resize(static_cast<std::size_t>(owner.num_values()));
    owner.get_values(values[version].data());
    worker.trainer().set_values(values.at(update.task.version).data());
    const GradientNote note = worker.compute(update.task);
    owner.apply(note, worker.gradient().data());
    if (fmt::format("{:016x}", std::bit_cast<std::uint64_t>(note.loss)) != update.loss_bits)
      return fmt::format(
          "update {} (worker {}, batch {}, on version {}): the loss has other bits "
          "than those recorded",
          version + 1, update.worker, update.task.batch, update.task.version);
  }
  return "";
}

// Of the run with this plan, or an error: with another one all bits differ.
std::string recorded_state(const std::string& run_folder, const Plan& plan) {
  std::ifstream file(run_folder + "/summary.json");
  const auto summary = nlohmann::json::parse(file, nullptr, false);
  require(summary.is_object() && summary.contains("objective"), ExitCode::data,
          fmt::format("{}/summary.json: expected the summary of an asynchronous run that came to "
                      "its end; found none",
                      run_folder));
  require(plan.is_exact(), ExitCode::usage,
          "--replay: expected numerics.mode = \"exact\", in which the same gradients have the same "
          "bits; found \"fast\"");
  const index_t num_workers = summary.at("layout").at("dp");
  require(plan.layout.dp == num_workers, ExitCode::usage,
          fmt::format("--replay: expected the run's layout.dp = {}; found {}; set it", num_workers,
                      plan.layout.dp));
  const std::string expected = summary.at("plan_hash"), found = plan_fingerprint(plan);
  require(found == expected, ExitCode::usage,
          fmt::format("--replay: expected the run's plan (hash {}); found another one ({}); give "
                      "{}/plan.toml, or the same PLAN and --set",
                      expected, found, run_folder));
  return summary.at("state_hash").get<std::string>();
}

}  // namespace

int replay_async(const RunInputs& inputs, const std::string& run_folder, Session& session,
                 bool json, std::ostream& text, std::ostream& out) {
  require(session.size() == 1, ExitCode::usage,
          fmt::format("--replay: expected one rank; found {}", session.size()));
  RunStart start(session);
  const Plan plan = start.read_plan(inputs, std::nullopt);
  const Plan of_worker = worker_plan(plan);
  const TrainingData data = start.open_data(inputs, plan);
  const std::vector<RecordedUpdate> updates = read_updates(run_folder + "/run.jsonl");
  const std::string recorded = recorded_state(run_folder, plan);
  const KokkosSession kokkos(static_cast<int>(plan.layout.threads));
  AsyncWorker worker(of_worker, data);
  LoneTrainer owner(of_worker, data);
  std::string fault = repeat(updates, worker, owner);
  const std::string state = owner->state_hash().text();
  if (fault.empty() && state != recorded)
    fault = fmt::format("the state is {}, recorded is {}", state, recorded);
  const std::string what =
      fault.empty() ? fmt::format("{} updates, all losses and the state {} have the recorded bits",
                                  updates.size(), state)
                    : fault;
  text << "replay of " << run_folder << ": " << what << std::endl;
  if (json)
    out << nlohmann::ordered_json{{"same_bits", fault.empty()}, {"what", what}}.dump() << std::endl;
  return static_cast<int>(fault.empty() ? ExitCode::done : ExitCode::failed);
}

}  // namespace weft
