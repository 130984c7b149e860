#include "apps/run_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ostream>

#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }

double mib(const Json& json, const char* key) { return number(json, key) / (1 << 20); }

std::string metric_text(const Json& summary, const char* key) {
  const Json& value = summary.at("metrics").at(key);
  return value.is_null() ? "undefined" : fmt::format("{:.4f}", value.get<double>());
}

std::string steps_text(const Json& summary) {
  const Json& step = summary.at("step_ms");
  const auto warm_up = step.at("warm_up_steps").get<long>();
  const auto measured = step.at("measured_steps").get<long>();
  return fmt::format(
      "step {:.2f} ms median, {:.2f} ms P95, {:.0f} samples/s, over {} steps after {} of warm-up{}",
      number(step, "median"), number(step, "p95"), number(summary, "samples_per_s"), measured,
      warm_up, warm_up < 20 ? " (half: there are fewer than 40)" : "");
}

Json seconds_json(const RunClock& clock) {
  return {{"total_s", clock.total_s()},
          {"start_s", clock.seconds(RunPart::start)},
          {"training_s", clock.seconds(RunPart::training)},
          {"evaluation_s", clock.seconds(RunPart::evaluation)},
          {"checkpoint_s", clock.seconds(RunPart::checkpoint)},
          {"finish_s", clock.seconds(RunPart::finish)}};
}

// What the ranks have together.
Json totals_json(const std::vector<RankFigures>& ranks, index_t num_steps) {
  std::uint64_t peak = 0, fewest = ~std::uint64_t{0}, most = 0, sent = 0;
  for (const RankFigures& rank : ranks) {
    peak = std::max(peak, rank.peak.total);
    fewest = std::min(fewest, rank.parameters);
    most = std::max(most, rank.parameters);
    sent += rank.bytes_sent;
  }
  return {{"peak_bytes", peak},
          {"parameters_per_rank", {{"min", fewest}, {"max", most}}},
          {"comm_bytes_per_step", sent / static_cast<std::uint64_t>(num_steps)}};
}

// "validation_loss", "validation_macro_f1", ...
Json validation_json(const Json& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics.items()) json["validation_" + name] = value;
  return json;
}

}  // namespace

Json summary_json(const RunReport& report) {
  const Trainer& trainer = report.trainer;
  const bool is_stopped = report.stopped != StopReason::none;
  Json json{{"plan", report.plan.name},
            {"state_hash", report.state.text()},
            {"loss_hash", trainer.loss_hash().text()},
            {"plan_hash", plan_fingerprint(report.plan)},
            {"steps", trainer.steps_done()},
            {"stopped", is_stopped ? Json(name_of(report.stopped)) : Json()},
            {"resumed_from_step", report.first_step},
            {"final_loss", trainer.last_loss()},
            {"step_ms", json_of(report.times)},
            {"samples_per_s", report.times.samples_per_second()}};
  mark_leak(report.plan.task, json);
  mark_skipped(report.data.skipped, json);
  const index_t steps_here = trainer.steps_done() - report.first_step;
  json.update(totals_json(report.ranks, std::max<index_t>(1, steps_here)));
  json.update(Json{{"layout", layout_json(report.plan)},
                   {"metrics", validation_json(report.metrics)},
                   {"test_split_uses", report.test_split_uses},
                   {"target", report.history.target_json(report.plan.task.target)},
                   {"all_parts", report.history.stamp()},
                   {"replicas", replicas_json(report.ranks)},
                   {"ranks", ranks_json(report.ranks)}});
  json.update(seconds_json(report.clock));
  json.update(Json{{"first_step_done_ms", report.first_step_done_ms},
                   {"checkpoints", report.checkpoints},
                   {"integrity", report.integrity},
                   {"stages", report.stages},
                   {"fingerprint", trainer.fingerprint()}});
  return json;
}

void print_summary(const Json& summary, const std::string& path, std::ostream& text) {
  if (summary.at("stopped").is_null()) {
    text << fmt::format("done: {} steps, final loss {:.4f}, validation accuracy {}, macro F1 {}\n",
                        summary.at("steps").get<long>(), number(summary, "final_loss"),
                        metric_text(summary, "validation_accuracy"),
                        metric_text(summary, "validation_macro_f1"));
  }
  if (summary.contains(leak_key)) text << "  " << summary.at(leak_key).get<std::string>() << "\n";
  const std::string skipped = skipped_text(summary);
  if (!skipped.empty()) text << "  " << skipped << "\n";
  const std::string target = target_text(summary.at("target"));
  if (!target.empty()) text << "  " << target << "\n";
  text
      << fmt::format(
             "  {}\n"
             "  {:.1f} s in all: start {:.1f}, training {:.1f}, evaluation {:.1f}, checkpoints "
             "{:.1f}, end {:.1f}\n"
             "  peak {:.1f} MiB on the largest rank; parameters per rank {} to {}; {:.2f} MiB sent "
             "a step by all ranks\n"
             "  state_hash {}\n  loss_hash  {}\n  {}\n",
             steps_text(summary), number(summary, "total_s"), number(summary, "start_s"),
             number(summary, "training_s"), number(summary, "evaluation_s"),
             number(summary, "checkpoint_s"), number(summary, "finish_s"),
             mib(summary, "peak_bytes"), summary.at("parameters_per_rank").at("min").get<long>(),
             summary.at("parameters_per_rank").at("max").get<long>(),
             mib(summary, "comm_bytes_per_step"), summary.at("state_hash").get<std::string>(),
             summary.at("loss_hash").get<std::string>(), path)
      << std::flush;
}

}  // namespace weft
