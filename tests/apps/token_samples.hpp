// Samples of tokens for training runs of tests, made from their index in memory: counting up in
// steps, so that there is something to learn. A label for each token, the token that follows it; or
// one for a sample, its class, which decides the steps.
#pragma once

#include <string>
#include <vector>

#include "io/sample_set.hpp"

namespace weft::testing {

class TokenSamples final : public SampleSet {
 public:
  struct Options {
    index_t num_samples = 0;
    SampleForm form;
    index_t vocabulary = 0;
    index_t num_classes = 0;  // of samples that have one label
  };
  explicit TokenSamples(const Options& options);

  const std::string& folder() const override { return folder_; }
  index_t num_samples() const override { return options_.num_samples; }
  SampleForm form() const override { return options_.form; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string fingerprint() const override { return std::string(32, '7'); }
  void read(index_t index, const std::optional<Augmentation>& augmentation,
            const SampleRow& row) const override;

 private:
  Options options_;
  std::string folder_ = "memory";
  std::vector<std::string> class_names_;
};

}  // namespace weft::testing
