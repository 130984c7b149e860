// Parts and windows of a file; see the header.
#include "io/text/byte_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr index_t most_shares = 1'000'000'000;

std::vector<std::string> texts_of(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string find_file(const std::string& given) {
  std::error_code ignored;
  require(fs::exists(given, ignored), ExitCode::data,
          fmt::format("{} does not exist: name a text file, or a folder that holds one *.txt",
                      given.empty() ? "\"\"" : given));
  if (!fs::is_directory(given)) return given;
  for (const fs::path& folder : {fs::path(given), fs::path(given) / "text"}) {
    const std::vector<std::string> found = texts_of(folder);
    if (found.size() == 1) return found.front();
    require(found.empty(), ExitCode::data,
            fmt::format("{} holds {} texts: name the file that is meant, as {}", folder.string(),
                        found.size(), found.empty() ? "" : found.front()));
  }
  throw Error(ExitCode::data, fmt::format("no *.txt in {}: name a text file", given));
}

}  // namespace

ByteText::ByteText(const std::string& path, index_t window, const Shares& shares)
    : file_(find_file(path)), window_(window), shares_(shares) {
  require(!file_.bytes().empty(), ExitCode::data,
          fmt::format("{} is empty: expected a text", file_.path()));
  require(window >= 1, ExitCode::usage,
          fmt::format("a window of {} tokens: expected at least 1", window));
  const auto [training, validation, test] = shares;
  const auto is_legal = [](index_t share) { return 0 <= share && share <= most_shares; };
  require(training >= 1 && is_legal(training) && is_legal(validation) && is_legal(test),
          ExitCode::usage,
          fmt::format("shares of the text {} : {} : {}: expected 1..{} for training and 0..{} for "
                      "validation and test",
                      training, validation, test, most_shares, most_shares));
  const char* const names[] = {"training", "validation", "test"};
  const index_t share[] = {training, validation, test};
  for (const Part part : {Part::training, Part::validation, Part::test}) {
    const auto p = static_cast<std::size_t>(part);
    require(
        share[p] == 0 || num_samples(part) >= 1, ExitCode::usage,
        fmt::format("the {} part of {} has {} bytes: a sample of {} tokens and what follows the "
                    "last one needs {}; take a smaller window or a larger share",
                    names[p], file_.path(), bytes_of(part).size(), window, window + 1));
  }
}

Range ByteText::bytes_of(Part part) const {
  const index_t share[] = {shares_.training, shares_.validation, shares_.test};
  index_t before = 0;
  for (index_t p = 0; p < static_cast<index_t>(part); ++p) before += share[p];
  const auto size = static_cast<unsigned __int128>(file_.bytes().size());
  const index_t all = share[0] + share[1] + share[2];
  const auto cut = [&](index_t shares) {
    return static_cast<index_t>(size * static_cast<unsigned __int128>(shares) /
                                static_cast<unsigned __int128>(all));
  };
  return {cut(before), cut(before + share[static_cast<std::size_t>(part)])};
}

index_t ByteText::num_samples(Part part) const {
  return std::max<index_t>(0, bytes_of(part).size() - 1) / window_;
}

void ByteText::read_into(Part part, index_t index, std::span<std::int32_t> tokens,
                         std::span<std::int32_t> targets) const {
  assert(0 <= index && index < num_samples(part));
  assert(std::ssize(tokens) == window_ && std::ssize(targets) == window_);
  const std::uint8_t* const bytes = file_.bytes().data() + bytes_of(part).begin + index * window_;
  std::copy(bytes, bytes + window_, tokens.begin());
  std::copy(bytes + 1, bytes + window_ + 1, targets.begin());
}

std::string ByteText::fingerprint() const {
  return hash128(file_.bytes().data(), file_.bytes().size()).text();
}

}  // namespace weft
