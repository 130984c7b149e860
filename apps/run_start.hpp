// How a command that trains begins, on all ranks of a session at once: plan, transport and data are
// the same everywhere, or all ranks leave with one message and one exit code.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/training_data.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/comm/session.hpp"
#include "parallel/comm/transport.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// What the command line says about a run, whatever is done with it.
struct RunInputs {
  std::string plan_path;
  std::vector<std::string> overrides;  // --set
  std::string data_folder;             // --data; empty: task.path, else WEFT_DATA
};

// --data, else task.path, else WEFT_DATA. Throws Error(data) where none is given.
std::string data_folder_of(const RunInputs& inputs, const Plan& plan);

// All calls are collective over the session and throw AgreedError.
class RunStart {
 public:
  // The session must outlive it.
  explicit RunStart(Session& session);

  // For agreeing; over the transport that the session is made of, as there is no plan yet.
  Communicator& world() { return world_; }

  // `num_ranks`: ranks that the layout is to have, if the plan's own layout will be run. From then
  // on the session and world() wait as long as the plan's comm.timeout_s.
  Plan read_plan(const RunInputs& inputs, std::optional<index_t> num_ranks);
  std::unique_ptr<Transport> open_transport(const Plan& plan);
  // Where rows may be left out, they are the same on all ranks.
  TrainingData open_data(const RunInputs& inputs, const Plan& plan);

 private:
  Session& session_;
  std::unique_ptr<Transport> transport_;
  Communicator world_;
};

}  // namespace weft
