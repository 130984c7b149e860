// Bank Marketing as samples: a row of the table, as numbers fitted on the training rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/sample_set.hpp"
#include "io/tables/bank.hpp"
#include "io/tables/bank_encoder.hpp"

namespace weft {

class BankSamples final : public SampleSet {
 public:
  // `training`: rows that the encoder is fitted on.
  BankSamples(Bank bank, std::span<const index_t> training, bool allow_leak)
      : bank_(std::move(bank)), encoder_(bank_, training, allow_leak) {}

  const Bank& bank() const { return bank_; }
  const BankEncoder& encoder() const { return encoder_; }

  const std::string& folder() const override { return bank_.path(); }
  index_t num_samples() const override { return bank_.num_rows(); }
  SampleForm form() const override { return {.features = encoder_.num_features()}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string fingerprint() const override { return bank_.fingerprint(); }
  void read(index_t index, const std::optional<Augmentation>& augmentation,
            const SampleRow& row) const override;

  // All columns but y; also one that is no feature.
  std::vector<std::string> column_names() const override;
  // A category by the documented ones and one group for all others; a number by quartiles of the
  // training rows; pdays by those that were contacted, with a group of those that were not.
  SampleGroups groups_of(std::string_view column, std::span<const index_t> training) const override;
  std::string_view order_name() const override { return "time"; }

 private:
  Bank bank_;
  BankEncoder encoder_;
  std::vector<std::string> class_names_ = {"no", "yes"};
};

}  // namespace weft
