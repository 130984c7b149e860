#include "apps/profile_records.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/last_object.hpp"
#include "apps/leak_mark.hpp"
#include "apps/profile_report.hpp"
#include "apps/rank_parts.hpp"
#include "core/error.hpp"
#include "io/extent_reader.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
constexpr double ns_a_ms = 1e6;

NamedNumbers numbers_of(const Json& object, double unit = 1.0) {
  NamedNumbers numbers;
  for (const auto& [name, value] : object.items())
    numbers.emplace_back(name, value.get<double>() / unit);
  return numbers;
}

ProfileRank rank_of(const Json& json, double num_steps) {
  ProfileRank rank{.tp = json.at("tp"),
                   .dp = json.at("dp"),
                   .pp = json.at("pp"),
                   .median_ms = json.at("step_ms").at("median"),
                   .p95_ms = json.at("step_ms").at("p95"),
                   .rows_ms = numbers_of(json.at("ns"), ns_a_ms * num_steps),
                   .hidden_ms = numbers_of(json.at("hidden_ns"), ns_a_ms * num_steps),
                   .waits = {},
                   .backward_end_ms = json.at("buckets").at("backward_end_ms"),
                   .tail_ms = json.at("buckets").at("tail_ms"),
                   .buckets = {},
                   .peak_bytes = json.at("memory").at("peak_bytes"),
                   .peak_phase = json.at("memory").at("peak_phase"),
                   .peak_by_kind = numbers_of(json.at("memory").at("by_kind")),
                   .foreseen = numbers_of(json.at("memory").at("foreseen")),
                   .dropped_events = json.at("dropped_events")};
  for (const Json& wait : json.at("waits"))
    rank.waits.push_back(
        {wait.at("for_rank"), wait.at("over"), wait.at("cause"), wait.at("ms_a_step")});
  for (const Json& bucket : json.at("buckets").at("of"))
    rank.buckets.push_back({bucket.at("name"), bucket.at("ready_ms"), bucket.at("launched_ms"),
                            bucket.at("completed_ms")});
  return rank;
}

std::vector<std::string> findings_of(const Json& json) {
  std::vector<std::string> findings;
  const Json& straggler = json.at("straggler");
  if (straggler.is_object())
    findings.push_back(fmt::format(
        "STRAGGLER: rank {}; the others waited {:.3f} ms a step for its {}.",
        straggler.at("rank").get<index_t>(), straggler.at("waited_ms_a_step").get<double>(),
        straggler.at("cause").get<std::string>()));
  else
    findings.emplace_back("No straggler: nobody made the others wait for 2 % of their time.");
  for (const Json& links : json.at("slow_links"))
    findings.push_back(fmt::format(
        "LINKS: {:.1f} % of the time went on {} when all had come to "
        "it: its links or its bytes, no late rank.",
        links.at("percent_of_time").get<double>(), links.at("over").get<std::string>()));
  return findings;
}

std::string layout_of(const Json& layout) {
  return grid_label(layout.at("tp"), layout.at("dp"), layout.at("pp"));
}

ProfileRecord record_of(const std::string& path, const Json& json) {
  ProfileRecord record{.path = path,
                       .plan = json.at("plan"),
                       .layout = layout_of(json.at("layout")),
                       .transport = json.at("transport"),
                       .warm_up_steps = json.at("warm_up_steps"),
                       .measured_steps = json.at("measured_steps"),
                       .injected = {},
                       .leak = json.value(leak_key, ""),
                       .findings = findings_of(json),
                       .ranks = {}};
  if (json.at("injected").is_string()) record.injected = json.at("injected");
  const auto num_steps = static_cast<double>(record.measured_steps);
  for (const Json& rank : json.at("ranks")) record.ranks.push_back(rank_of(rank, num_steps));
  return record;
}

}  // namespace

ProfileRecord parse_profile(const std::string& path, const std::string& text) {
  const std::string expected = "expected what `weft profile --json` writes to standard output";
  const Json json = last_object(text);
  require(json.is_object(), ExitCode::usage,
          fmt::format("{}: {}; found {}", path, expected,
                      text.empty() ? "an empty file"
                                   : "no JSON object on the last line: cut off, or of something "
                                     "else"));
  const bool is_profile = json.contains("measured_steps") && json.contains("ranks");
  require(is_profile, ExitCode::usage,
          fmt::format("{}: {}; found an object of another command", path, expected));
  const Json format = json.value("profile_format", Json(nullptr));
  require(format == profile_format, ExitCode::usage,
          fmt::format("{}: expected a profile of format {}; found {}. Profile again with this weft",
                      path, profile_format,
                      format.is_null() ? "one of an older weft, which has none"
                                       : "format " + format.dump()));
  try {
    ProfileRecord record = record_of(path, json);
    require(!record.ranks.empty() && record.measured_steps > 0, ExitCode::usage,
            fmt::format("{}: {}; found no rank or no step in it", path, expected));
    return record;
  } catch (const Json::exception& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}; found one that was changed: {}", path,
                                             expected, error.what()));
  }
}

ProfileRecord read_profile(const std::string& path) {
  std::string text;
  try {
    text = read_whole_file(path, most_bytes);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, fmt::format("--profile: {}", error.what()));
  }
  return parse_profile(path, text);
}

}  // namespace weft
