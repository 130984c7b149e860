// Ranks' figures on their way to rank 0, what follows from all of them together, and JSON.
#include "apps/profile_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"
#include "apps/named_json.hpp"
#include "apps/step_statistics.hpp"
#include "core/error.hpp"
#include "parallel/plan/memory_model.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

double ms(double ns) { return ns * 1e-6; }
double ms(std::int64_t ns) { return ms(static_cast<double>(ns)); }

Json wire_of(const ProfileAccount& account) {
  Json steps = Json::array(), waited = Json::array();
  for (const ProfiledStep& step : account.steps)
    steps.push_back({step.wall_ns, step.ns, step.hidden_ns});
  for (const auto& [whom, ns] : account.waited_ns)
    waited.push_back({whom.rank, whom.group, static_cast<int>(whom.cause), ns});
  return {steps, waited};
}

ProfileAccount account_from(const Json& wire) {
  ProfileAccount account;
  for (const Json& step : wire.at(0)) {
    ProfiledStep& one = account.steps.emplace_back();
    step.at(0).get_to(one.wall_ns);
    step.at(1).get_to(one.ns);
    step.at(2).get_to(one.hidden_ns);
  }
  for (const Json& entry : wire.at(1)) {
    const WaitedFor whom{entry.at(0).get<int>(), entry.at(1).get<int>(),
                         static_cast<Cause>(entry.at(2).get<int>())};
    account.waited_ns[whom] = entry.at(3).get<std::int64_t>();
  }
  return account;
}

// Mean, median and 95th percentile over a rank's steps, in milliseconds.
template <class Get>
Json distribution(const std::vector<ProfiledStep>& steps, Get get) {
  StepStatistics times(0);
  double sum = 0.0;
  for (const ProfiledStep& step : steps) {
    times.add(ms(get(step)), 0.0);
    sum += ms(get(step));
  }
  return {{"mean", sum / static_cast<double>(steps.size())},
          {"median", times.median_ms()},
          {"p95", times.p95_ms()}};
}

Json rows_json(const ProfileAccount& account) {
  Json rows = Json::object();
  for (int i = 0; i < num_profile_rows; ++i)
    rows[std::string(name_of(static_cast<ProfileRow>(i)))] = distribution(
        account.steps,
        [i](const ProfiledStep& step) { return step.ns[static_cast<std::size_t>(i)]; });
  return rows;
}

Json hidden_json(const ProfileAccount& account) {
  Json hidden = Json::object();
  for (std::size_t g = 0; g < profile_groups.size(); ++g) {
    std::int64_t sum = 0;
    for (const ProfiledStep& step : account.steps) sum += step.hidden_ns[g];
    hidden[std::string(profile_groups[g])] = sum;
  }
  return hidden;
}

Json waits_json(const ProfileAccount& account) {
  Json waits = Json::array();
  const auto steps = static_cast<double>(account.steps.size());
  for (const auto& [whom, ns] : account.waited_ns)
    waits.push_back({{"for_rank", whom.rank},
                     {"over", profile_groups[static_cast<std::size_t>(whom.group)]},
                     {"cause", name_of(whom.cause)},
                     {"ms_a_step", ms(ns) / steps}});
  return waits;
}

Json buckets_json(const ProfiledRank& rank) {
  Json buckets = Json::array();
  for (const BucketTimes& bucket : rank.buckets)
    buckets.push_back({{"name", bucket.name},
                       {"ready_ms", ms(bucket.ready_ns)},
                       {"launched_ms", ms(bucket.launched_ns)},
                       {"completed_ms", ms(bucket.completed_ns)}});
  return {{"backward_end_ms", ms(rank.backward_end_ns)},
          {"tail_ms", ms(tail_ns(rank))},
          {"of", buckets}};
}

Json memory_json(const Plan& plan, const ProfiledRank& rank) {
  const RankMemory foreseen = rank_memory(plan, rank.tp, rank.dp, rank.pp);
  return {{"peak_bytes", rank.peak.total},
          {"peak_phase", name_of(rank.peak.phase)},
          {"by_kind", by_name<MemoryKind>(rank.peak.by_kind)},
          {"by_phase", by_name<Phase>(rank.peak_by_phase)},
          {"foreseen",
           {{"parameters", foreseen.parameter_bytes},
            {"gradients", foreseen.gradient_bytes},
            {"optimizer", foreseen.optimizer_bytes}}}};
}

}  // namespace

std::string to_bytes(const ProfiledRank& rank) {
  Json buckets = Json::array();
  for (const BucketTimes& bucket : rank.buckets)
    buckets.push_back({bucket.name, bucket.ready_ns, bucket.launched_ns, bucket.completed_ns});
  const Json wire{rank.tp,
                  rank.dp,
                  rank.pp,
                  wire_of(rank.account),
                  buckets,
                  rank.backward_end_ns,
                  Json{rank.peak.total, static_cast<int>(rank.peak.phase), rank.peak.by_kind},
                  rank.peak_by_phase,
                  rank.dropped_events};
  std::string bytes;
  Json::to_cbor(wire, bytes);
  return bytes;
}

ProfiledRank from_bytes(std::string_view bytes) {
  ProfiledRank rank;
  try {
    const Json wire = Json::from_cbor(bytes);
    wire.at(0).get_to(rank.tp);
    wire.at(1).get_to(rank.dp);
    wire.at(2).get_to(rank.pp);
    rank.account = account_from(wire.at(3));
    for (const Json& bucket : wire.at(4))
      rank.buckets.push_back({bucket.at(0).get<std::string>(), bucket.at(1).get<double>(),
                              bucket.at(2).get<double>(), bucket.at(3).get<double>()});
    wire.at(5).get_to(rank.backward_end_ns);
    wire.at(6).at(0).get_to(rank.peak.total);
    rank.peak.phase = static_cast<Phase>(wire.at(6).at(1).get<int>());
    wire.at(6).at(2).get_to(rank.peak.by_kind);
    wire.at(7).get_to(rank.peak_by_phase);
    wire.at(8).get_to(rank.dropped_events);
  } catch (const Json::exception& fault) {
    throw Error(ExitCode::failed,
                std::string("a rank's profile cannot be read: start all ranks with the same "
                            "program (") +
                    fault.what() + ")");
  }
  return rank;
}

RowTotals totals_of(const ProfileAccount& account) {
  RowTotals totals{};
  for (const ProfiledStep& step : account.steps)
    for (std::size_t row = 0; row < totals.size(); ++row) totals[row] += step.ns[row];
  return totals;
}

std::int64_t wall_ns(const ProfileAccount& account) {
  std::int64_t sum = 0;
  for (const ProfiledStep& step : account.steps) sum += step.wall_ns;
  return sum;
}

double tail_ns(const ProfiledRank& rank) {
  double end = rank.backward_end_ns;
  for (const BucketTimes& bucket : rank.buckets) end = std::max(end, bucket.completed_ns);
  return end - rank.backward_end_ns;
}

std::optional<Straggler> straggler_of(const std::vector<ProfiledRank>& ranks) {
  std::map<std::pair<int, Cause>, std::int64_t> by_rank;
  std::vector<std::int64_t> waited_itself(ranks.size(), 0);
  std::int64_t all_ns = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    all_ns += wall_ns(ranks[r].account);
    for (const auto& [whom, ns] : ranks[r].account.waited_ns) {
      if (whom.cause == Cause::communication) continue;
      by_rank[{whom.rank, whom.cause}] += ns;
      waited_itself[r] += ns;
    }
  }
  const auto most = std::max_element(by_rank.begin(), by_rank.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (most == by_rank.end() || most->second * 50 < all_ns) return std::nullopt;
  // Ranks that wait for each other by turns are noise, and none of them is to blame.
  if (most->second < 2 * waited_itself[static_cast<std::size_t>(most->first.first)])
    return std::nullopt;
  const auto steps = static_cast<double>(ranks.front().account.steps.size());
  return Straggler{most->first.first, most->first.second, ms(most->second) / steps};
}

std::vector<SlowLinks> slow_links_of(const std::vector<ProfiledRank>& ranks) {
  double all = 0.0;
  for (const ProfiledRank& rank : ranks) all += static_cast<double>(wall_ns(rank.account));
  std::vector<SlowLinks> slow;
  for (std::size_t g = 0; g < profile_groups.size(); ++g) {
    const auto row = static_cast<std::size_t>(ProfileRow::communication_tp) + g;
    double sum = 0.0;
    for (const ProfiledRank& rank : ranks) sum += static_cast<double>(totals_of(rank.account)[row]);
    if (sum >= 0.05 * all) slow.push_back({static_cast<int>(g), 100.0 * sum / all});
  }
  return slow;
}

Json json_of(const Profile& profile) {
  Json ranks = Json::array();
  for (const ProfiledRank& rank : profile.ranks)
    ranks.push_back(
        {{"tp", rank.tp},
         {"dp", rank.dp},
         {"pp", rank.pp},
         {"step_ms",
          distribution(rank.account.steps, [](const ProfiledStep& step) { return step.wall_ns; })},
         {"wall_ns", wall_ns(rank.account)},
         {"ns", by_name<ProfileRow>(totals_of(rank.account))},
         {"rows_ms", rows_json(rank.account)},
         {"hidden_ns", hidden_json(rank.account)},
         {"waits", waits_json(rank.account)},
         {"buckets", buckets_json(rank)},
         {"memory", memory_json(profile.plan, rank)},
         {"dropped_events", rank.dropped_events}});
  const std::optional<Straggler> straggler = straggler_of(profile.ranks);
  Json found = nullptr;
  if (straggler)
    found = {{"rank", straggler->rank},
             {"cause", name_of(straggler->cause)},
             {"waited_ms_a_step", straggler->ms_a_step}};
  Json links = Json::array();
  for (const SlowLinks& slow : slow_links_of(profile.ranks))
    links.push_back({{"over", profile_groups[static_cast<std::size_t>(slow.group)]},
                     {"percent_of_time", slow.percent}});
  Json json{{"profile_format", profile_format},
            {"plan", profile.plan.name},
            {"layout", layout_json(profile.plan)},
            {"transport", profile.transport},
            {"warm_up_steps", profile.warm_up},
            {"measured_steps", profile.ranks.front().account.steps.size()},
            {"injected", profile.delays.empty() ? Json(nullptr) : Json(profile.delays)},
            {"state_hash", profile.state_hash.text()},
            {"loss_hash", profile.loss_hash.text()},
            {"straggler", found},
            {"slow_links", links},
            {"ranks", ranks}};
  mark_leak(profile.plan.task, json);
  mark_skipped(profile.skipped_rows, json);
  return json;
}

}  // namespace weft
