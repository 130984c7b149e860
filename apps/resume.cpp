#include "apps/resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ostream>
#include <utility>

#include "apps/agreement.hpp"
#include "core/drill_point.hpp"
#include "io/checkpoint/state_loader.hpp"
#include "io/plan_file.hpp"
#include "io/safetensors_exchange.hpp"

namespace weft {

namespace {

// What a model is, which samples it is asked about, and whose state lies beside its values.
bool decides_evaluation(const std::string& key) {
  return key.starts_with("model.") || key == "optimizer.kind" ||
         (key.starts_with("task.") && key != "task.augment");
}

}  // namespace

std::optional<index_t> parse_resume(const std::string& text) {
  if (text.empty() || text == "auto") return std::nullopt;
  index_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  require(error == std::errc() && end == text.data() + text.size() && step > 0, ExitCode::usage,
          fmt::format("--resume: expected auto or the number of a step, found \"{}\"", text));
  return step;
}

Resume::Resume(Communicator& world, std::string folder, const ResumeOptions& options,
               const Plan& plan, const RunIdentity& identity, std::ostream& text)
    : world_(world),
      folder_(std::move(folder)),
      options_(options),
      step_(parse_resume(options.from)),
      plan_(plan),
      identity_(identity),
      text_(text) {}

void Resume::skip(const std::string& path, const std::string& fault) {
  if (step_ || options_.strict) throw Error(ExitCode::data, fault);
  text_ << fmt::format(
               "weft: WARNING: the checkpoint {} is damaged and is passed over for an older one{}: "
               "{}\n",
               path, options_.to_evaluate ? "" : " (--strict would stop here)", fault)
        << std::flush;
}

void Resume::check_plan(const Checkpoint& checkpoint) {
  const RunIdentity& saved = checkpoint.index.identity;
  const Plan before = parse_plan(saved.plan, checkpoint.path + "'s plan");
  std::string changes;
  for (const PlanDifference& one : plan_differences(before, plan_)) {
    if (one.changes_training && (!options_.to_evaluate || decides_evaluation(one.key)))
      changes += fmt::format("\n  {}: {} when it was saved, {} now", one.key, one.before, one.now);
  }
  if (saved.data != imported_identity && saved.data != identity_.data)
    changes += fmt::format("\n  the data set's bytes: {} when it was saved, {} now", saved.data,
                           identity_.data);
  require(
      options_.to_evaluate || checkpoint.manifest.step <= plan_.num_steps(), ExitCode::usage,
      fmt::format("{} is of step {}, but the plan ends at step {}: raise run.steps or run.epochs, "
                  "or resume from an earlier step",
                  checkpoint.path, checkpoint.manifest.step, plan_.num_steps()));
  if (!changes.empty()) {
    require(options_.allow_plan_change, ExitCode::usage,
            fmt::format("{} belongs to another plan:{}\n{} with the plan that wrote it, or go "
                        "on with this one by --allow-plan-change: the result is then neither "
                        "plan's",
                        checkpoint.path, changes, options_.to_evaluate ? "Evaluate" : "Resume"));
    text_ << fmt::format("weft: WARNING: going on with another plan than {}'s:{}\n",
                         checkpoint.path, changes);
  }
  if (saved.numerics != imported_identity && saved.numerics != identity_.numerics)
    text_ << fmt::format(
        "weft: WARNING: {} was written by another build, libraries or CPU: equal bits with the "
        "undisturbed run are not promised.\n  then: {}\n  now:  {}\n",
        checkpoint.path, saved.numerics, identity_.numerics);
  text_ << std::flush;
}

bool Resume::open_next(std::string& path, CheckpointTexts& texts) {
  while (!candidates_.empty()) {
    path = candidates_.back().path;
    candidates_.pop_back();
    try {
      texts = read_checkpoint_texts(path);
      check_plan(make_checkpoint(path, texts));
      return true;
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      skip(path, error.what());
    }
  }
  return false;
}

std::optional<Checkpoint> Resume::next_candidate() {
  std::string path;
  CheckpointTexts texts;
  agree(world_, "open checkpoint", [&] {
    if (is_first() && !open_next(path, texts)) path.clear();
  });
  path = world_.broadcast_string("checkpoint.path", 0, path);
  if (path.empty()) return std::nullopt;
  const std::string manifest = world_.broadcast_string(
      "checkpoint.manifest", 0, is_first() ? encode(texts.manifest) : std::string());
  texts.index = world_.broadcast_string("checkpoint.index", 0, texts.index);
  texts.manifest = decode_manifest(manifest, path + "/" + manifest_name);
  return make_checkpoint(path, std::move(texts));
}

void Resume::load(Trainer& trainer, const Checkpoint& checkpoint) {
  Mesh& mesh = trainer.mesh();
  const std::vector<Communicator*> axes{&mesh.axis("dp"), &mesh.axis("tp"), &mesh.axis("pp")};
  std::string is_held;
  agree(world_, "compare models", [&] { is_held = find_held(checkpoint, trainer.state()); });
  const std::string unknown = find_unknown(checkpoint, is_held, axes);
  if (!unknown.empty()) throw AgreedError(ExitCode::usage, unknown);

  drill::reach("load");
  LoadResult result;
  agree(world_, "load checkpoint",
        [&] { result = load_state(checkpoint, trainer.state(), world_.rank(), world_.size()); });
  const std::string fault = compare_fingerprints(checkpoint, std::move(result.sums), axes);
  if (!fault.empty()) throw AgreedError(ExitCode::data, fault);
  trainer.take_loaded_state();
  drill::reach("load.done");
}

void Resume::set_newer_aside(index_t step) {
  for (const CheckpointPlace& place : list_checkpoints(folder_)) {
    if (place.step <= step) continue;
    const std::string aside = set_aside(folder_, place);
    text_ << fmt::format("weft: {} is of a later step than the one to go on from: now {}\n",
                         place.path, aside)
          << std::flush;
  }
}

std::optional<Checkpoint> Resume::load_newest(Trainer& trainer) {
  while (auto checkpoint = next_candidate()) {
    try {
      load(trainer, *checkpoint);
      return checkpoint;
    } catch (const AgreedError& error) {
      if (error.code() != ExitCode::data) throw;
      agree(world_, "skip checkpoint", [&] {
        if (is_first()) skip(checkpoint->path, error.what());
      });
    }
  }
  return std::nullopt;
}

Checkpoint Resume::read(Trainer& trainer, std::vector<CheckpointPlace> candidates) {
  candidates_ = std::move(candidates);
  if (auto checkpoint = load_newest(trainer)) return std::move(*checkpoint);
  throw AgreedError(ExitCode::data,
                    fmt::format("{}: none of its checkpoints is valid (see above)", folder_));
}

index_t Resume::restore(Trainer& trainer) {
  std::size_t num_found = 0;
  agree(world_, "list checkpoints", [&] {
    if (!is_first()) return;
    candidates_ = list_checkpoints(folder_);
    std::reverse(candidates_.begin(), candidates_.end());
    num_found = candidates_.size();
    if (!step_) return;
    std::string steps;
    for (const CheckpointPlace& place : candidates_) steps += fmt::format(" {}", place.step);
    std::erase_if(candidates_, [&](const CheckpointPlace& place) { return place.step != *step_; });
    require(!candidates_.empty(), ExitCode::data,
            fmt::format("--resume {}: {} has no checkpoint of that step; it has{}", *step_, folder_,
                        steps.empty() ? " none" : steps));
  });
  if (const auto checkpoint = load_newest(trainer)) {
    agree(world_, "set aside", [&] {
      if (is_first()) set_newer_aside(checkpoint->manifest.step);
    });
    trainer.start_at(checkpoint->index.progress);
    if (is_first())
      text_ << fmt::format("resumed from {} ({}), state {}\n", checkpoint->path,
                           checkpoint->manifest.layout, checkpoint->manifest.state_fingerprint)
            << std::flush;
    return checkpoint->manifest.step;
  }
  agree(world_, "no checkpoint", [&] {
    require(
        num_found == 0, ExitCode::data,
        fmt::format("none of the {} checkpoints in {} is valid (see above). To begin anew, name "
                    "another folder with --run",
                    num_found, folder_));
  });
  trainer.start_at({});
  if (is_first())
    text_ << fmt::format("no checkpoint in {}: starting at the first step\n", folder_)
          << std::flush;
  return 0;
}

}  // namespace weft
