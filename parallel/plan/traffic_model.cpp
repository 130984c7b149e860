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

// What crosses tp at one place, per microbatch and per lane.
struct Crossings {
  double microbatch = 0;
  double lane = 0;
};

Crossings tp_crossings(const Plan& plan, index_t tp_rank, index_t pp_rank) {
  const Group tp = group_of(plan.layout.tp, plan.pieces_of(tp_rank), plan.num_pieces());
  const bool cuts_rows = plan.layout.sequence_parallel;
  const double all_rows = stream_bytes(plan, plan.rows_per_microbatch());
  const double own_rows =
      cuts_rows ? stream_bytes(plan, plan.rows_of(tp_rank).size()) : all_rows / tp.size;
  const double crossing = tp.all_reduce(all_rows, own_rows);
  // What a column-parallel linear keeps of its input is the rank's own rows: its weight's gradient
  // needs all of them once more.
  const double again = cuts_rows ? tp.all_gather(own_rows) : 0;
  const double pair = 2 * crossing + again;  // a column- and a row-parallel linear

  Crossings sum;
  sum.microbatch = (plan.is_transformer() ? 2 : 1) * pair *
                   static_cast<double>(plan.blocks_of_stage(pp_rank).size());
  const SampleShape sample = sample_shape(plan.task);
  if (pp_rank == 0 && sample.vocabulary == 0) sum.microbatch += crossing;
  if (pp_rank == 0 && sample.vocabulary > 0) {
    // One rank has the row of a token: a sum with a node for each rank. Back all rows are needed,
    // gathered once for positions and embedding: the other half, also where rows are cut.
    const Group ranks{.size = tp.size, .nodes = 1};
    sum.microbatch += ranks.all_reduce(all_rows, own_rows);
  }
  if (pp_rank == plan.layout.pp - 1) {
    // Behind pooling, which gathers rows, one row a sample is whole on every rank.
    const bool pools = plan.is_transformer() && !plan.is_gpt();
    sum.microbatch +=
        pools ? tp.all_reduce(stream_bytes(plan, plan.batch.micro)) + again : crossing + again;
    sum.microbatch +=
        tp.all_gather(loss_record_bytes * static_cast<double>(plan.batch.micro * sample.labels) *
                      static_cast<double>(plan.pieces_of(tp_rank).size()));
  }
  if (cuts_rows) sum.lane = tp.all_reduce(token_block_bytes(plan, tp_rank, pp_rank));
  return sum;
}

}  // namespace

PlaceTraffic::PlaceTraffic(const Plan& plan, index_t tp_rank, index_t pp_rank) : plan_(plan) {
  const Crossings tp = tp_crossings(plan, tp_rank, pp_rank);
  tp_per_microbatch_ = tp.microbatch;
  tp_per_lane_ = tp.lane;
  const auto bytes_of = [](index_t elements) {
    return bytes_per_element * static_cast<double>(elements);
  };
  const index_t last = plan.layout.pp - 1;
  gradient_bytes_ = bytes_of(local_parameters(plan, tp_rank, pp_rank).stored +
                             local_copies(plan, tp_rank, pp_rank).stored);
  if (last > 0 && (pp_rank == 0 || pp_rank == last))
    pp_per_step_ = bytes_of(local_copies(plan, tp_rank, last).stored);
  const int directions = (pp_rank > 0 ? 1 : 0) + (pp_rank < plan.layout.pp - 1 ? 1 : 0);
  pp_per_microbatch_ = stream_bytes(plan, plan.rows_of(tp_rank).size()) * directions;
}

RankTraffic PlaceTraffic::of(index_t dp_rank) const {
  const Range lanes = plan_.lanes_of(dp_rank);
  const auto microbatches = static_cast<double>(plan_.microbatches_of(dp_rank));
  const Group dp = group_of(plan_.layout.dp, lanes, plan_.num_lanes());
  return {.tp_bytes =
              microbatches * tp_per_microbatch_ + static_cast<double>(lanes.size()) * tp_per_lane_,
          .dp_bytes = dp.all_reduce(gradient_bytes_),
          .pp_bytes = microbatches * pp_per_microbatch_ + pp_per_step_};
}

double cut_bytes(const Plan& plan) {
  double bytes = 0;
  for (index_t rank = 0; rank < plan.layout.tp; ++rank)
    bytes += stream_bytes(plan, plan.rows_of(rank).size());
  return bytes;
}

RankTraffic rank_traffic(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  return PlaceTraffic(plan, tp_rank, pp_rank).of(dp_rank);
}

}  // namespace weft
