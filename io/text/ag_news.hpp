// AG News: two CSV files without a header, of rows "class","title","description"; the classes are
// 1 World, 2 Sports, 3 Business, 4 Sci/Tech, here 0..3. It knows files, rows and labels; what a
// text is as numbers, NewsTokens below says.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "io/tables/csv_file.hpp"
#include "io/text/words.hpp"

namespace weft {

class AgNews {
 public:
  enum class Part { training, test };

  static constexpr index_t num_classes = 4;
  static constexpr std::array<std::string_view, num_classes> class_names = {"World", "Sports",
                                                                            "Business", "Sci/Tech"};
  // The first of these that is there; the second is a part of the first.
  static constexpr std::array<const char*, 2> training_files = {"train.csv", "train_subset.csv"};
  static constexpr const char* test_file = "test.csv";

  // Opens `folder` or its subfolder ag_news/. Reads both files; throws Error(data) where one is
  // missing, breaks the CSV form (with FaultyRow::skip such rows are left out and counted), or has
  // another class than 1..4.
  explicit AgNews(const std::string& folder,
                  CsvFormat::FaultyRow faulty_row = CsvFormat::FaultyRow::refuse);

  const std::string& path(Part part) const { return table(part).name(); }
  index_t num_samples(Part part) const { return table(part).num_rows(); }
  const std::vector<int>& labels(Part part) const { return labels_[at(part)]; }  // 0..3
  const CsvSkipped& skipped(Part part) const { return table(part).skipped(); }
  // Fields class, title, description. Any number of threads may read.
  void read_into(Part part, index_t index, CsvRow& fields) const {
    table(part).read_into(index, fields);
  }

  // 32 hexadecimal digits that tell this data from other data: a hash of the bytes of both files.
  std::string fingerprint() const;

 private:
  static std::size_t at(Part part) { return static_cast<std::size_t>(part); }
  const CsvTable& table(Part part) const { return files_[at(part)].table(); }

  std::array<CsvFile, 2> files_;  // by Part
  std::array<std::vector<int>, 2> labels_;
};

// The words of the titles and descriptions of training rows `rows`, and of no others: what a
// vocabulary may be learnt from.
WordCounts count_words(const AgNews& data, std::span<const index_t> rows);

// News as a fixed number of tokens. Any number of threads may use it.
class NewsTokens {
 public:
  // Both must outlive this. Throws Error(usage) unless num_tokens >= 1.
  NewsTokens(const AgNews& data, const Vocabulary& vocabulary, index_t num_tokens);

  index_t num_tokens() const { return num_tokens_; }
  // The words of the title, then those of the description, as their numbers in the vocabulary; cut
  // off after num_tokens(), filled with Vocabulary::pad. Returns how many are words: at least 1,
  // since a text without words is one unknown word. tokens: [num_tokens()].
  index_t read_into(AgNews::Part part, index_t index, std::span<std::int32_t> tokens) const;

 private:
  const AgNews* data_;
  const Vocabulary* vocabulary_;
  index_t num_tokens_;
};

}  // namespace weft
