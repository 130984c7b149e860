// `weft data` for plain text. Where a folder holds several texts, each is described and checked.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/data_set_commands.hpp"
#include "core/error.hpp"
#include "io/text/synthetic_text.hpp"
#include "io/text/text_check.hpp"

namespace weft {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Part = ByteText::Part;

constexpr std::size_t most_shown = 20;  // windows, to people; JSON has all
constexpr const char* part_names[] = {"train", "validation", "test"};

const char* name_of(Part part) { return part_names[static_cast<std::size_t>(part)]; }

std::vector<std::string> texts_of(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_in(const fs::path& folder) { return !texts_of(folder).empty(); }

// A file, or all texts of a folder or of its subfolder; where there are none, the path itself, for
// the reader to say so.
std::vector<std::string> texts_at(const std::string& path) {
  for (const fs::path& folder : {fs::path(path), fs::path(path) / "text"}) {
    std::vector<std::string> found = texts_of(folder);
    if (!found.empty()) return found;
  }
  return {path};
}

Json json_of(const TextFigures& figures) {
  return {{"bytes", figures.bytes.size()},
          {"different_bytes", figures.num_distinct_bytes},
          {"line_ends", figures.num_line_ends}};
}

int make(const DataMakeOptions& options, std::ostream& text, std::ostream& out) {
  SyntheticTextOptions set;
  set.bytes = options.bytes.value_or(set.bytes);
  set.seed = options.seed;
  make_synthetic_text(options.folder, set);
  text << fmt::format("wrote a synthetic text to {}: {} bytes, seed {}\n",
                      (fs::path(options.folder) / synthetic_text_file).string(), set.bytes,
                      set.seed);
  if (options.json) {
    const Json record = {
        {"dataset", "text"},  {"folder", options.folder}, {"file", synthetic_text_file},
        {"bytes", set.bytes}, {"seed", set.seed},         {"synthetic", true}};
    out << record.dump() << '\n';
  }
  return static_cast<int>(ExitCode::done);
}

int info(const std::string& path, bool json, std::ostream& text, std::ostream& out) {
  Json texts = Json::array();
  for (const std::string& file : texts_at(path)) {
    const ByteText data(file, 1, {1, 0, 0});
    const TextFigures whole = check(data).whole;
    Json record = {{"file", data.path()}};
    record.update(json_of(whole));
    record["fingerprint"] = data.fingerprint();
    texts.push_back(record);
    if (json) continue;
    text << fmt::format("text in {}: {} bytes, {} different ones, {} line ends\nfingerprint {}\n",
                        data.path(), whole.bytes.size(), whole.num_distinct_bytes,
                        whole.num_line_ends, data.fingerprint());
  }
  if (json) out << Json{{"dataset", "text"}, {"folder", path}, {"texts", texts}}.dump() << '\n';
  return static_cast<int>(ExitCode::done);
}

Json json_of(const ByteText& data, const TextCheck& found) {
  Json parts = Json::object(), shared = Json::array();
  for (const Part part : {Part::training, Part::validation, Part::test}) {
    const TextFigures& figures = found.parts[static_cast<std::size_t>(part)];
    Json record = json_of(figures);
    record["windows"] = figures.num_samples;
    parts[name_of(part)] = record;
  }
  for (const SharedWindow& one : found.shared) {
    shared.push_back({{"split", name_of(one.part)},
                      {"window", one.sample},
                      {"found_in", name_of(one.found_in)},
                      {"found_at_byte", one.found_at}});
  }
  Json record = {{"file", data.path()}, {"window", data.window()}};
  record.update(json_of(found.whole));
  record["parts"] = parts;
  record["shared_windows"] = shared;
  record["leaks"] = found.shared.size();
  return record;
}

void print(const ByteText& data, const TextCheck& found, std::ostream& text) {
  text << fmt::format("text in {}, windows of {} bytes\n{:18}{:>10}{:>11}{:>11}{:>10}\n",
                      data.path(), data.window(), "part", "bytes", "different", "line ends",
                      "windows");
  const auto line = [&](const char* name, const TextFigures& figures) {
    text << fmt::format("{:18}{:>10}{:>11}{:>11}{:>10}\n", name, figures.bytes.size(),
                        figures.num_distinct_bytes, figures.num_line_ends, figures.num_samples);
  };
  for (const Part part : {Part::training, Part::validation, Part::test})
    line(name_of(part), found.parts[static_cast<std::size_t>(part)]);
  line("all", found.whole);
  for (std::size_t i = 0; i < std::min(found.shared.size(), most_shown); ++i) {
    const SharedWindow& one = found.shared[i];
    text << fmt::format("  window {} of {} stands in {} from byte {} on; A LEAK between splits\n",
                        one.sample, name_of(one.part), name_of(one.found_in), one.found_at);
  }
  if (found.shared.size() > most_shown)
    text << fmt::format("  and {} more; --json has all\n", found.shared.size() - most_shown);
  text << fmt::format("windows that an earlier split holds, too: {}\n", found.shared.size());
}

// Without a plan: nine tenths to train, and windows as long as a plan's default.
int check_texts(const std::string& path, const DataCheckOptions& options, std::ostream& text,
                std::ostream& out) {
  require(options.slices.empty(), ExitCode::usage,
          "--slices: a text has a label for each of its tokens, so there are no classes to count; "
          "leave it out");
  const std::optional<TaskPlan>& task = options.task;
  const ByteText::Shares shares =
      task ? ByteText::Shares{task->train, task->validation, task->test} : ByteText::Shares{};
  Json texts = Json::array();
  index_t num_leaks = 0;
  for (const std::string& file : texts_at(path)) {
    const ByteText data(file, task.value_or(TaskPlan{}).tokens, shares);
    const TextCheck found = check(data);
    num_leaks += std::ssize(found.shared);
    if (options.json)
      texts.push_back(json_of(data, found));
    else
      print(data, found, text);
  }
  if (options.json)
    out << Json{{"dataset", "text"}, {"folder", path}, {"texts", texts}}.dump() << '\n';
  return static_cast<int>(num_leaks > 0 ? ExitCode::failed : ExitCode::done);
}

}  // namespace

const DataSetCommands text_commands = {.name = "text",
                                       .files = "*.txt",
                                       .is_in = is_in,
                                       .make = make,
                                       .info = info,
                                       .check = check_texts};

}  // namespace weft
