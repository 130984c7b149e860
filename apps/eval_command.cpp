#include "apps/eval_command.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/agreement.hpp"
#include "apps/assemble.hpp"
#include "apps/checkpoint_choice.hpp"
#include "apps/layout_json.hpp"
#include "apps/leak_mark.hpp"
#include "apps/metrics_json.hpp"
#include "apps/resume.hpp"
#include "apps/trainer.hpp"
#include "core/kokkos_session.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/file.hpp"
#include "io/sample_slices.hpp"
#include "io/test_uses.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

EvalSplit parse_split(const std::string& text) {
  for (const EvalSplit split : {EvalSplit::validation, EvalSplit::test}) {
    if (text == name_of(split)) return split;
  }
  throw Error(ExitCode::usage,
              fmt::format("--split: expected validation or test, found \"{}\"", text));
}

// Puts the number of uses into the summary of a run that has ended; one that goes on counts by
// itself when it ends. Returns whether the summary now shows it.
bool show_in_summary(const std::string& run_folder, index_t num_uses) {
  const std::string path = run_folder + "/summary.json";
  std::ifstream file(path);
  if (!file) return false;
  try {
    const Lease lease(run_folder + "/checkpoints");
    Json summary = Json::parse(file, nullptr, false);
    if (!summary.is_object()) return false;
    summary["test_split_uses"] = num_uses;
    write_file(path, summary.dump(2) + "\n");
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;  // else another process holds the run
    return false;
  }
}

class EvalJob {
 public:
  EvalJob(const EvalOptions& options, Session& session, std::ostream& text, std::ostream& out)
      : options_(options), text_(text), out_(out), session_(session), start_(session) {}

  void run() {
    agree(start_.world(), "arguments", [&] { check_arguments(); });
    require_equal(start_.world(), "--slices", fmt::format("{}", fmt::join(options_.slices, ",")),
                  "Start all ranks with the same arguments");
    plan_ = start_.read_plan(options_.inputs, session_.size());
    const std::unique_ptr<Transport> transport = start_.open_transport(plan_);
    // Buckets are for training, and to make them the whole training part is read.
    Plan judged = plan_;
    judged.task.length_buckets.clear();
    data_ = start_.open_data(options_.inputs, judged);
    agree(start_.world(), "slices", [&] { cut_slices(); });
    const KokkosSession kokkos(static_cast<int>(plan_.layout.threads));
    Trainer trainer(plan_, data_, *transport, Trainer::Start::restored);
    const Checkpoint checkpoint = load(trainer);
    const std::optional<double> threshold = threshold_of(trainer);
    std::vector<Prediction> predictions;
    const Evaluation evaluation =
        trainer.evaluate(split_, options_.slices.empty() ? nullptr : &predictions);
    agree(start_.world(), "evaluation", [&] {
      if (is_first()) say(checkpoint, evaluation, predictions, threshold);
    });
  }

 private:
  bool is_first() const { return session_.rank() == 0; }

  void check_arguments() {
    split_ = parse_split(options_.split);
    require(hdf5::is_built_in(), ExitCode::usage,
            "this build of weft has no HDF5 and so no checkpoints: build with -DWEFT_HDF5=ON");
    if (is_first()) choice_ = choose_checkpoint(options_.checkpoint);
  }

  void cut_slices() {
    const Split& split = data_.split;
    const auto& judged = split_ == EvalSplit::validation ? split.validation : split.test;
    require(!judged.empty(), ExitCode::usage,
            fmt::format("--split {0}: the plan has no samples there (task.split.{0} = 0): name the "
                        "other split, or judge with a plan that keeps some",
                        name_of(split_)));
    if (is_first())
      slices_ = make_slices(*data_.samples, judged, split.train, options_.slices);
  }

  Checkpoint load(Trainer& trainer) {
    RunIdentity identity;
    if (is_first()) {
      identity.data = data_.samples->fingerprint();
      identity.numerics = trainer.fingerprint();
    }
    const ResumeOptions options{.from = "auto",
                                .strict = choice_.candidates.size() == 1,
                                .allow_plan_change = options_.allow_plan_change,
                                .to_evaluate = true};
    return Resume(start_.world(), options_.checkpoint, options, plan_, identity, text_)
        .read(trainer, choice_.candidates);
  }

  // Collective. A test split's decision is made at the threshold that validation chose.
  std::optional<double> threshold_of(Trainer& trainer) {
    if (num_classes_of(plan_) != 2) return std::nullopt;
    return best_threshold(trainer.evaluate(EvalSplit::validation));
  }

  // Rank 0. Nothing is shown before a use of the test split is on record.
  void say(const Checkpoint& checkpoint, const Evaluation& evaluation,
           const std::vector<Prediction>& predictions, const std::optional<double>& threshold) {
    const auto& names = data_.samples->class_names();
    const index_t num_classes = num_classes_of(plan_);
    std::vector<SliceReport> slices;
    for (const SampleSlices& one : slices_)
      slices.push_back(judge_slices(one, predictions, num_classes, threshold));
    Json json{{"plan", plan_.name},
              {"split", name_of(split_)},
              {"checkpoint", checkpoint.path},
              {"step", checkpoint.manifest.step},
              {"state_fingerprint", checkpoint.manifest.state_fingerprint},
              {"samples", evaluation.samples},
              {"metrics", metrics_json(evaluation, names, threshold)},
              {"slices", slices_json(slices, num_classes)},
              {"layout", layout_json(plan_)}};
    mark_leak(plan_.task, json);
    mark_skipped(data_.skipped, json);
    std::string note;
    if (split_ == EvalSplit::test) note = record_use(checkpoint, json["metrics"]);
    json["test_split_uses"] =
        choice_.run_folder.empty() ? Json(nullptr) : Json(count_test_uses(choice_.run_folder));
    text_ << fmt::format("{}, step {}: {} split, {} samples\n", checkpoint.path,
                         checkpoint.manifest.step, name_of(split_), evaluation.samples);
    say_leak(plan_.task, text_);
    say_skipped(data_.skipped, text_);
    text_ << metrics_text(evaluation, names, threshold) << slices_text(slices, num_classes) << note
          << std::flush;
    if (options_.json) out_ << json.dump() << std::endl;
  }

  // Returns what is said of it.
  std::string record_use(const Checkpoint& checkpoint, const Json& metrics) const {
    const std::string& run = choice_.run_folder;
    if (run.empty())
      return "  the checkpoint lies in no run folder: this use of the test split is on no record\n";
    Json use{{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
             {"checkpoint", checkpoint.path},
             {"step", checkpoint.manifest.step},
             {"state_fingerprint", checkpoint.manifest.state_fingerprint},
             {"accuracy", metrics.at("accuracy")},
             {"macro_f1", metrics.at("macro_f1")}};
    mark_leak(plan_.task, use);
    for (const char* of_two_classes : {"roc_auc", "pr_auc"})
      if (metrics.contains(of_two_classes)) use[of_two_classes] = metrics.at(of_two_classes);
    add_test_use(run, use.dump());
    const index_t num_uses = count_test_uses(run);
    const bool is_shown = show_in_summary(run, num_uses);
    return fmt::format("  use {} of the test split by this run, recorded in {}/test_uses.jsonl{}\n",
                       num_uses, run,
                       is_shown ? " and summary.json" : "; the run's next summary will show it");
  }

  EvalOptions options_;
  std::ostream& text_;
  std::ostream& out_;
  Session& session_;
  RunStart start_;
  EvalSplit split_ = EvalSplit::validation;
  CheckpointChoice choice_;  // rank 0
  Plan plan_;
  TrainingData data_;
  std::vector<SampleSlices> slices_;  // rank 0: of the split's samples
};

}  // namespace

int evaluate_checkpoint(const EvalOptions& options, Session& session, std::ostream& text,
                        std::ostream& out) {
  EvalJob(options, session, text, out).run();
  return 0;
}

}  // namespace weft
