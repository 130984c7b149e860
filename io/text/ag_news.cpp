// Opening, checking and reading AG News; see the header.
#include "io/text/ag_news.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <filesystem>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr const char* how_to_get =
    "name the folder that holds train.csv (or train_subset.csv, a part of it) and test.csv, or "
    "make "
    "a synthetic set";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string first_there(const fs::path& folder, AgNews::Part part) {
  std::vector<std::string> names = {AgNews::test_file};
  if (part == AgNews::Part::training)
    names.assign(AgNews::training_files.begin(), AgNews::training_files.end());
  for (const std::string& name : names) {
    if (is_there(folder / name)) return (folder / name).string();
  }
  return "";
}

std::string find_file(const std::string& given, AgNews::Part part) {
  require(!given.empty() && fs::is_directory(given), ExitCode::data,
          fmt::format("{} is no folder: {}", given.empty() ? "\"\"" : given, how_to_get));
  fs::path folder = given;
  if (is_there(folder / "ag_news") && first_there(folder, AgNews::Part::training).empty() &&
      first_there(folder, AgNews::Part::test).empty())
    folder /= "ag_news";
  const std::string found = first_there(folder, part);
  require(!found.empty(), ExitCode::data,
          fmt::format("no {} of AG News in {}: {}",
                      part == AgNews::Part::test ? "test.csv" : "train.csv", folder.string(),
                      how_to_get));
  return found;
}

std::vector<int> read_labels(const CsvTable& table) {
  std::vector<int> labels;
  CsvRow row;
  for (index_t r = 0; r < table.num_rows(); ++r) {
    table.read_into(r, row);
    const std::string_view label = row.fields[0];
    if (label.size() != 1 || label[0] < '1' || label[0] > '4') [[unlikely]] {
      throw Error(ExitCode::data, fmt::format("{}: expected a class of 1 to 4, found \"{}\"",
                                              table.place_of(r, 0), label));
    }
    labels.push_back(label[0] - '1');
  }
  return labels;
}

}  // namespace

AgNews::AgNews(const std::string& folder, CsvFormat::FaultyRow faulty_row)
    : files_{
          CsvFile(find_file(folder, Part::training), {.num_columns = 3, .faulty_row = faulty_row}),
          CsvFile(find_file(folder, Part::test), {.num_columns = 3, .faulty_row = faulty_row})} {
  for (const Part part : {Part::training, Part::test}) {
    require(num_samples(part) > 0, ExitCode::data,
            fmt::format("{} has no sound row: copy or make it again", path(part)));
    labels_[at(part)] = read_labels(table(part));
  }
}

std::string AgNews::fingerprint() const {
  std::string text;
  for (const CsvFile& file : files_) {
    const std::string_view bytes = file.text();
    text += fmt::format("{} {}\n", bytes.size(), hash128(bytes.data(), bytes.size()).text());
  }
  return hash128(text.data(), text.size()).text();
}

WordCounts count_words(const AgNews& data, std::span<const index_t> rows) {
  WordCounts words;
  CsvRow row;
  for (const index_t index : rows) {
    data.read_into(AgNews::Part::training, index, row);
    words.add(row.fields[1]);
    words.add(row.fields[2]);
  }
  return words;
}

NewsTokens::NewsTokens(const AgNews& data, const Vocabulary& vocabulary, index_t num_tokens)
    : data_(&data), vocabulary_(&vocabulary), num_tokens_(num_tokens) {
  require(num_tokens >= 1, ExitCode::usage,
          fmt::format("{} tokens a text: expected at least 1", num_tokens));
}

index_t NewsTokens::read_into(AgNews::Part part, index_t index,
                              std::span<std::int32_t> tokens) const {
  assert(std::ssize(tokens) == num_tokens_);
  CsvRow row;
  data_->read_into(part, index, row);
  std::size_t length = 0;
  for (const std::size_t field : {1, 2}) {
    for_each_word(row.fields[field], [&](std::string_view word) {
      if (length == tokens.size()) return false;
      tokens[length++] = vocabulary_->id(word);
      return true;
    });
  }
  if (length == 0) tokens[length++] = Vocabulary::unknown;
  std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(length), tokens.end(), Vocabulary::pad);
  return static_cast<index_t>(length);
}

}  // namespace weft
