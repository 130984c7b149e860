// Bytes that a rank sends per training step, by axis, from the plan's numbers alone. What all ranks
// receive together is what they send together. Not counted: evaluation, agreement at start, the
// records of the global norm, the loss and the state hash (a few bytes per parameter and piece).
#pragma once

#include "parallel/plan/plan.hpp"

namespace weft {

// Doubles: exact below 2^53 bytes, and the largest legal plans pass 2^63.
//
// N ranks on the axis, P maximal nodes of this rank's pieces (or lanes), B bytes in all, of which
// the rank ends up owning O (B / N where rows are not cut):
//   reduce-scatter  P (B - O)        all-gather  O (N - 1)        all-reduce  both
//
// tp, with B = 4 T H for a microbatch of T rows:
//   per microbatch and block  transformers: 2 all-reduces forward (proj, down), 2 backward (up,
//   qkv);
//                             MLP: 1 forward (down), 1 backward (up)
//   first stage               1 all-reduce per microbatch (patch or stem; of an embedding, with P =
//   1) last stage                1 all-reduce per microbatch (head, backward): of B for MLP and
//                             GPT, of 4 x samples x H for models that pool; the records of the
//                             loss, 16 bytes per label and piece, to each of the N - 1 others
//   sequence parallel         cuts each all-reduce of B in its two halves, with O = the rank's
//                             rows, and moves the same bytes; plus, per microbatch, an all-gather
//                             of B for the input of each column-parallel linear between the halves,
//                             of which only own rows were kept (transformers: 2 a block; MLP: 1 a
//                             block; 1 for the head of MLP and GPT), for the rows in front of
//                             pooling; plus
//                             per lane one all-reduce of what is summed by token blocks
// dp, with B = 4n for n stored elements: reduce-scatter of gradients, then all-gather of gradients
//   or, with ZeRO-1, of parameters. The last stage's n counts a tied table, whose gradients are
//   summed there for its second use, in an all-reduce always.
// pp, per microbatch: the rank's rows x H x 4 forward unless it is last, as many back unless first;
//   per step, of a tied table: 4 x its stored elements from the last stage to the first, gradients,
//   and as many back, its values.
//
// Exact but for two things. All-reduces of up to 4 KiB go whole to every other rank, (N - 1) P B
// instead of P (B - O) + (N - 1) O: the same for P = 1 on two ranks. And an O of B / N is rounded:
// to 16 elements in an all-reduce, with ZeRO-1 to norm blocks, so that a rank may own up to one
// norm block more or less, of which it sends N - 1 - P times the difference. Long sums in fast
// mode go round a ring: P = 1, the same bytes.
struct RankTraffic {
  double tp_bytes = 0;
  double dp_bytes = 0;
  double pp_bytes = 0;
  double total_bytes() const { return tp_bytes + dp_bytes + pp_bytes; }
};
RankTraffic rank_traffic(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank);

// What a microbatch sends over a boundary of two stages, activations; gradients back are as many.
// Of all tp ranks of a replica together: with sequence parallelism each has its own rows to send,
// else all of them. The same wherever the cut lies, since all blocks have one width.
double cut_bytes(const Plan& plan);

// rank_traffic() for all replicas of one place of tp and pp: what they have alike is computed once.
class PlaceTraffic {
 public:
  // `plan` must outlive it.
  PlaceTraffic(const Plan& plan, index_t tp_rank, index_t pp_rank);

  RankTraffic of(index_t dp_rank) const;

 private:
  const Plan& plan_;
  double tp_per_microbatch_ = 0;
  double tp_per_lane_ = 0;
  double gradient_bytes_ = 0;
  double pp_per_microbatch_ = 0;
  double pp_per_step_ = 0;
};

}  // namespace weft
