// The table of `weft layouts` as one JSON object.
#include "apps/layout_json.hpp"
#include "apps/layout_table.hpp"
#include "apps/leak_mark.hpp"
#include "apps/study_figures.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

Json account_json(const RowFigures& figures) {
  Json json;
  for (int i = 0; i < num_activities; ++i) {
    const auto activity = static_cast<Activity>(i);
    json[std::string(name_of(activity))] = 100 * figures.activity(activity);
  }
  json["other"] = 100 * figures.other;
  return json;
}

Json runs_json(const LayoutRow& row) {
  Json runs = Json::array();
  for (const LayoutRun& run : row.runs) {
    runs.push_back({{"step_ms", {{"median", run.steps.median_ms()}, {"p95", run.steps.p95_ms()}}},
                    {"transport", run.transport},
                    {"state_hash", run.state_hash.text()},
                    {"loss_hash", run.loss_hash.text()}});
  }
  return runs;
}

Json row_json(const LayoutTable& table, const LayoutRow& row) {
  const RowFigures figures = table.figures(row);
  Json json = {{"name", row.layout.name},
               {"layout", layout_json(row.layout.plan)},
               {"ranks", row.num_ranks()},
               {"is_baseline", &row == &table.reference()},
               {"runs", runs_json(row)},
               {"step_ms", {{"median", figures.median_ms}, {"p95", figures.p95_ms}}},
               {"samples_per_s", figures.samples_per_s},
               {"speed_up", figures.speed_up},
               {"efficiency", figures.efficiency},
               {"device_s_per_1000_samples", figures.device_s_per_1000_samples},
               {"peak_bytes", figures.peak_bytes},
               {"bytes_sent_per_step", figures.bytes_per_step},
               {"account_percent", account_json(figures)},
               {"exposed_communication_percent", 100 * figures.activity(Activity::communication)},
               {"bubble_percent", 100 * figures.activity(Activity::bubble)},
               {"ideal_bubble_percent", 100 * figures.ideal_bubble},
               {"hidden_buckets_percent", nullptr},
               {"state_hash", row.runs.front().state_hash.text()},
               {"loss_hash", row.runs.front().loss_hash.text()},
               {"same_bits", figures.same_bits}};
  if (figures.hidden_share) json["hidden_buckets_percent"] = 100 * *figures.hidden_share;
  json.update(scaling_json(table, row));
  return json;
}

}  // namespace

Json table_json(const LayoutTable& table) {
  Json rows = Json::array(), skipped = Json::array();
  for (const LayoutRow& row : table.rows) rows.push_back(row_json(table, row));
  for (const SkippedLayout& one : table.grid.skipped) {
    skipped.push_back(
        {{"name", one.name}, {"layout", layout_json(one.plan)}, {"reason", one.reason}});
  }
  Json json{{"plan", table.plan.name},
            {"mode", table.plan.is_exact() ? "exact" : "fast"},
            {"ranks", table.num_ranks},
            {"repeats", table.num_repeats},
            {"steps", table.plan.num_steps()},
            {"warm_up_steps", table.num_warm_up},
            {"grid", table.study.candidates},
            {"grid_from", table.study.from},
            {"same_bits", table.same_bits()},
            {"differing", table.differing()},
            {"acceptance", acceptance_json(table)},
            {"rows", std::move(rows)},
            {"skipped", std::move(skipped)},
            {"duplicates", table.grid.num_duplicates}};
  mark_leak(table.plan.task, json);
  mark_skipped(table.skipped_rows, json);
  return json;
}

}  // namespace weft
