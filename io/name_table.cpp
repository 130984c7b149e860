#include "io/name_table.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "io/extent_reader.hpp"
#include "io/safetensors_header.hpp"

namespace weft {

namespace {

constexpr std::uint64_t most_table_bytes = std::uint64_t{64} << 20;

// What * stands for if `name` is of the pattern; empty text where it has none.
std::optional<std::string> match(const std::string& pattern, const std::string& name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional("") : std::nullopt;
  const std::string begin = pattern.substr(0, star), end = pattern.substr(star + 1);
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return std::nullopt;
  const std::string number = name.substr(star, name.size() - begin.size() - end.size());
  if (number.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return number;
}

std::string filled(std::string pattern, const std::string& number) {
  const std::size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.replace(star, 1, number);
}

}  // namespace

NameTable NameTable::read(const std::string& path) {
  std::string text;
  try {
    text = read_whole_file(path, most_table_bytes);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, std::string("--names: ") + error.what());
  }
  return parse(text, path);
}

NameTable NameTable::parse(const std::string& text, const std::string& path) {
  toml::table document;
  try {
    document = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw Error(ExitCode::usage, fmt::format("{}:{}: {}", path, error.source().begin.line,
                                             std::string(error.description())));
  }
  const toml::table* names = document["names"].as_table();
  require(names && document.size() == 1, ExitCode::usage,
          path + ": expected one table [names] with lines \"our.name\" = \"their.name\"");
  NameTable table;
  table.path_ = path;
  for (const auto& [key, value] : *names) {
    const std::string ours(key.str());
    const auto theirs = value.value<std::string>();
    const auto place = fmt::format("{}:{}: {}", path, key.source().begin.line, ours);
    require(theirs && !theirs->empty(), ExitCode::usage,
            place + ": expected a name in quotes; a name with dots is quoted, too");
    require(*theirs != safetensors_metadata_key && !theirs->starts_with(moments_prefix),
            ExitCode::usage,
            fmt::format("{}: expected a parameter's name, found {}: {} is the file's own word, and "
                        "{}* are moments",
                        place, *theirs, safetensors_metadata_key, moments_prefix));
    const auto stars = std::count(ours.begin(), ours.end(), '*');
    require(stars <= 1 && stars == std::count(theirs->begin(), theirs->end(), '*'), ExitCode::usage,
            place + ": expected one * on both sides, or none");
    table.lines_.push_back({ours, *theirs});
  }
  return table;
}

const NameTable::Line* NameTable::line_for(const std::string& name,
                                           std::vector<bool>& is_used) const {
  const Line* found = nullptr;
  const Line* other = nullptr;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!match(lines_[i].ours, name)) continue;
    is_used[i] = true;
    if (lines_[i].ours == name) return &lines_[i];
    other = std::exchange(found, &lines_[i]);
  }
  require(!other, ExitCode::usage,
          fmt::format("{}: {} and {} are both for {}: expected one line for it", path_,
                      other ? other->ours : "", found ? found->ours : "", name));
  return found;
}

std::vector<std::string> NameTable::names_of(const std::vector<std::string>& ours) const {
  std::vector<bool> is_used(lines_.size());
  std::vector<std::string> names;
  std::map<std::string, std::string> origin;
  for (const std::string& name : ours) {
    const Line* const line = line_for(name, is_used);
    const std::string other = line ? filled(line->theirs, *match(line->ours, name)) : name;
    const auto [at, is_new] = origin.try_emplace(other, name);
    require(is_new, ExitCode::usage,
            fmt::format("{}: {} and {} would both be {}", path_, at->second, name, other));
    names.push_back(other);
  }
  for (std::size_t i = 0; i < lines_.size(); ++i)
    require(is_used[i], ExitCode::usage,
            fmt::format("{}: {} is the name of no tensor (weft ckpt inspect shows them)", path_,
                        lines_[i].ours));
  return names;
}

}  // namespace weft
