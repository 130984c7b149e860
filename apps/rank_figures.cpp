#include "apps/rank_figures.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "apps/named_json.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

// It travels as its bytes: one program on all ranks.
static_assert(std::is_trivially_copyable_v<RankFigures>);

RankFigures figures_of(Trainer& trainer, const TimeAccount& steps, const SampleRecord& samples) {
  Mesh& mesh = trainer.mesh();
  const Arena& arena = trainer.context().arena;
  RankFigures figures{};
  figures.tp = mesh.rank("tp");
  figures.dp = mesh.rank("dp");
  figures.pp = mesh.rank("pp");
  figures.parameters = static_cast<std::uint64_t>(trainer.parameters().held_elements());
  figures.bytes_sent = trainer.bytes_sent();
  figures.peak = arena.peak();
  for (std::size_t i = 0; i < figures.peak_by_phase.size(); ++i) {
    figures.peak_by_phase[i] = arena.peak_of(static_cast<Phase>(i));
  }
  figures.steps = steps;
  figures.samples = samples;
  return figures;
}

Json time_json(const TimeAccount& account) {
  std::array<double, num_activities> ms{};
  for (std::size_t i = 0; i < ms.size(); ++i) ms[i] = ms_of(account.own_ns[i]);
  Json json = by_name<Activity>(ms);
  json["other"] = ms_of(account.other_ns());
  return json;
}

}  // namespace

std::vector<RankFigures> gather_figures(Communicator& world, Trainer& trainer,
                                        const TimeAccount& steps, const SampleRecord& samples) {
  const RankFigures mine = figures_of(trainer, steps, samples);
  const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof(mine));
  std::vector<RankFigures> all;
  for (const std::string& text : world.gather_strings("summary", 0, bytes)) {
    require(text.size() == sizeof(RankFigures), ExitCode::failed,
            "a rank sent " + std::to_string(text.size()) + " bytes of figures where " +
                std::to_string(sizeof(RankFigures)) +
                " are expected: start all ranks with the same program");
    std::memcpy(&all.emplace_back(), text.data(), sizeof(RankFigures));
  }
  return all;
}

nlohmann::ordered_json ranks_json(const std::vector<RankFigures>& ranks) {
  Json json = Json::array();
  for (const RankFigures& rank : ranks) {
    json.push_back({{"tp", rank.tp},
                    {"dp", rank.dp},
                    {"pp", rank.pp},
                    {"parameters", rank.parameters},
                    {"bytes_sent", rank.bytes_sent},
                    {"peak_bytes", rank.peak.total},
                    {"peak_phase", name_of(rank.peak.phase)},
                    {"peak_bytes_by_kind", by_name<MemoryKind>(rank.peak.by_kind)},
                    {"peak_bytes_by_phase", by_name<Phase>(rank.peak_by_phase)},
                    {"steps_ms", ms_of(rank.steps.wall_ns)},
                    {"ms", time_json(rank.steps)}});
  }
  return json;
}

nlohmann::ordered_json replicas_json(const std::vector<RankFigures>& ranks) {
  std::map<int, SampleRecord> records;
  for (const RankFigures& rank : ranks) {
    const auto [entry, is_new] = records.try_emplace(rank.dp, rank.samples);
    require(
        entry->second == rank.samples, ExitCode::failed,
        fmt::format("replica {}: its ranks counted {} and {} updates with the samples {:016x} and "
                    "{:016x}: they worked on different samples",
                    rank.dp, entry->second.updates(), rank.samples.updates(),
                    entry->second.samples_hash(), rank.samples.samples_hash()));
  }
  Json json = Json::array();
  for (const auto& [dp, record] : records)
    json.push_back({{"dp", dp},
                    {"updates", record.updates()},
                    {"samples_hash", fmt::format("{:016x}", record.samples_hash())}});
  return json;
}

}  // namespace weft
