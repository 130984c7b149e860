#include "layers/stage_model.hpp"

namespace weft {

LossSums StageModel::forward(Context& context, const Microbatch& batch, State* state,
                             const Pass& pass) {
  std::vector<Saved> dropped(state ? 0 : layers_.size());
  if (state) state->saved.resize(layers_.size());
  std::vector<Saved>& saved = state ? state->saved : dropped;

  const index_t t = pass.num_rows;
  Activation y{
      ShardSpec::cut({t, input_features_}, 1, input_features_, tp_.num_pieces(), tp_.owned()),
      tp_.split_columns(context, batch.x, t, input_features_)};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i]->forward(context, y, saved[i], pass);
    if (!state) saved[i].clear();
  }
  return loss_.forward(context, y, batch.labels, batch.weights, batch.scale,
                       state ? &state->gradient : nullptr);
}

void StageModel::backward(Context& context, State& state, const Pass& pass,
                          const GradientReady& ready) {
  Activation dy = std::move(state.gradient);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    dy = layers_[i]->backward_input(context, dy, state.saved[i], pass);
    layers_[i]->backward_weight(context, state.saved[i], pass, ready);
    state.saved[i].clear();
  }
}

Cost StageModel::cost(index_t num_rows) const {
  Cost total;
  for (const auto& layer : layers_) total += layer->cost(num_rows);
  return total;
}

std::vector<kernels::GemmCall> StageModel::products(index_t num_rows) const {
  std::vector<kernels::GemmCall> all;
  for (const auto& layer : layers_) {
    for (const auto& call : layer->products(num_rows)) all.push_back(call);
  }
  return all;
}

}  // namespace weft
