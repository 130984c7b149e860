#include "core/parameter.hpp"

#include <algorithm>
#include <utility>

#include "core/kernels/elementwise.hpp"
#include "core/kernels/initialize.hpp"
#include "core/kernels/reduce.hpp"

namespace weft {

Parameter& ParameterSet::add(std::string name, const ShardSpec& spec, InitialValue initial,
                             GradientRows rows) {
  auto parameter = std::make_unique<Parameter>();
  parameter->name = std::move(name);
  parameter->spec = spec;
  parameter->initial = initial;
  parameter->rows = rows;
  parameter->offset = flat_elements_;
  for (index_t shard = spec.owned().begin; shard < spec.owned().end; ++shard) {
    const index_t begin = flat_elements_ + spec.offset(shard) + spec.block(shard).num_elements();
    const index_t end = flat_elements_ + (shard + 1 < spec.owned().end ? spec.offset(shard + 1)
                                                                       : spec.local_elements());
    if (begin < end) gaps_.push_back({begin, end});
  }
  flat_elements_ += spec.local_elements();
  parameters_.push_back(std::move(parameter));
  return *parameters_.back();
}

void ParameterSet::allocate(Context& context) {
  values_ = Tensor(context.arena, MemoryKind::parameters, {flat_elements_});
  fill_zero(values_.raw(), values_.num_bytes());

  const index_t num_blocks = context.numerics.num_token_blocks;
  index_t partial_elements = 0;
  for (const auto& p : parameters_) {
    if (p->rows == GradientRows::token_blocks)
      partial_elements += num_blocks * p->spec.local_elements();
  }
  partials_ = Tensor(context.arena, MemoryKind::gradients, {partial_elements});

  index_t partial = 0;
  for (const auto& p : parameters_) {
    p->value = values_.data() + p->offset;
    if (p->rows == GradientRows::token_blocks) {
      p->partials = partials_.data() + partial;
      partial += num_blocks * p->spec.local_elements();
    }
    kernels::initialize(context, *p);
  }
}

index_t ParameterSet::held_elements() const {
  index_t held = 0;
  for (const auto& p : parameters_) held += p->spec.held_elements();
  return held;
}

void ParameterSet::bind_gradients(float* flat) {
  for (const auto& p : parameters_) p->gradient = flat + p->offset;
}

void ParameterSet::bind_gradients_to_one(float* shared) {
  for (const auto& p : parameters_) p->gradient = shared;
}

index_t ParameterSet::largest_elements() const {
  index_t largest = 0;
  for (const auto& p : parameters_) largest = std::max(largest, p->spec.local_elements());
  return largest;
}

void ParameterSet::clear_gaps(float* flat) const {
  for (const Range& gap : gaps_) fill_zero(flat + gap.begin, gap.size() * index_t{sizeof(float)});
}

void ParameterSet::fold_partials(Context& context, const Parameter& parameter) {
  if (parameter.rows != GradientRows::token_blocks) return;
  const index_t n = parameter.spec.global().num_elements();
  kernels::tree_fold_rows(context, parameter.partials, context.numerics.num_token_blocks, n,
                          parameter.gradient);
}

}  // namespace weft
