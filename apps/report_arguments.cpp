#include "apps/report_arguments.hpp"

namespace weft {

void add_ideal(CLI::App& app, IdealOptions& options) {
  CLI::App* ideal = app.add_subcommand(
      "ideal",
      "the idealized model of a training step: computing / N + fixed + communication, a pipeline's "
      "bubble, the wait for the slowest rank; or what of it explains a study. Runs nothing");
  CLI::Option* study =
      ideal
          ->add_option("--study", options.study,
                       "fit the model to the standard output of weft layouts --json, and show "
                       "predicted beside measured")
          ->type_name("FILE");
  IdealModel& model = options.model;
  const auto add = [&](const char* name, auto& value, const char* what) {
    return ideal->add_option(name, value, what)->capture_default_str()->excludes(study);
  };
  add("--ranks", options.ranks, "numbers N of devices, apart by commas; 1 is always shown")
      ->delimiter(',');
  add("--compute", model.compute_ms, "ms of forward and backward on one device: shared out");
  add("--fixed", model.fixed_ms, "ms of data wait and update: the same on each device");
  add("--communication", model.communication_ms, "ms of communication, from two devices on");
  add("--hidden", model.hidden_ms, "ms of it that computing hides");
  add("--split", model.split_ms, "ms that a part of the computing takes longer than its share");
  add("--batch", model.batch, "samples of a step on one device");
  add("--stages", model.stages, "of a pipeline on the N devices");
  add("--microbatches", model.microbatches, "that run through it in a step");
  add("--scaling", options.scaling,
      "strong: the global batch is fixed; weak: that of each replica is")
      ->type_name("strong|weak");
  ideal
      ->add_option("--local", options.local_ms,
                   "ms that each rank computes, apart by commas: how long each waits for the "
                   "slowest: 40,41,42,65")
      ->delimiter(',');
  ideal
      ->add_option("--svg", options.svg,
                   "a plot, too, in this file (*.svg), which is replaced where it exists")
      ->type_name("FILE");
  ideal->add_flag("--json", options.json, "one JSON object on the last line of standard output");
}

void add_report(CLI::App& app, ReportOptions& options) {
  CLI::App* report = app.add_subcommand(
      "report",
      "one page of HTML, whole in itself, out of what runs recorded: curves, step times, where "
      "time and memory go, time to a target over seeds, profiles, pipelines, plan, versions, uses "
      "of the test part, sliders of the idealized model");
  report->add_option("RUN", options.runs,
                     "run folders; nothing is written there. A trace.json in one is shown, too");
  report
      ->add_option("--profile", options.profiles,
                   "a profile, too: the standard output of weft profile --json; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  report
      ->add_option("--trace", options.traces,
                   "a step of a trace as a pipeline's grid: FILE.json of weft profile --trace; may "
                   "be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  report
      ->add_option("--trace-step", options.trace_step,
                   "which step of the traces (default: one that took the median time)")
      ->type_name("STEP");
  report
      ->add_option("--study", options.study,
                   "a study's scaling, too: the standard output of weft layouts --json")
      ->type_name("FILE");
  CLI::Option* html =
      report
          ->add_option("--html", options.html,
                       "the page's file (*.html), which is replaced where it exists (default: "
                       "RUN.html, of several runs report.html beside the first; without a run "
                       "beside the profile)")
          ->type_name("FILE");
  report
      ->add_flag("--markdown", options.markdown,
                 "as Markdown on standard output: all but the pictures")
      ->excludes(html);
}

}  // namespace weft
