#include "core/parameter.hpp"

#include <algorithm>
#include <utility>

#include "core/kernels/elementwise.hpp"
#include "core/kernels/initialize.hpp"
#include "core/kernels/reduce.hpp"

namespace weft {

namespace {

bool sums_token_blocks(const Parameter& parameter) {
  return parameter.rows == GradientRows::token_blocks;
}

}  // namespace

Parameter& ParameterSet::add(std::string name, const ShardSpec& spec, InitialValue initial,
                             GradientRows rows) {
  auto parameter = std::make_unique<Parameter>();
  parameter->name = std::move(name);
  parameter->spec = spec;
  parameter->initial = initial;
  parameter->rows = rows;
  parameter->decays = spec.global().num_dims() == 2;
  parameters_.push_back(std::move(parameter));
  return *parameters_.back();
}

void ParameterSet::place(Parameter& parameter) {
  const ShardSpec& spec = parameter.spec;
  parameter.offset = flat_elements_;
  for (index_t shard = spec.owned().begin; shard < spec.owned().end; ++shard) {
    const index_t begin = flat_elements_ + spec.offset(shard) + spec.block(shard).num_elements();
    const index_t end = flat_elements_ + (shard + 1 < spec.owned().end ? spec.offset(shard + 1)
                                                                       : spec.local_elements());
    if (begin < end) gaps_.push_back({begin, end});
  }
  flat_elements_ += spec.local_elements();
}

void ParameterSet::lay_out() {
  for (const auto& p : parameters_) {
    if (!sums_token_blocks(*p)) place(*p);
  }
  token_block_range_.begin = flat_elements_;
  for (const auto& p : parameters_) {
    if (sums_token_blocks(*p)) place(*p);
  }
  token_block_range_.end = flat_elements_;
}

void ParameterSet::allocate(Context& context) {
  lay_out();
  values_ = Tensor(context.arena, MemoryKind::parameters, {flat_elements_});
  fill_zero(values_.raw(), values_.num_bytes());
  const index_t stride = token_block_range_.size();
  partials_ =
      Tensor(context.arena, MemoryKind::gradients, {context.numerics.token_blocks.size() * stride});
  fill_zero(partials_.raw(), partials_.num_bytes());
  for (const auto& p : parameters_) {
    p->value = values_.data() + p->offset;
    if (sums_token_blocks(*p)) {
      p->partials = partials_.data() + (p->offset - token_block_range_.begin);
      p->partial_stride = stride;
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
  token_block_gradients_ = flat + token_block_range_.begin;
}

void ParameterSet::bind_gradients_to_one(float* shared) {
  for (const auto& p : parameters_) {
    p->gradient = sums_token_blocks(*p) ? shared + (p->offset - token_block_range_.begin) : shared;
  }
  token_block_gradients_ = shared;
}

index_t ParameterSet::shared_elements() const {
  index_t largest = token_block_range_.size();
  for (const auto& p : parameters_) {
    if (!sums_token_blocks(*p)) largest = std::max(largest, p->spec.local_elements());
  }
  return largest;
}

void ParameterSet::clear_gaps(float* flat) const {
  for (const Range& gap : gaps_) fill_zero(flat + gap.begin, gap.size() * index_t{sizeof(float)});
}

void ParameterSet::fold_partials(Context& context) {
  kernels::tree_fold_rows(context, partials_.data(), context.numerics.num_token_blocks,
                          token_block_range_.size(), token_block_gradients_);
}

}  // namespace weft
