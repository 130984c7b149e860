#include "apps/run_summary.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/run_history.hpp"

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

}  // namespace

void print_summary(const Json& summary, const std::string& path, std::ostream& text) {
  if (summary.at("stopped").is_null()) {
    text << fmt::format("done: {} steps, final loss {:.4f}, validation accuracy {}, macro F1 {}\n",
                        summary.at("steps").get<long>(), number(summary, "final_loss"),
                        metric_text(summary, "validation_accuracy"),
                        metric_text(summary, "validation_macro_f1"));
  }
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
