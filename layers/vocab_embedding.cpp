#include "layers/vocab_embedding.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/error.hpp"

namespace weft {

namespace {

std::vector<std::int32_t> on_host(Context& context, const std::int32_t* from, index_t n) {
  std::vector<std::int32_t> to(static_cast<std::size_t>(n));
  context.device.fence();
  copy_to_host(to.data(), from, n * index_t{sizeof(std::int32_t)});
  return to;
}

}  // namespace

Parameter& VocabEmbedding::add_table(const std::string& name, ParameterSet& parameters,
                                     TensorParallel& tp, index_t vocabulary,
                                     index_t padded_vocabulary, index_t num_features) {
  return parameters.add(
      name,
      ShardSpec::cut({vocabulary, num_features}, 0, padded_vocabulary, tp.num_pieces(), tp.owned()),
      {.uniform_bound = initial_bound}, GradientRows::all);
}

VocabEmbedding::VocabEmbedding(std::string name, ParameterSet& parameters, TensorParallel& tp,
                               index_t vocabulary, index_t padded_vocabulary,
                               index_t num_features)
    : name_(std::move(name)),
      tp_(tp),
      vocabulary_(vocabulary),
      num_features_(num_features),
      table_(add_table(name_ + ".weight", parameters, tp, vocabulary, padded_vocabulary,
                       num_features)) {}

Activation VocabEmbedding::forward(Context& context, const Activation& x, Saved& saved,
                                   const Pass& pass) {
  const index_t tokens = x.num_features();
  const index_t t = x.num_rows() * tokens;
  const std::int32_t* ids = x.data.data<std::int32_t>();
  const std::vector<std::int32_t> checked = on_host(context, ids, t);
  for (index_t row = 0; row < t; ++row) {
    const std::int32_t id = checked[static_cast<std::size_t>(row)];
    require(id >= 0 && id < vocabulary_, ExitCode::data,
            fmt::format("{}: token {} of sample {} of the global batch is {}, but the model has a "
                        "vocabulary of {}: 0 to {}; the data were made with another vocabulary",
                        name_, row % tokens, pass.first_sample + row / tokens, id, vocabulary_,
                        vocabulary_ - 1));
  }
  Tensor mine(context.arena, MemoryKind::activations, {t, num_features_});
  // What other ranks own; of a rank that owns all there is nothing to clear.
  if (tp_.axis().size() > 1) fill_zero(mine.raw(), mine.num_bytes());
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    kernels::take_table_rows(context, table_.value_of(s), table_.spec.piece(s), ids, t,
                             num_features_, mine.data());
  }
  const Rows rows = tp_.owned_rows(t);
  saved.kept = {x};
  return {ShardSpec::replicated({t, num_features_}), rows,
          tp_.select_rows(context, name_ + ".forward.select", rows, std::move(mine))};
}

Activation VocabEmbedding::backward_input(Context& context, const Activation& dy, Saved& saved,
                                          const Pass&) {
  saved.kept.push_back({dy.spec, Rows::all(dy.num_rows()),
                        tp_.gather_rows(context, name_ + ".backward_input.gather", dy.data, dy.rows,
                                        num_features_)});
  return {};
}

Range VocabEmbedding::owned_ids() const {
  return {table_.spec.piece(tp_.owned().begin).begin, table_.spec.piece(tp_.owned().end - 1).end};
}

kernels::RowsById VocabEmbedding::rows_of_owned_ids(Context& context, const Activation& x,
                                                    const Pass& pass) const {
  std::vector<std::int32_t> ids =
      on_host(context, x.data.data<std::int32_t>(), x.data.num_elements());
  if (pass.lengths) {
    const std::vector<std::int32_t> lengths = on_host(context, pass.lengths, x.num_rows());
    constexpr std::int32_t nobodys = -1;
    const auto tokens = static_cast<std::size_t>(x.num_features());
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (static_cast<std::int32_t>(row % tokens) >= lengths[row / tokens]) ids[row] = nobodys;
    }
  }
  return kernels::rows_by_id(context, ids, owned_ids());
}

void VocabEmbedding::backward_weight(Context& context, Saved& saved, const Pass& pass,
                                     const GradientReady& ready) {
  const kernels::RowsById by_id = rows_of_owned_ids(context, saved.kept[0], pass);
  const Activation& dy_th = saved.kept[1];
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    kernels::sum_rows_by_id(context, dy_th.data.data(), by_id, table_.spec.piece(s), num_features_,
                            table_.gradient_of(s), !pass.first_of_lane);
    ready(table_, s);
  }
}

}  // namespace weft
