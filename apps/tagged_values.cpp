#include "apps/tagged_values.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "apps/leak_mark.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

// What a line of eval.jsonl says of the evaluation itself.
constexpr std::array<std::string_view, 6> no_metrics = {"step",   "samples",    "ms",
                                                        "epochs", "training_s", "elapsed_s"};

bool is_metric(std::string_view name) {
  return std::find(no_metrics.begin(), no_metrics.end(), name) == no_metrics.end();
}

std::string class_name(const Json& one) {
  const Json& name = one.at("class");
  return name.is_string() ? name.get<std::string>() : name.dump();
}

}  // namespace

std::vector<TaggedValue> tagged(const StepRecord& record) {
  std::vector<TaggedValue> values{{"train/loss", record.loss},
                                  {"train/lr", record.lr},
                                  {"train/grad_norm", record.grad_norm},
                                  {"train/samples", static_cast<double>(record.num_real)},
                                  {"time/step_ms", record.step_ms},
                                  {"time/data_wait_ms", record.data_wait_ms}};
  for (const auto& [name, value] : record.more) {
    const bool is_time = name.ends_with("_s") || name.ends_with("_ms");
    values.push_back({(is_time ? "time/" : "train/") + name, value});
  }
  return values;
}

std::vector<TaggedValue> tagged(const Json& evaluation) {
  const std::string split = evaluation.at("split");
  std::vector<TaggedValue> values;
  for (const auto& [name, value] : evaluation.items()) {
    if (name == leak_key)
      values.push_back({split + "/" + name, 1.0});
    else if (value.is_number() && is_metric(name))
      values.push_back({split + "/" + name, value.get<double>()});
  }
  for (const Json& one : evaluation.value("per_class", Json::array())) {
    for (const auto& [name, value] : one.items()) {
      if (value.is_number() && name != "support" && name != "class")
        values.push_back({split + "_" + name + "/" + class_name(one), value.get<double>()});
    }
  }
  return values;
}

}  // namespace weft
