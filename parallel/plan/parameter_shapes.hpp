// The parameters of a plan's model: names, shapes, how each is cut over tp, and which pipeline
// stage holds it.
#pragma once

#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/shard_spec.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// One parameter of the model: its name, its shape without pads, and how it is cut over tp.
struct ParameterShape {
  std::string name;
  Shape global;
  int dim = -1;  // the dim that is cut in the plan's pieces; -1: every tp rank holds all of it
  index_t padded = 0;  // extent of that dim with pads: Plan::padded_classes() for classes
  // Its gradient is summed by token blocks (EXACT 3.4): all that is not cut but the positions.
  bool by_token_blocks = false;

  index_t num_elements() const { return global.num_elements(); }
  bool is_split() const { return dim >= 0; }
  // What a tp rank holds of it; the layers' own parameters have the same specs (a test compares).
  ShardSpec spec(const Plan& plan, index_t tp_rank) const;
};

// All parameters in canonical order, with H = hidden, F = H x mlp_ratio, C classes of the data set,
// D features of an image, or for ViT E = 3 x patch^2 features and N tokens. Weights are [out, in].
//
//   MLP          stem weight [H, D] split over D; bias [H]
//   each block   norm gain, bias [H]; up weight [F, H], bias [F] split over F;
//                down weight [H, F] split over F; bias [H]
//
//   ViT          patch weight [H, E] split over E; bias [H]; position [N, H]
//   each block   norm1 gain, bias [H]; qkv weight [3H, H], bias [3H] split over 3H, head by head;
//                proj weight [H, H] split over its inputs; bias [H];
//                norm2 gain, bias [H]; up and down as above
//
//   both         final_norm gain, bias [H]; head weight [C, H], bias [C] split over C
//
// Models of text have, for V words, an embedding weight [V, H] split over V in place of patch; of
// them the generator's head is [V, H] without bias, or none where it is the embedding's weight.
std::vector<ParameterShape> parameter_shapes(const Plan& plan);

// Those of one pipeline stage; all stages one after the other are all parameters.
std::vector<ParameterShape> parameter_shapes(const Plan& plan, index_t pp_rank);

// What a stage uses of another stage's parameters, or of its own a second time (`model.tied`): the
// last one's head. A part of the model's state once, in parameter_shapes().
std::vector<ParameterShape> copied_shapes(const Plan& plan, index_t pp_rank);

// Sums of num_elements(), without pads: of the model and of one stage.
index_t num_parameters(const Plan& plan);
index_t stage_parameters(const Plan& plan, index_t pp_rank);

// Elements of all parameters on a rank: without pads, and as stored, with pads and the gaps that
// align each piece (core/shard_spec.hpp).
struct LocalElements {
  index_t real = 0;
  index_t stored = 0;
};
LocalElements local_parameters(const Plan& plan, index_t tp_rank, index_t pp_rank = 0);
// The same of copied_shapes().
LocalElements local_copies(const Plan& plan, index_t tp_rank, index_t pp_rank);

}  // namespace weft
