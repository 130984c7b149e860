#include "parallel/plan/parameter_shapes.hpp"

#include <fmt/format.h>

namespace weft {

namespace {

using Shapes = std::vector<ParameterShape>;

ParameterShape whole(std::string name, index_t length) {
  return {.name = std::move(name), .global = {length}, .by_token_blocks = true};
}

ParameterShape split(std::string name, const Shape& global, int dim) {
  return {.name = std::move(name), .global = global, .dim = dim, .padded = global[dim]};
}

void add_norm(Shapes& shapes, const std::string& name, index_t hidden) {
  shapes.push_back(whole(name + ".gain", hidden));
  shapes.push_back(whole(name + ".bias", hidden));
}

// y = sum over pieces of x_piece w_piece^T, then + b.
void add_row_linear(Shapes& shapes, const std::string& name, index_t in, index_t out) {
  shapes.push_back(split(name + ".weight", {out, in}, 1));
  shapes.push_back(whole(name + ".bias", out));
}

// y_piece = x w_piece^T + b_piece.
void add_column_linear(Shapes& shapes, const std::string& name, index_t in, index_t out) {
  shapes.push_back(split(name + ".weight", {out, in}, 0));
  shapes.push_back(split(name + ".bias", {out}, 0));
}

void add_feed_forward(Shapes& shapes, const Plan& plan, const std::string& block) {
  add_column_linear(shapes, block + "up", plan.model.hidden, plan.feed_forward());
  add_row_linear(shapes, block + "down", plan.feed_forward(), plan.model.hidden);
}

void add_block(Shapes& shapes, const Plan& plan, index_t number) {
  const index_t hidden = plan.model.hidden;
  const std::string block = fmt::format("block.{}.", number);
  if (plan.is_transformer()) {
    add_norm(shapes, block + "norm1", hidden);
    add_column_linear(shapes, block + "qkv", hidden, 3 * hidden);
    add_row_linear(shapes, block + "proj", hidden, hidden);
    add_norm(shapes, block + "norm2", hidden);
  } else {
    add_norm(shapes, block + "norm", hidden);
  }
  add_feed_forward(shapes, plan, block);
}

ParameterShape embedding_table(const Plan& plan) {
  return {.name = "embedding.weight",
          .global = {sample_shape(plan.task).vocabulary, plan.model.hidden},
          .dim = 0,
          .padded = plan.padded_vocabulary()};
}

void add_input(Shapes& shapes, const Plan& plan) {
  const index_t hidden = plan.model.hidden;
  if (sample_shape(plan.task).vocabulary > 0) {
    shapes.push_back(embedding_table(plan));
  } else {
    add_row_linear(shapes, plan.is_vit() ? "patch" : "stem", plan.features_per_token(), hidden);
  }
  if (plan.is_transformer()) {
    shapes.push_back({.name = "position", .global = {plan.tokens_per_sample(), hidden}});
  }
}

void add_output(Shapes& shapes, const Plan& plan) {
  const index_t hidden = plan.model.hidden, classes = sample_shape(plan.task).classes;
  const index_t padded = plan.padded_classes();
  add_norm(shapes, "final_norm", hidden);
  if (plan.ties_embedding()) return;
  shapes.push_back(
      {.name = "head.weight", .global = {classes, hidden}, .dim = 0, .padded = padded});
  if (plan.is_gpt()) return;  // a head of words has no bias
  shapes.push_back({.name = "head.bias", .global = {classes}, .dim = 0, .padded = padded});
}

}  // namespace

ShardSpec ParameterShape::spec(const Plan& plan, index_t tp_rank) const {
  if (!is_split()) return ShardSpec::replicated(global);
  return ShardSpec::cut(global, dim, padded, plan.num_pieces(), plan.pieces_of(tp_rank));
}

std::vector<ParameterShape> parameter_shapes(const Plan& plan, index_t pp_rank) {
  Shapes shapes;
  if (pp_rank == 0) add_input(shapes, plan);
  const Range blocks = plan.blocks_of_stage(pp_rank);
  for (index_t block = blocks.begin; block < blocks.end; ++block) add_block(shapes, plan, block);
  if (pp_rank == plan.layout.pp - 1) add_output(shapes, plan);
  return shapes;
}

std::vector<ParameterShape> copied_shapes(const Plan& plan, index_t pp_rank) {
  if (!plan.ties_embedding() || pp_rank != plan.layout.pp - 1) return {};
  return {embedding_table(plan)};
}

std::vector<ParameterShape> parameter_shapes(const Plan& plan) {
  Plan one_stage = plan;
  one_stage.layout.pp = 1;
  one_stage.layout.stages.clear();
  return parameter_shapes(one_stage, 0);
}

namespace {

index_t sum_of(const Shapes& shapes) {
  index_t sum = 0;
  for (const ParameterShape& shape : shapes) sum += shape.num_elements();
  return sum;
}

}  // namespace

index_t num_parameters(const Plan& plan) { return sum_of(parameter_shapes(plan)); }

index_t stage_parameters(const Plan& plan, index_t pp_rank) {
  return sum_of(parameter_shapes(plan, pp_rank));
}

namespace {

LocalElements local_elements(const Shapes& shapes, const Plan& plan, index_t tp_rank) {
  LocalElements sum;
  for (const ParameterShape& shape : shapes) {
    const ShardSpec spec = shape.spec(plan, tp_rank);
    sum.real += spec.held_elements();
    sum.stored += spec.local_elements();
  }
  return sum;
}

}  // namespace

LocalElements local_parameters(const Plan& plan, index_t tp_rank, index_t pp_rank) {
  return local_elements(parameter_shapes(plan, pp_rank), plan, tp_rank);
}

LocalElements local_copies(const Plan& plan, index_t tp_rank, index_t pp_rank) {
  return local_elements(copied_shapes(plan, pp_rank), plan, tp_rank);
}

}  // namespace weft
