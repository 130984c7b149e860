#include "apps/model_shards.hpp"

#include <algorithm>
#include <functional>

#include "apps/assemble.hpp"
#include "core/logical_tensor.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/write_share.hpp"

namespace weft {

namespace {

FlatRanges share_of(const Plan& plan, const ParameterSet& parameters, Mesh& mesh) {
  const auto buckets = write_buckets(flat_layout(parameters), plan.layout.zero > 0,
                                     plan.comm.bucket_bytes, mesh.size("dp"));
  return share_to_write(parameters, mesh.rank("tp"), mesh.size("tp"),
                        slices_of(buckets, mesh.rank("dp")));
}

// use(parameters, mesh) for each rank; no rank sends anything.
void for_ranks(const Plan& plan, const std::function<void(const ParameterSet&, Mesh&)>& use) {
  const LocalWorld world(static_cast<int>(plan.num_ranks()));
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto transport = world.make_transport(rank);
    Mesh mesh(*transport, nullptr, mesh_axes(plan), plan.layout.order, wait_options(plan));
    TensorParallel tp(mesh.axis("tp"), plan.num_pieces(), order_of_sums(plan),
                      token_blocks_of(plan));
    ParameterSet parameters, copies;
    const StageModel model = make_model(plan, mesh.rank("pp"), parameters, copies, tp);
    parameters.lay_out();
    use(parameters, mesh);
  }
}

}  // namespace

std::vector<TensorRecord> model_tensors(const Plan& plan) {
  Plan whole = plan;
  whole.layout = {};
  std::vector<TensorRecord> tensors;
  for_ranks(whole, [&](const ParameterSet& parameters, Mesh&) {
    for (const auto& p : parameters.all()) {
      for (const LogicalTensor& tensor : logical_tensors(*p))
        tensors.push_back({tensor.name, "value", "f32", tensor.global});
    }
  });
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorRecord& a, const TensorRecord& b) { return a.name < b.name; });
  return tensors;
}

std::vector<std::string> optimizer_kinds(const Plan& plan) {
  Context context(1, numerics_of(plan));
  std::vector<std::string> kinds;
  for (const Optimizer::State& state : make_optimizer(context, plan.optimizer, {})->states())
    kinds.emplace_back(state.name);
  return kinds;
}

std::vector<ShardCut> shards_of_layout(const Plan& plan, const std::vector<TensorRecord>& tensors) {
  std::vector<ShardCut> shards;
  for_ranks(plan, [&](const ParameterSet& parameters, Mesh& mesh) {
    shards.push_back(cut_of_rank(tensors, parameters, share_of(plan, parameters, mesh)));
  });
  require_whole(tensors, shards);
  return shards;
}

}  // namespace weft
