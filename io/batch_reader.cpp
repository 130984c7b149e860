// Rows of a batch; see the header.
#include "io/batch_reader.hpp"

#include <algorithm>
#include <cassert>

namespace weft {

namespace {

// Row `i` of [rows, width]; null where it is empty.
template <typename T>
T* row_of(HostVector<T>& all, index_t i, index_t width) {
  return all.empty() ? nullptr : all.data() + i * width;
}

}  // namespace

void BatchReader::read_into(const BatchIndices& indices, Range rows, HostBatch& batch) const {
  assert(0 <= rows.begin && rows.end <= static_cast<index_t>(indices.sample.size()));
  const index_t n = rows.size();
  batch.step = indices.step;
  batch.epoch = indices.epoch;
  batch.num_real_global = indices.num_real;
  batch.tokens_per_sample = indices.tokens > 0 ? indices.tokens : form_.tokens;
  batch.features.resize(with_input_ ? n * form_.features : 0);
  batch.tokens.resize(with_input_ ? n * batch.tokens_per_sample : 0);
  batch.lengths.resize(form_.has_lengths ? n : 0);
  batch.labels.resize(n * form_.labels);
  batch.weight.resize(n * form_.labels);
  batch.dataset_index.resize(n);
  std::optional<Augmentation> augmentation;
  if (augment_seed_) augmentation = {.seed = *augment_seed_, .epoch = indices.epoch};
  // Where a batch has fewer tokens than the set, a sample is read whole and cut.
  const bool is_cut = batch.tokens_per_sample < form_.tokens;
  HostVector<std::int32_t> whole(with_input_ && is_cut ? form_.tokens : 0);
  for (index_t i = 0; i < n; ++i) {
    const index_t sample = indices.sample[rows.begin + i];
    std::int32_t* tokens = row_of(batch.tokens, i, batch.tokens_per_sample);
    data_->read(sample, augmentation,
                {.features = row_of(batch.features, i, form_.features),
                 .tokens = whole.empty() ? tokens : whole.data(),
                 .length = row_of(batch.lengths, i, 1),
                 .labels = row_of(batch.labels, i, form_.labels)});
    if (!whole.empty()) std::copy_n(whole.begin(), batch.tokens_per_sample, tokens);
    assert(batch.lengths.empty() || batch.lengths[i] <= batch.tokens_per_sample);
    for (index_t label = i * form_.labels; label < (i + 1) * form_.labels; ++label) {
      batch.weight[label] = indices.weight[rows.begin + i];
      if (!class_weights_.empty()) batch.weight[label] *= class_weights_[batch.labels[label]];
    }
    batch.dataset_index[i] = sample;
  }
}

}  // namespace weft
