// What a model is worth on a part of the data, on all ranks alike: predictions of all replicas
// become one confusion matrix and, of two classes, one ranking. Values of single ranks are never
// averaged.
#pragma once

#include <optional>
#include <vector>

#include "layers/confusion_matrix.hpp"
#include "layers/cross_entropy.hpp"
#include "layers/ranked_scores.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

// The part of the data that is judged; neither is trained on. Test is for the end alone.
enum class EvalSplit { validation, test };

struct Evaluation {
  double loss = 0.0;  // mean over the samples
  index_t samples = 0;
  ConfusionMatrix confusion;
  std::optional<RankedScores> ranking;  // of two classes; class 1 is the positive one
};

// Of two classes the threshold of the best F1 (RankedScores); to be asked of validation alone. Else
// none.
inline std::optional<double> best_threshold(const Evaluation& validation) {
  return validation.ranking ? validation.ranking->best_f1_threshold() : std::nullopt;
}

// Collective over `dp`, then over `pp`. `mine`: what this rank's replica predicted, which the last
// stage knows; a replica may have nothing. Fills `evaluation`'s confusion matrix and ranking, with
// the same bits on every rank and layout.
void judge(Communicator& dp, Communicator& pp, index_t num_classes,
           const std::vector<Prediction>& mine, Evaluation& evaluation);

// Collective over the same. The predictions of all replicas, one replica's behind the other's, on
// every rank: as replicas evaluate consecutive samples, in the order of these. 24 bytes each.
std::vector<Prediction> gather_predictions(Communicator& dp, Communicator& pp,
                                           const std::vector<Prediction>& mine);

}  // namespace weft
