#include "apps/run_start.hpp"

#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "apps/agreement.hpp"
#include "io/plan_file.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {

namespace {

constexpr std::uint16_t start_group = 60;  // not one of the mesh's

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string data_folder_of(const RunInputs& inputs, const Plan& plan) {
  if (!inputs.data_folder.empty()) return inputs.data_folder;
  if (!plan.task.path.empty()) return plan.task.path;
  if (const char* folder = std::getenv("WEFT_DATA"); folder && *folder) return folder;
  throw Error(ExitCode::data,
              "no data folder: give task.path in the plan, --data DIR or WEFT_DATA. `weft data "
              "make cifar10 DIR` makes a synthetic set");
}

}  // namespace

RunStart::RunStart(Session& session)
    : session_(session),
      transport_(make_transport(session.own_transport(), session)),
      world_(*transport_, nullptr, "start", start_group, all_ranks(session.size())) {}

Plan RunStart::read_plan(const RunInputs& inputs, std::optional<index_t> num_ranks) {
  Plan plan;
  agree(world_, "plan", [&] { plan = load_plan(inputs.plan_path, inputs.overrides, num_ranks); });
  require_equal(world_, "the plan", plan_fingerprint(plan, FingerprintOf::all),
                "Start all ranks with the same plan file and the same --set");
  return plan;
}

std::unique_ptr<Transport> RunStart::open_transport(const Plan& plan) {
  std::unique_ptr<Transport> transport;
  agree(world_, "transport", [&] { transport = make_transport(plan.comm.transport, session_); });
  return transport;
}

TrainingData RunStart::open_data(const RunInputs& inputs, const Plan& plan) {
  TrainingData data;
  agree(world_, "data", [&] {
    data.images = std::make_unique<Cifar10>(data_folder_of(inputs, plan));
    data.split = make_split(data.images->num_samples(Cifar10::Part::training), plan.task.train,
                            plan.task.validation, plan.task.split_seed);
  });
  return data;
}

}  // namespace weft
