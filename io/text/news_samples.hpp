// AG News as samples: the training rows first, behind them the test rows; words as numbers of a
// vocabulary that was learnt from rows for training.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/sample_set.hpp"
#include "io/text/ag_news.hpp"
#include "io/text/words.hpp"

namespace weft {

class NewsSamples final : public SampleSet {
 public:
  // `training`: rows of the training part that the vocabulary is learnt from. `vocabulary`: words
  // that it has at most, with what stands for none and for others. `num_tokens`: of a sample.
  NewsSamples(AgNews news, std::span<const index_t> training, index_t vocabulary,
              index_t num_tokens)
      : news_(std::move(news)),
        vocabulary_(count_words(news_, training), vocabulary),
        tokens_(news_, vocabulary_, num_tokens) {}
  // Its tokens refer to it.
  NewsSamples(const NewsSamples&) = delete;
  NewsSamples& operator=(const NewsSamples&) = delete;

  const AgNews& news() const { return news_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  const std::string& folder() const override { return news_.path(AgNews::Part::training); }
  index_t num_samples() const override {
    return news_.num_samples(AgNews::Part::training) + news_.num_samples(AgNews::Part::test);
  }
  SampleForm form() const override { return {.tokens = tokens_.num_tokens(), .has_lengths = true}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string fingerprint() const override { return news_.fingerprint(); }
  void read(index_t index, const std::optional<Augmentation>& augmentation,
            const SampleRow& row) const override;

  // "tokens": how many of a sample are real, by quartiles of training samples.
  std::vector<std::string> column_names() const override { return {"tokens"}; }
  SampleGroups groups_of(std::string_view column, std::span<const index_t> training) const override;

 private:
  AgNews news_;
  Vocabulary vocabulary_;
  NewsTokens tokens_;
  std::vector<std::string> class_names_{AgNews::class_names.begin(), AgNews::class_names.end()};
};

}  // namespace weft
