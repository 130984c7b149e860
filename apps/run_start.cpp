#include "apps/run_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "apps/agreement.hpp"
#include "apps/assemble.hpp"
#include "io/plan_file.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {

namespace {

constexpr std::uint16_t start_group = 60;  // not one of the mesh's

// Until the plan is known, the session's deadline: for a part of a run, the plan's already.
std::shared_ptr<Progress> progress_of(const Session& session) {
  WaitOptions options;
  options.deadline = session.deadline();
  return std::make_shared<Progress>(options);
}

// The first line in which two plans differ, in each of them, below its table's heading.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string line_a, line_b, table;
  for (;;) {
    const bool has_a = static_cast<bool>(std::getline(lines_a, line_a));
    const bool has_b = static_cast<bool>(std::getline(lines_b, line_b));
    if (!has_a) line_a = "(nothing more)";
    if (!has_b) line_b = "(nothing more)";
    if (line_a != line_b || (!has_a && !has_b)) return {table + line_a, table + line_b};
    if (line_a.starts_with('[')) table = line_a + ' ';
  }
}

// Collective over `world`.
void require_same_plan(Communicator& world, const Plan& plan) {
  const std::string remedy = "Start all ranks with the same plan file and the same --set";
  const std::string mine = plan_fingerprint(plan, FingerprintOf::all);
  const auto hashes = world.all_gather_strings("plan.fingerprint", mine);
  const auto other = std::find_if(hashes.begin(), hashes.end(),
                                  [&](const std::string& hash) { return hash != hashes.front(); });
  if (other == hashes.end()) return;
  // All ranks know that, so that all come here.
  const auto rank = static_cast<std::size_t>(other - hashes.begin());
  const auto texts = world.all_gather_strings("plan.text", to_toml(plan));
  const auto [first, second] = first_difference(texts.front(), texts[rank]);
  throw AgreedError(ExitCode::usage,
                    fmt::format("the plan differs between ranks: rank 0 has \"{}\", rank {} has "
                                "\"{}\". {}",
                                first, rank, second, remedy));
}

}  // namespace

std::string data_folder_of(const RunInputs& inputs, const Plan& plan) {
  if (!inputs.data_folder.empty()) return inputs.data_folder;
  if (!plan.task.path.empty()) return plan.task.path;
  if (const char* folder = std::getenv("WEFT_DATA"); folder && *folder) return folder;
  throw Error(
      ExitCode::data,
      fmt::format("no data folder: give task.path in the plan, --data DIR or WEFT_DATA. `weft "
                  "data make {} DIR` makes a synthetic set",
                  plan.task.dataset));
}

RunStart::RunStart(Session& session)
    : session_(session),
      transport_(make_transport(session.own_transport(), session)),
      world_(*transport_, nullptr, "start", start_group, all_ranks(*transport_),
             progress_of(session)) {}

Plan RunStart::read_plan(const RunInputs& inputs, std::optional<index_t> num_ranks) {
  Plan plan;
  agree(world_, "plan", [&] { plan = load_plan(inputs.plan_path, inputs.overrides, num_ranks); });
  require_same_plan(world_, plan);
  session_.set_deadline(wait_options(plan).deadline);
  world_.progress()->set_deadline(session_.deadline());
  return plan;
}

std::unique_ptr<Transport> RunStart::open_transport(const Plan& plan) {
  std::unique_ptr<Transport> transport;
  agree(world_, "transport", [&] { transport = make_transport(plan.comm.transport, session_); });
  return transport;
}

TrainingData RunStart::open_data(const RunInputs& inputs, const Plan& plan) {
  TrainingData data;
  agree(world_, "data",
        [&] { data = open_training_data(plan.task, data_folder_of(inputs, plan)); });
  if (plan.task.skips_faulty_rows()) {
    require_equal(
        world_, "the data",
        fmt::format("{}, {} of its rows left out, {} samples", data.samples->fingerprint(),
                    num_skipped(data.skipped), data.samples->num_samples()),
        "With task.faulty_rows = \"skip\" a rank that reads other files would have other "
        "samples: give all ranks the same ones");
  }
  return data;
}

}  // namespace weft
