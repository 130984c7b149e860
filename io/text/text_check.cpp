// Windows are found by a rolling hash of every place, then compared; see the header.
#include "io/text/text_check.hpp"

#include <algorithm>
#include <unordered_map>

namespace weft {

namespace {

using Part = ByteText::Part;

// hash of b_0 .. b_n-1 = sum b_i base^(n-1-i), modulo 2^64 (Karp and Rabin, "Efficient randomized
// pattern-matching algorithms", 1987).
class RollingHash {
 public:
  explicit RollingHash(index_t window) {
    for (index_t i = 1; i < window; ++i) highest_ *= base;
  }
  void add(std::uint8_t byte) { value_ = value_ * base + byte; }
  void replace(std::uint8_t oldest, std::uint8_t byte) {
    value_ = (value_ - oldest * highest_) * base + byte;
  }
  std::uint64_t value() const { return value_; }

 private:
  static constexpr std::uint64_t base = 0x9E3779B97F4A7C15u;
  std::uint64_t highest_ = 1;
  std::uint64_t value_ = 0;
};

TextFigures figures_of(std::span<const std::uint8_t> all, Range bytes, index_t num_samples) {
  std::array<index_t, 256> count{};
  for (index_t i = bytes.begin; i < bytes.end; ++i) ++count[all[static_cast<std::size_t>(i)]];
  return {bytes, num_samples, 256 - std::count(count.begin(), count.end(), 0), count['\n']};
}

class WindowSearch {
 public:
  WindowSearch(const ByteText& text, Part part) : text_(text), bytes_(text.bytes()), part_(part) {
    const index_t begin = text.bytes_of(part).begin;
    for (index_t i = 0; i < text.num_samples(part); ++i) {
      const index_t at = begin + i * text.window();
      RollingHash hash(text.window());
      for (const std::uint8_t byte : window_at(at)) hash.add(byte);
      by_hash_[hash.value()].push_back(i);
    }
    found_.resize(static_cast<std::size_t>(text.num_samples(part)));
  }

  void look_in(Part earlier) {
    const Range range = text_.bytes_of(earlier);
    const index_t window = text_.window();
    if (range.size() < window) return;
    RollingHash hash(window);
    for (index_t i = range.begin; i < range.begin + window; ++i) hash.add(byte(i));
    for (index_t at = range.begin;; ++at) {
      if (const auto same = by_hash_.find(hash.value()); same != by_hash_.end()) [[unlikely]]
        note(same->second, earlier, at);
      if (at + window == range.end) return;
      hash.replace(byte(at), byte(at + window));
    }
  }

  void add_to(std::vector<SharedWindow>& shared) const {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto& [is_found, in, at] = found_[i];
      if (is_found) shared.push_back({part_, static_cast<index_t>(i), in, at});
    }
  }

 private:
  struct Found {
    bool is_found = false;
    Part in = Part::training;
    index_t at = 0;
  };

  std::uint8_t byte(index_t at) const { return bytes_[static_cast<std::size_t>(at)]; }
  std::span<const std::uint8_t> window_at(index_t at) const {
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(text_.window()));
  }

  void note(const std::vector<index_t>& samples, Part in, index_t at) {
    const auto there = window_at(at);
    for (const index_t sample : samples) {
      Found& found = found_[static_cast<std::size_t>(sample)];
      const auto here = window_at(text_.bytes_of(part_).begin + sample * text_.window());
      if (!found.is_found && std::equal(here.begin(), here.end(), there.begin()))
        found = {true, in, at};
    }
  }

  const ByteText& text_;
  std::span<const std::uint8_t> bytes_;
  Part part_;
  std::unordered_map<std::uint64_t, std::vector<index_t>> by_hash_;  // numbers of samples
  std::vector<Found> found_;                                         // by sample
};

}  // namespace

TextCheck check(const ByteText& text) {
  TextCheck result;
  index_t num_samples = 0;
  for (const Part part : {Part::training, Part::validation, Part::test}) {
    num_samples += text.num_samples(part);
    result.parts[static_cast<std::size_t>(part)] =
        figures_of(text.bytes(), text.bytes_of(part), text.num_samples(part));
  }
  result.whole = figures_of(text.bytes(), {0, std::ssize(text.bytes())}, num_samples);
  WindowSearch validation(text, Part::validation);
  validation.look_in(Part::training);
  validation.add_to(result.shared);
  WindowSearch test(text, Part::test);
  test.look_in(Part::training);
  test.look_in(Part::validation);
  test.add_to(result.shared);
  return result;
}

}  // namespace weft
