#include "layers/position_embedding.hpp"

#include "core/kernels/reduce.hpp"
#include "core/kernels/tokens.hpp"

namespace weft {

PositionEmbedding::PositionEmbedding(const std::string& name, ParameterSet& parameters,
                                     TensorParallel& tp, index_t tokens, index_t num_features)
    : name_(name),
      tp_(tp),
      tokens_(tokens),
      num_features_(num_features),
      position_(parameters.add(name, ShardSpec::replicated({tokens, num_features}),
                               {.uniform_bound = initial_bound}, GradientRows::all)) {
  position_.decays = false;
}

Activation PositionEmbedding::forward(Context& context, const Activation& x, Saved&,
                                      const Pass& pass) {
  Activation y = x.like(context);
  kernels::add_positions(context, x.data.data(), position_.value, x.rows.mine,
                         x.num_rows() / pass.num_samples, num_features_, y.data.data());
  return y;
}

Activation PositionEmbedding::backward_input(Context& context, const Activation& dy, Saved& saved,
                                             const Pass&) {
  Activation dy_th{
      dy.spec, Rows::all(dy.num_rows()),
      tp_.gather_rows(context, name_ + ".backward_input.gather", dy.data, dy.rows, num_features_)};
  saved.kept = {dy_th};
  return dy_th;
}

// dposition[token] = sum over samples of dy, in sequence (EXACT 3.6): all ranks have all rows and
// do the same, so that no position is summed in parts. A sample is one row of tokens x h. Places
// behind a pass's tokens get nothing.
void PositionEmbedding::backward_weight(Context& context, Saved& saved, const Pass& pass,
                                        const GradientReady& ready) {
  const Activation& dy_th = saved.kept[0];
  const index_t used = dy_th.num_rows() / pass.num_samples * num_features_;
  kernels::sum_rows(context, dy_th.data.data(), pass.num_samples, used, position_.gradient,
                    !pass.first_of_lane);
  const index_t unused = tokens_ * num_features_ - used;
  if (pass.first_of_lane && unused > 0)
    fill_zero(position_.gradient + used, unused * index_t{sizeof(float)});
  ready(position_, 0);
}

}  // namespace weft
