#include "parallel/plan/traffic_model.hpp"

#include "core/reduce_tree.hpp"
#include "parallel/plan/parameter_shapes.hpp"

namespace weft {

namespace {

constexpr double bytes_per_element = 4;  // f32, the only dtype so far
constexpr double loss_record_bytes = 16;

// A rank's place in the collectives of one axis.
struct Group {
  double size;   // N
  double nodes;  // P
  double reduce_scatter(double bytes, double owned) const { return nodes * (bytes - owned); }
  double all_gather(double owned) const { return owned * (size - 1); }
  double all_reduce(double bytes, double owned) const {
    return reduce_scatter(bytes, owned) + all_gather(owned);
  }
  double all_reduce(double bytes) const { return all_reduce(bytes, bytes / size); }
};

Group group_of(index_t size, Range owned, index_t num_leaves) {
  const auto nodes = reduce_tree::maximal_nodes(owned, num_leaves);
  return {static_cast<double>(size), static_cast<double>(nodes.size())};
}

// Bytes of `rows` rows of the residual stream.
double stream_bytes(const Plan& plan, index_t rows) {
  return bytes_per_element * static_cast<double>(rows) * static_cast<double>(plan.model.hidden);
}

// Of what the stage's parameters summed by token blocks take.
double token_block_bytes(const Plan& plan, index_t tp_rank, index_t pp_rank) {
  index_t elements = 0;
  for (const ParameterShape& shape : parameter_shapes(plan, pp_rank)) {
    if (shape.by_token_blocks) elements += shape.spec(plan, tp_rank).local_elements();
  }
  return bytes_per_element * static_cast<double>(elements);
}

double tp_bytes(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  const Group tp = group_of(plan.layout.tp, plan.pieces_of(tp_rank), plan.num_pieces());
  const bool cuts_rows = plan.layout.sequence_parallel;
  const bool is_last = pp_rank == plan.layout.pp - 1;
  const double all_rows = stream_bytes(plan, plan.rows_per_microbatch());
  const double own_rows =
      cuts_rows ? stream_bytes(plan, plan.rows_of(tp_rank).size()) : all_rows / tp.size;
  const double crossing = tp.all_reduce(all_rows, own_rows);

  double microbatch = 0;
  const double per_block = plan.is_vit() ? 4 : 2;
  microbatch += per_block * static_cast<double>(plan.blocks_of_stage(pp_rank).size()) * crossing;
  if (pp_rank == 0) microbatch += crossing;
  if (is_last) {
    microbatch += plan.is_vit() ? tp.all_reduce(stream_bytes(plan, plan.batch.micro)) : crossing;
    if (plan.is_vit() && cuts_rows) microbatch += tp.all_gather(own_rows);
    microbatch += tp.all_gather(loss_record_bytes * static_cast<double>(plan.batch.micro) *
                                static_cast<double>(plan.pieces_of(tp_rank).size()));
  }
  const double lane = cuts_rows ? tp.all_reduce(token_block_bytes(plan, tp_rank, pp_rank)) : 0;
  return static_cast<double>(plan.microbatches_of(dp_rank)) * microbatch +
         static_cast<double>(plan.lanes_of(dp_rank).size()) * lane;
}

double dp_bytes(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  const Group dp = group_of(plan.layout.dp, plan.lanes_of(dp_rank), plan.num_lanes());
  const index_t stored = local_parameters(plan, tp_rank, pp_rank).stored;
  return dp.all_reduce(bytes_per_element * static_cast<double>(stored));
}

double pp_bytes(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  const double boundary = stream_bytes(plan, plan.rows_of(tp_rank).size());
  const int directions = (pp_rank > 0 ? 1 : 0) + (pp_rank < plan.layout.pp - 1 ? 1 : 0);
  return static_cast<double>(plan.microbatches_of(dp_rank)) * boundary * directions;
}

}  // namespace

RankTraffic rank_traffic(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  return {.tp_bytes = tp_bytes(plan, tp_rank, dp_rank, pp_rank),
          .dp_bytes = dp_bytes(plan, tp_rank, dp_rank, pp_rank),
          .pp_bytes = pp_bytes(plan, tp_rank, dp_rank, pp_rank)};
}

}  // namespace weft
