#include "layers/stage_model.hpp"

#include <utility>

namespace weft {

namespace {

Pass with_lengths(Pass pass, const Tensor& lengths) {
  if (lengths) pass.lengths = lengths.data<std::int32_t>();
  return pass;
}

}  // namespace

Shape StageModel::boundary_shape(index_t num_samples, index_t tokens) const {
  const Rows rows = tp_.owned_rows(num_samples * tokens_of(tokens));
  return {rows.mine.size(), boundary_.hidden};
}

Activation StageModel::boundary_activation(Tensor data, index_t num_samples,
                                           index_t tokens) const {
  const Rows rows = tp_.owned_rows(num_samples * tokens_of(tokens));
  return {ShardSpec::replicated({rows.total, boundary_.hidden}), rows, std::move(data)};
}

StageModel::Output StageModel::forward(Context& context, const Microbatch& batch, Tensor input,
                                       State* state, const Pass& given) {
  const Pass pass = with_lengths(given, batch.lengths);
  if (state) {
    state->lengths = batch.lengths;
    state->tokens = batch.tokens;
  }
  std::vector<Saved> dropped(state ? 0 : layers_.size());
  if (state) state->saved.resize(layers_.size());
  std::vector<Saved>& saved = state ? state->saved : dropped;

  Activation y;
  if (is_first_) {
    y = {ShardSpec::replicated(batch.x.shape()), Rows::all(pass.num_samples), batch.x};
  } else {
    y = boundary_activation(std::move(input), pass.num_samples, batch.tokens);
  }
  if (watch_) watch_->before_layers();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i].layer->forward(context, y, saved[i], pass);
    if (watch_) watch_->after_forward(static_cast<index_t>(i), layers_[i].name, y);
    if (!state) saved[i].clear();
    tp_.poll();
  }
  Output output;
  if (!loss_) {
    output.boundary = std::move(y.data);
  } else {
    output.sums =
        loss_->forward(context, y, batch.labels, batch.weights, batch.scale,
                       state ? &state->gradient : nullptr, state ? nullptr : &output.predictions);
  }
  return output;
}

Tensor StageModel::backward(Context& context, State& state, Tensor output_gradient,
                            const Pass& given, const GradientReady& ready) {
  const Pass pass = with_lengths(given, state.lengths);
  Activation dy = loss_ ? std::move(state.gradient)
                        : boundary_activation(std::move(output_gradient), pass.num_samples,
                                              state.tokens);
  if (watch_) watch_->before_layers();
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = *layers_[i].layer;
    dy = layer.backward_input(context, dy, state.saved[i], pass);
    if (watch_) watch_->after_backward_input(static_cast<index_t>(i), layers_[i].name, dy);
    layer.backward_weight(context, state.saved[i], pass, ready);
    if (watch_) watch_->after_backward_weight(static_cast<index_t>(i), layers_[i].name);
    state.saved[i].clear();
    tp_.poll();
  }
  return std::move(dy.data);
}

std::vector<kernels::GemmCall> StageModel::products(index_t num_samples, index_t given) const {
  std::vector<kernels::GemmCall> all;
  const index_t tokens = tokens_of(given);
  index_t rows = is_first_ ? num_samples : num_samples * tokens;
  for (const auto& [name, layer] : layers_) {
    for (const auto& call : layer->products(rows, tokens)) all.push_back(call);
    rows = layer->rows_after(rows, tokens);
  }
  return all;
}

}  // namespace weft
