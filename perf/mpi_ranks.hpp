// What benchmarks on ranks of MPI share: their start, and the model whose state they save.
#pragma once

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "apps/training_data.hpp"
#include "core/kokkos_session.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "parallel/plan/plan.hpp"
#include "perf/one_rank.hpp"

namespace weft::perf {

// An MLP whose values and two moments take about `mib` MiB; tp and dp up to 4.
inline Plan plan_of_state(std::string name, index_t mib, index_t tp, index_t dp, index_t zero) {
  Plan plan;
  plan.name = std::move(name);
  plan.task.train = 4000;
  plan.task.validation = 1000;
  plan.model.hidden = 768;
  // A block: two matrices of 4 hidden^2 values; AdamW keeps two more numbers a value.
  const index_t block_bytes = 3 * 4 * 8 * plan.model.hidden * plan.model.hidden;
  plan.model.layers = std::max<index_t>(1, (mib << 20) / block_bytes);
  plan.batch.micro = 16;
  plan.batch.global = 64;
  plan.numerics.shards = 4;
  plan.numerics.lanes = 4;
  plan.layout.tp = tp;
  plan.layout.dp = dp;
  plan.layout.zero = zero;
  return plan;
}

// body(argc, argv, transport, data) on every rank; the data set is made by the first one.
template <typename Body>
int run_on_mpi_ranks(int argc, char** argv, const Body& body) {
  const auto session = make_session(&argc, &argv);
  try {
    const KokkosSession kokkos(1);
    const auto transport = make_transport("mpi", *session);
    if (session->rank() == 0) data_folder();
    session->all_gather("the data set", "");
    const TrainingData data = open_data();
    body(argc, argv, *transport, data);
  } catch (const std::exception& error) {
    session->abort(ExitCode::failed, error.what());
  }
  return 0;
}

}  // namespace weft::perf
