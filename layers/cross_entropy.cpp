#include "layers/cross_entropy.hpp"

#include "core/kernels/math.hpp"
#include "core/kernels/reduce.hpp"

namespace weft {

namespace {

// What a row's piece of classes says to the others. A piece that is all padding: (-inf, 0, ...).
struct PieceRecord {
  float max;
  float sum;     // sum of exp(logit - max)
  float target;  // logit of the target, if it is in this piece
  float best;    // class of the largest logit, as a float; ties to the lower
};
constexpr index_t record_length = 4;

// Merges two children of the tree over pieces: bigger.sum + smaller.sum exp(smaller.max -
// bigger.max).
KOKKOS_INLINE_FUNCTION PieceRecord merged(const PieceRecord& left, const PieceRecord& right) {
  PieceRecord out;
  out.target = left.target > right.target ? left.target : right.target;
  out.best = left.max >= right.max ? left.best : right.best;
  out.max = left.max >= right.max ? left.max : right.max;
  if (left.max == right.max) {
    out.sum = left.sum + right.sum;
  } else {
    const PieceRecord& bigger = left.max > right.max ? left : right;
    const PieceRecord& smaller = left.max > right.max ? right : left;
    out.sum = bigger.sum + smaller.sum * math::exp(smaller.max - bigger.max);
  }
  return out;
}

// The tree over pieces [0, count) of one row, in place, level by level.
KOKKOS_INLINE_FUNCTION PieceRecord merge_pieces(PieceRecord* pieces, index_t count) {
  for (index_t span = 1; span < count; span *= 2) {
    for (index_t left = 0; left + span < count; left += 2 * span)
      pieces[left] = merged(pieces[left], pieces[left + span]);
  }
  return pieces[0];
}

// Records of the owned pieces: [t][owned piece][record].
Tensor piece_records(Context& context, const Activation& logits, const Tensor& labels, Range owned,
                     index_t num_classes) {
  const index_t t = logits.num_rows();
  Tensor records(context.arena, MemoryKind::workspace, {t, owned.size(), record_length});
  auto* out = reinterpret_cast<PieceRecord*>(records.data());
  const std::int32_t* label = labels.data<std::int32_t>();
  for (index_t s = owned.begin; s < owned.end; ++s) {
    const float* x = logits.piece(s);
    const Range stored = logits.spec.piece(s);
    const Range classes = intersection(stored, {0, num_classes});
    const index_t width = stored.size();
    const index_t slot = s - owned.begin;
    const index_t slots = owned.size();
    context.device.parallel_for(
        "weft/cross_entropy.piece", t, KOKKOS_LAMBDA(index_t row) {
          const float* logit = x + row * width;
          constexpr float minus_infinity = -math::infinity_f32;
          PieceRecord record{minus_infinity, 0.0f, minus_infinity, 0.0f};
          for (index_t c = 0; c < classes.size(); ++c) {
            if (logit[c] > record.max) {
              record.max = logit[c];
              record.best = static_cast<float>(classes.begin + c);
            }
          }
          if (!classes.empty()) {
            // Where all are -inf, the sum is 0, as that of pads; -inf - -inf would make it NaN.
            const float max = record.max > minus_infinity ? record.max : 0.0f;
            record.sum = kernels::sum_of<float>(
                classes.size(), [=](index_t c) { return math::exp(logit[c] - max); });
          }
          if (classes.contains(label[row])) record.target = logit[label[row] - classes.begin];
          out[row * slots + slot] = record;
        });
  }
  return records;
}

// `all` [t][piece][record], whose contents are used up -> [t][record].
Tensor merge_rows(Context& context, const Tensor& all, index_t t, index_t num_pieces) {
  Tensor merged_rows(context.arena, MemoryKind::workspace, {t, record_length});
  auto* pieces = reinterpret_cast<PieceRecord*>(all.data());
  auto* rows = reinterpret_cast<PieceRecord*>(merged_rows.data());
  context.device.parallel_for(
      "weft/cross_entropy.merge", t, KOKKOS_LAMBDA(index_t row) {
        rows[row] = merge_pieces(pieces + row * num_pieces, num_pieces);
      });
  return merged_rows;
}

// What a row's gradient is made from, besides its logits.
struct RowTerms {
  const PieceRecord* merged;  // [t], as are those below
  const std::int32_t* label;
  const float* weight;
  float scale;
};

// (softmax - one hot) * weight * scale of the owned pieces; pads get 0.
void logit_gradients(Context& context, const Activation& logits, Range owned, index_t num_classes,
                     const RowTerms& row_terms, const Activation& dlogits) {
  const RowTerms rows = row_terms;
  for (index_t s = owned.begin; s < owned.end; ++s) {
    const float* x = logits.piece(s);
    float* dx = dlogits.piece(s);
    const Range stored = logits.spec.piece(s);
    const index_t width = stored.size();
    context.device.parallel_for(
        "weft/cross_entropy.backward", logits.num_rows() * width, KOKKOS_LAMBDA(index_t i) {
          const index_t row = i / width;
          const index_t c = stored.begin + i % width;
          const PieceRecord& all = rows.merged[row];
          const float probability = math::exp(x[i] - all.max) / all.sum;
          const float hot = c == rows.label[row] ? 1.0f : 0.0f;
          dx[i] = c < num_classes ? (probability - hot) * (rows.weight[row] * rows.scale) : 0.0f;
        });
  }
}

// Collective over tp. The two logits of a row may lie in different pieces, so all come here: a few
// bytes a row, in evaluation alone.
std::vector<double> scores_of_two(Context& context, TensorParallel& tp, const std::string& name,
                                  const Activation& logits) {
  const index_t t = logits.num_rows();
  const Range owned = tp.owned();
  const index_t width = logits.spec.piece(0).size();
  Tensor mine(context.arena, MemoryKind::workspace, {t, owned.size(), width});
  for (index_t s = owned.begin; s < owned.end; ++s) {
    const float* from = logits.piece(s);
    float* to = mine.data() + (s - owned.begin) * width;
    const index_t row_length = owned.size() * width;
    context.device.parallel_for(
        "weft/cross_entropy.logits", t * width,
        KOKKOS_LAMBDA(index_t i) { to[i / width * row_length + i % width] = from[i]; });
  }
  const Tensor all = tp.gather_pieces(context, name, mine, t, width);
  const index_t row_length = tp.num_pieces() * width;
  std::vector<float> host(static_cast<std::size_t>(t * row_length));
  context.device.fence();
  copy_to_host(host.data(), all.raw(), all.num_bytes());
  std::vector<double> scores(static_cast<std::size_t>(t));
  for (std::size_t row = 0; row < scores.size(); ++row) {
    const float* logit = host.data() + row * static_cast<std::size_t>(row_length);
    scores[row] = static_cast<double>(logit[1]) - static_cast<double>(logit[0]);
  }
  return scores;
}

// On the host, row by row in order. `scores`: of each row, or empty.
LossSums sum_rows(Context& context, const Tensor& merged_rows, const Tensor& labels,
                  const Tensor& weights, const std::vector<double>& scores,
                  std::vector<Prediction>* predictions) {
  const auto t = static_cast<std::size_t>(labels.num_elements());
  std::vector<PieceRecord> host(t);
  std::vector<float> weight(t);
  std::vector<std::int32_t> label(t);
  context.device.fence();
  copy_to_host(host.data(), merged_rows.raw(), merged_rows.num_bytes());
  copy_to_host(weight.data(), weights.raw(), weights.num_bytes());
  copy_to_host(label.data(), labels.raw(), labels.num_bytes());
  LossSums sums;
  for (std::size_t row = 0; row < t; ++row) {
    if (weight[row] == 0.0f) continue;
    const PieceRecord& r = host[row];
    const double row_weight = static_cast<double>(weight[row]);
    const double loss = row_weight * (math::log(static_cast<double>(r.sum)) +
                                      (static_cast<double>(r.max) - static_cast<double>(r.target)));
    sums.loss += loss;
    const auto predicted = static_cast<std::int32_t>(r.best);
    sums.correct += predicted == label[row] ? 1 : 0;
    ++sums.rows;
    if (predictions)
      predictions->push_back({label[row], predicted, scores.empty() ? 0.0 : scores[row], loss});
  }
  return sums;
}

}  // namespace

LossSums CrossEntropy::forward(Context& context, const Activation& logits, const Tensor& labels,
                               const Tensor& weights, float scale, Activation* dlogits,
                               std::vector<Prediction>* predictions) {
  const index_t t = logits.num_rows();
  const Tensor mine = piece_records(context, logits, labels, tp_.owned(), num_classes_);
  const Tensor all = tp_.gather_pieces(context, name_ + ".forward.gather", mine, t, record_length);
  const Tensor merged_rows = merge_rows(context, all, t, tp_.num_pieces());
  if (dlogits) {
    *dlogits = logits.like(context);
    const RowTerms rows{.merged = reinterpret_cast<const PieceRecord*>(merged_rows.data()),
                        .label = labels.data<std::int32_t>(),
                        .weight = weights.data(),
                        .scale = scale};
    logit_gradients(context, logits, tp_.owned(), num_classes_, rows, *dlogits);
  }
  std::vector<double> scores;
  if (predictions && num_classes_ == 2)
    scores = scores_of_two(context, tp_, name_ + ".forward.gather_logits", logits);
  return sum_rows(context, merged_rows, labels, weights, scores, predictions);
}

}  // namespace weft
