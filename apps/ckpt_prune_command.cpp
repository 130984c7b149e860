#include "apps/ckpt_prune_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <utility>

#include "apps/ckpt_output.hpp"
#include "apps/kept_checkpoints.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/pins.hpp"
#include "io/checkpoint/verify.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

// What becomes of one checkpoint, and why.
struct Fate {
  CheckpointPlace place;
  enum class Kind { newest, damaged, pinned, every, best, goes } kind;
  std::string fault = {};  // of a damaged one
};

class Pruning {
 public:
  Pruning(const CkptPruneOptions& options, std::ostream& text)
      : options_(options),
        folder_(checkpoints_of(options.path)),
        text_(text),
        line_(text, isatty(STDERR_FILENO) != 0) {
    require(options.keep >= 1, ExitCode::usage,
            fmt::format("--keep: expected 1 or more, found {}: the newest sound checkpoint always "
                        "stays",
                        options.keep));
    require(!options.every || *options.every >= 1, ExitCode::usage,
            fmt::format("--every: expected 1 or more steps, found {}", options.every.value_or(0)));
  }

  int run(std::ostream& out) {
    look();
    if (!options_.dry_run) {
      take_lease();
      look();  // a run may have ended meanwhile
    }
    decide();
    if (!options_.dry_run) {
      if (!options_.pins.empty()) pin_steps(folder_, options_.pins);
      sweep(folder_);
    }
    for (const Fate& fate : fates_) carry_out(fate);
    const bool is_damaged = std::any_of(fates_.begin(), fates_.end(), [](const Fate& fate) {
      return fate.kind == Fate::Kind::damaged;
    });
    if (num_sound_ < options_.keep)
      line_.keep(fmt::format("{} has {} sound checkpoints and {} are to stay: nothing to remove",
                             folder_, num_sound_, options_.keep));
    finish_ckpt(options_.json, json(), text_, out);
    return static_cast<int>(is_damaged ? ExitCode::data : ExitCode::done);
  }

 private:
  void take_lease() {
    lease_ = std::make_unique<Lease>(folder_);
    require(lease_->is_locked(), ExitCode::failed,
            lease_->warning() +
                "; nothing was removed: end all runs that write there, then remove by hand what "
                "--dry-run names");
    if (!lease_->warning().empty()) line_.keep("WARNING: " + lease_->warning());
  }

  // Changes nothing: the folder may be anyone's.
  void look() {
    places_ = list_checkpoints(folder_);
    require(!places_.empty(), ExitCode::data,
            folder_ +
                ": expected a run folder with checkpoints (step-*), found none; nothing was "
                "changed");
    for (const index_t step : options_.pins) {
      std::string steps;
      for (const CheckpointPlace& place : places_) steps += fmt::format(" {}", place.step);
      require(std::any_of(places_.begin(), places_.end(),
                          [&](const CheckpointPlace& place) { return place.step == step; }),
              ExitCode::usage,
              fmt::format("--pin {}: {} has no checkpoint of that step; it has{}", step, folder_,
                          steps));
    }
    pinned_ = pinned_steps(folder_);
    pinned_.insert(options_.pins.begin(), options_.pins.end());
    retention_ = recorded_retention(folder_).value_or(Retention{});
    is_every_the_plans_ = !options_.every && retention_.keep_every > 0;
    if (options_.every) retention_.keep_every = *options_.every;
  }

  void decide() {
    using Kind = Fate::Kind;
    const std::set<index_t> best = best_steps(
        retention_, places_, [&](const CheckpointPlace& place) { return fault_of(place).empty(); });
    for (const CheckpointPlace& place : places_) {
      if (num_sound_ < options_.keep) {
        const std::string& fault = fault_of(place);
        if (fault.empty()) ++num_sound_;
        fates_.push_back({place, fault.empty() ? Kind::newest : Kind::damaged, fault});
      } else if (pinned_.contains(place.step)) {
        fates_.push_back({place, Kind::pinned});
      } else if (retention_.keeps_step(place.step)) {
        fates_.push_back({place, Kind::every});
      } else if (best.contains(place.step)) {
        fates_.push_back({place, Kind::best});
      } else if (faults_.contains(place.step)) {
        // One of the best, or it had not been read.
        fates_.push_back({place, Kind::damaged, fault_of(place)});
      } else {
        fates_.push_back({place, Kind::goes});
      }
    }
  }

  // Empty where every byte is as it was written. Each is read once.
  const std::string& fault_of(const CheckpointPlace& place) {
    const auto known = faults_.find(place.step);
    return known != faults_.end() ? known->second
                                  : faults_.emplace(place.step, find_fault(place)).first->second;
  }

  std::string find_fault(const CheckpointPlace& place) {
    try {
      const std::string what = fmt::format("step {}: verified", place.step);
      const VerifyReport report =
          verify_checkpoint(open_checkpoint(place.path), show_bytes(line_, what.c_str()));
      return report.num_faults == 0 ? "" : report.faults.front();
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      return error.what();
    }
  }

  void carry_out(const Fate& fate) {
    const std::string step = fmt::format("step {}", fate.place.step);
    switch (fate.kind) {
      case Fate::Kind::newest:
        return line_.keep(step + ": stays, sound");
      case Fate::Kind::damaged:
        return line_.keep(step + ": stays, DAMAGED: " + fate.fault);
      case Fate::Kind::pinned:
        return line_.keep(step + ": stays, pinned");
      case Fate::Kind::every:
        return line_.keep(fmt::format("{}: stays, one of every {}{}", step, retention_.keep_every,
                                      is_every_the_plans_ ? " (the plan's keep_every)" : ""));
      case Fate::Kind::best:
        return line_.keep(step + ": stays, best by its evaluation (the plan's keep_best), sound");
      case Fate::Kind::goes:
        break;
    }
    if (options_.dry_run) return line_.keep(step + ": would be removed");
    remove_checkpoint(folder_, fate.place);
    line_.keep(step + ": removed");
  }

  Json json() const {
    static constexpr const char* words[] = {"sound", "damaged", "pinned", "every", "best", ""};
    Json kept = Json::array(), removed = Json::array();
    for (const Fate& fate : fates_) {
      if (fate.kind == Fate::Kind::goes) {
        removed.push_back(fate.place.step);
        continue;
      }
      Json one{{"step", fate.place.step}, {"because", words[static_cast<std::size_t>(fate.kind)]}};
      if (!fate.fault.empty()) one["fault"] = fate.fault;
      kept.push_back(one);
    }
    return {
        {"folder", folder_}, {"dry_run", options_.dry_run}, {"kept", kept}, {"removed", removed}};
  }

  const CkptPruneOptions& options_;
  std::string folder_;
  std::ostream& text_;
  ProgressLine line_;
  std::unique_ptr<Lease> lease_;
  std::vector<CheckpointPlace> places_;  // newest first
  std::set<index_t> pinned_;
  Retention retention_;                    // the plan's, but for what the options say
  bool is_every_the_plans_ = false;        // retention_.keep_every
  std::map<index_t, std::string> faults_;  // of the steps that were read
  std::vector<Fate> fates_;                // of places_
  index_t num_sound_ = 0;
};

}  // namespace

int ckpt_prune(const CkptPruneOptions& options, std::ostream& text, std::ostream& out) {
  return Pruning(options, text).run(out);
}

}  // namespace weft
