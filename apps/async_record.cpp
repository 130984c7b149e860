#include "apps/async_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/time_account.hpp"
#include "core/error.hpp"

namespace weft {

namespace {

index_t whole_number(const nlohmann::json& line, const char* key) {
  return static_cast<index_t>(line.at(key).get<double>());
}

}  // namespace

std::string async_objective(index_t max_staleness) {
  return fmt::format(
      "asynchronous updates, staleness at most {}: another optimization than the synchronous one; "
      "its result depends on who came when",
      max_staleness);
}

StepRecord update_record(const UpdateServer::Update& update, const StepResult& result,
                         double since_last_ms, double elapsed_s) {
  const GradientNote& note = update.note;
  const auto number = [](index_t value) { return static_cast<double>(value); };
  return {.step = result.step + 1,
          .epoch = result.epoch,
          .loss = result.loss,
          .lr = result.learning_rate,
          .grad_norm = result.gradient_norm,
          .step_ms = since_last_ms,
          .data_wait_ms = 0.0,
          .num_real = result.num_real,
          .more = {{"accuracy", result.accuracy},
                   {"elapsed_s", elapsed_s},
                   {"worker", number(update.worker)},
                   {"batch", number(note.task.batch)},
                   {"based_on", number(note.task.version)},
                   {"staleness", number(update.staleness)},
                   {"compute_ms", ms_of(note.compute_ns)},
                   {"wait_ms", ms_of(note.wait_ns)}}};
}

std::vector<RecordedUpdate> read_updates(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), ExitCode::data,
          fmt::format("{}: expected the updates of an asynchronous run; found no such file", path));
  std::vector<RecordedUpdate> updates;
  std::string line;
  while (std::getline(file, line)) {
    const std::string where = fmt::format("{}:{}", path, updates.size() + 1);
    try {
      const auto json = nlohmann::json::parse(line);
      updates.push_back({.worker = whole_number(json, "worker"),
                         .task = {.batch = whole_number(json, "batch"),
                                  .version = whole_number(json, "based_on")},
                         .loss_bits = json.at("loss_bits").get<std::string>()});
      const auto version = static_cast<index_t>(updates.size()) - 1;
      const WorkerTask& task = updates.back().task;
      require(whole_number(json, "step") == version + 1 && task.batch >= 0 && task.version >= 0 &&
                  task.version <= version,
              ExitCode::data,
              fmt::format("{}: expected update {} on values of an earlier one; found {}", where,
                          version + 1, line));
    } catch (const nlohmann::json::exception&) {
      throw Error(ExitCode::data,
                  fmt::format("{}: expected an update of an asynchronous run (step, worker, batch, "
                              "based_on, loss_bits); found {}",
                              where, line.substr(0, 80)));
    }
  }
  require(!updates.empty(), ExitCode::data, fmt::format("{}: holds no update", path));
  return updates;
}

bool is_async_run(const std::string& run_folder) {
  std::ifstream file(run_folder + "/run.jsonl");
  std::string first;
  std::getline(file, first);
  const auto json = nlohmann::json::parse(first, nullptr, false);
  return json.is_object() && json.contains("staleness");
}

void AsyncRecord::add(const UpdateServer::Update& update) {
  const auto staleness = static_cast<std::size_t>(update.staleness);
  counts_.resize(std::max(counts_.size(), staleness + 1));
  ++counts_[staleness];
  Worker& worker = workers_[static_cast<std::size_t>(update.worker)];
  ++worker.updates;
  worker.compute_ms += ms_of(update.note.compute_ns);
  worker.wait_ms += ms_of(update.note.wait_ns);
}

index_t AsyncRecord::num_updates() const {
  index_t sum = 0;
  for (const index_t count : counts_) sum += count;
  return sum;
}

double AsyncRecord::mean_staleness() const {
  double sum = 0.0;
  for (std::size_t staleness = 0; staleness < counts_.size(); ++staleness)
    sum += static_cast<double>(staleness) * static_cast<double>(counts_[staleness]);
  return sum / static_cast<double>(std::max<index_t>(1, num_updates()));
}

nlohmann::ordered_json AsyncRecord::json() const {
  using Json = nlohmann::ordered_json;
  Json workers = Json::array();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    const auto n = static_cast<double>(std::max<index_t>(1, worker.updates));
    workers.push_back({{"worker", i},
                       {"updates", worker.updates},
                       {"compute_ms", worker.compute_ms / n},
                       {"wait_ms", worker.wait_ms / n}});
  }
  return {{"max_staleness", max_staleness_},
          {"updates", num_updates()},
          {"staleness",
           {{"mean", mean_staleness()}, {"largest", largest_staleness()}, {"updates", counts_}}},
          {"workers", std::move(workers)}};
}

}  // namespace weft
