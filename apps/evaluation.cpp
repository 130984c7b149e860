#include "apps/evaluation.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "parallel/comm/gather_values.hpp"

namespace weft {

namespace {

// A sample of two classes as it goes to the others: without padding bytes.
struct ScoreRecord {
  double score;
  std::int64_t label;
};

// Counts and scores go the same way: every replica's to all replicas, then from the last stage,
// which alone has predictions, to the others.
std::string from_last_stage(Communicator& pp, std::string_view name, std::string_view bytes) {
  return pp.broadcast_string(name, pp.size() - 1, bytes);
}

ConfusionMatrix confusion_of_all(Communicator& dp, Communicator& pp, index_t num_classes,
                                 const std::vector<Prediction>& mine) {
  ConfusionMatrix counts(num_classes);
  for (const Prediction& one : mine) counts.add(one.label, one.predicted);
  ConfusionMatrix all(num_classes);
  for (const std::string& part : dp.all_gather_strings("confusion", bytes_of(counts.counts())))
    all += ConfusionMatrix(num_classes, values_of<std::int64_t>(part));
  const std::string total = from_last_stage(pp, "confusion.all_stages", bytes_of(all.counts()));
  return {num_classes, values_of<std::int64_t>(total)};
}

RankedScores ranking_of_all(Communicator& dp, Communicator& pp,
                            const std::vector<Prediction>& mine) {
  std::vector<ScoreRecord> records;
  records.reserve(mine.size());
  for (const Prediction& one : mine) records.push_back({one.score, one.label});
  std::string all;
  for (const std::string& part : dp.all_gather_strings("scores", bytes_of(records))) all += part;
  std::vector<ScoredSample> samples;
  for (const ScoreRecord& one :
       values_of<ScoreRecord>(from_last_stage(pp, "scores.all_stages", all))) {
    samples.push_back({one.score, one.label == 1});
  }
  return RankedScores(samples);
}

}  // namespace

void judge(Communicator& dp, Communicator& pp, index_t num_classes,
           const std::vector<Prediction>& mine, Evaluation& evaluation) {
  evaluation.confusion = confusion_of_all(dp, pp, num_classes, mine);
  if (num_classes == 2) evaluation.ranking = ranking_of_all(dp, pp, mine);
}

std::vector<Prediction> gather_predictions(Communicator& dp, Communicator& pp,
                                           const std::vector<Prediction>& mine) {
  std::string all;
  for (const std::string& part : dp.all_gather_strings("predictions", bytes_of(mine))) all += part;
  return values_of<Prediction>(from_last_stage(pp, "predictions.all_stages", all));
}

}  // namespace weft
