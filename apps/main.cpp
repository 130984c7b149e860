// The program: reads the command line, hands over to a command, and turns every error into one
// message and an exit code.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/agreement.hpp"
#include "apps/async_arguments.hpp"
#include "apps/bench_gemm_command.hpp"
#include "apps/check_command.hpp"
#include "apps/check_prose.hpp"
#include "apps/check_run.hpp"
#include "apps/ckpt_arguments.hpp"
#include "apps/data_command.hpp"
#include "apps/drill_arguments.hpp"
#include "apps/eval_command.hpp"
#include "apps/layouts_command.hpp"
#include "apps/profile_command.hpp"
#include "apps/report_arguments.hpp"
#include "apps/train_arguments.hpp"
#include "apps/train_command.hpp"
#include "apps/usage_fault.hpp"
#include "apps/version_command.hpp"
#include "io/plan_file.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 failed, 2 bad usage or plan, 3 stopped on purpose (requeue me),\n"
    "4 a peer died or a collective timed out, 5 data or checkpoint missing,\n"
    "truncated or altered.\n";

constexpr const char* first_steps =
    "First steps:\n"
    "  weft data make cifar10 data/cifar10            synthetic images in CIFAR-10's format\n"
    "  weft check apps/plans/cifar10-mlp.toml         what the plan means, before anything runs\n"
    "  mpirun -n 4 weft train apps/plans/cifar10-mlp.toml --data data/cifar10 \\\n"
    "      --set layout.tp=2 --set layout.dp=2\n"
    "  mpirun -n 4 weft layouts apps/plans/cifar10-mlp.toml --data data/cifar10 \\\n"
    "      --grid \"tp=1,2,4 dp=1,2,4\" --steps 50\n"
    "The same plan gives the same bits on every layout: compare state_hash.\n\n";

// In one piece: what a launcher or another rank writes at that moment must not come in between.
void say(const std::string& text) { std::cerr << "weft: " + text + "\n" << std::flush; }

// Which command was chosen, and its arguments.
struct CommandLine {
  RunInputs inputs;
  TrainOptions train;
  AsyncOptions async;
  TraceOptions trace;
  ResumeOptions resume;
  LayoutsOptions layouts;
  EvalOptions eval;
  ProfileOptions profile;
  DrillOptions drill;
  DataMakeOptions make;
  CkptArguments ckpt;
  IdealOptions ideal;
  ReportOptions report;
  std::string info_folder;
  std::string info_dataset;
  std::vector<std::string> data_slices;
  std::string check_run;
  bool prose = false;
  std::optional<index_t> num_ranks;
  bool json = false;
};

void add_plan_arguments(CLI::App& command, CommandLine& line) {
  command.add_option("PLAN", line.inputs.plan_path, "the plan, a TOML file")->required();
  command
      .add_option("--set", line.inputs.overrides,
                  "KEY=VALUE: overrides a key of the plan; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all();
  command.add_flag("--json", line.json, "one JSON object on the last line of standard output");
}

void add_data_argument(CLI::App& command, CommandLine& line) {
  command.add_option("--data", line.inputs.data_folder,
                     "data folder; else task.path of the plan, else WEFT_DATA");
}

void add_train(CLI::App& app, CommandLine& line) {
  CLI::App* train = app.add_subcommand("train", "run the job; started by mpirun or srun, or alone");
  add_plan_arguments(*train, line);
  add_data_argument(*train, line);
  train->add_option(
      "--run", line.train.run_folder,
      "run folder (default runs/<plan>-<time>); must not hold a run, unless --resume");
  train
      ->add_option("--resume", line.resume.from,
                   "go on from a checkpoint of the run folder: auto (the newest valid one, or the "
                   "beginning), or a step")
      ->type_name("auto|STEP");
  add_records(*train, line.train, line.trace);
  train->add_flag("--strict", line.resume.strict,
                  "with --resume auto: stop at a damaged checkpoint, instead of an older one");
  train->add_flag("--allow-plan-change", line.resume.allow_plan_change,
                  "with --resume: go on although the plan is not the one that was saved");
}

void add_async(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "async",
      "an experiment: the plan's dp replicas do not wait for each other, which is another "
      "optimization than `weft train`; staleness is bounded and recorded; started by mpirun or srun");
  add_plan_arguments(*command, line);
  add_data_argument(*command, line);
  add_async_arguments(*command, line.async);
}

void add_slices(CLI::App& app, std::vector<std::string>& slices, const std::string& what) {
  app.add_option("--slices", slices,
                 what + ": class; time or time=N (text: position): in equal parts; column:NAME: by a "
                        "category or quartiles of the training part; repeated, or with commas")
      ->delimiter(',')
      ->take_all()
      ->type_name("WHAT");
}

void add_eval(CLI::App& app, CommandLine& line) {
  CLI::App* eval = app.add_subcommand(
      "eval", "judge a checkpoint on a split, on any layout; started by mpirun or srun, or alone");
  add_plan_arguments(*eval, line);
  add_data_argument(*eval, line);
  eval->add_option("--checkpoint", line.eval.checkpoint,
                   "RUN/checkpoints/step-*, or RUN: its newest valid one")
      ->required();
  eval->add_option("--split", line.eval.split,
                   "validation, or test: every use of it is recorded in the run folder")
      ->required()
      ->type_name("validation|test");
  add_slices(*eval, line.eval.slices, "figures of slices of the split, too");
  eval->add_flag("--allow-plan-change", line.eval.allow_plan_change,
                 "judge although task, model or data are not those that were saved");
}

void add_profile(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "profile",
      "where each rank's steps go, who waits for whom and why, memory at the peak; started by mpirun "
      "or srun, or alone");
  add_plan_arguments(*command, line);
  add_data_argument(*command, line);
  ProfileOptions& options = line.profile;
  command->add_option("--steps", options.steps, "measured")->capture_default_str();
  command->add_option("--warmup", options.warm_up, "steps before them")->capture_default_str();
  command
      ->add_option("--delay", options.delays,
                   "RANK:WHERE=MS,...: what a slow rank would do to the run, which gets the same "
                   "result; WHERE: compute (each step), data (its loader, each step), link (each "
                   "message that it sends)")
      ->type_name("LIST");
  command
      ->add_option("--trace", options.trace_path,
                   "the measured steps of all ranks in Chrome's format; replaced where it exists")
      ->type_name("FILE.json");
}

void add_drill(CLI::App& app, CommandLine& line) {
  CLI::App* drill = app.add_subcommand(
      "drill",
      "rehearse kills and resumes before a long job; starts its ranks itself, so run it without "
      "mpirun");
  add_plan_arguments(*drill, line);
  add_data_argument(*drill, line);
  add_drill_arguments(*drill, line.drill);
}

void add_layouts(CLI::App& app, CommandLine& line) {
  CLI::App* layouts = app.add_subcommand(
      "layouts",
      "run a plan on each layout of a grid, by default of its study.candidates, and compare speed "
      "and bits; started by mpirun or srun with as many ranks as the largest needs: smaller ones "
      "run on the first ranks");
  add_plan_arguments(*layouts, line);
  add_data_argument(*layouts, line);
  layouts
      ->add_option("--grid", line.layouts.grid,
                   "KEY=VALUE,VALUE... of the layout, apart by spaces: \"tp=1,2 dp=1,2 "
                   "pp=1,2 zero=0,1 schedule=gpipe,1f1b sequence_parallel=true,false "
                   "transport=ucx,mpi stages=even,[1,2,3] order=tp-dp-pp,dp-tp-pp threads=1,2 "
                   "bucket_bytes=65536\"; other keys as in the plan. What is not legal is listed. "
                   "Without it: study.candidates of the plan, beside its study.baseline")
      ->type_name("GRID");
  layouts->add_option("--repeat", line.layouts.repeats, "times to run the whole list")
      ->capture_default_str();
  layouts->add_option("--steps", line.layouts.steps,
                      "steps of each run (default: run.steps of the plan, else 20)");
  layouts->add_option("--warmup", line.layouts.warm_up, "of these steps not measured")
      ->capture_default_str();
  layouts
      ->add_option("--scaling", line.layouts.scaling,
                   "strong: the plan's global batch on each layout; weak: so much a replica")
      ->capture_default_str()
      ->type_name("strong|weak");
  layouts->add_flag("--evaluate", line.layouts.evaluates,
                    "after each run judge the model on the validation part, and by task.accept");
}

void add_data(CLI::App& app, CommandLine& line) {
  CLI::App* data = app.add_subcommand("data", "make, describe or check data sets");
  data->require_subcommand(1);
  CLI::App* make = data->add_subcommand("make", "write a synthetic set in the official format");
  make->add_option("SET", line.make.dataset, "cifar10, bank, ag_news or text")
      ->required()
      ->check(CLI::IsMember(data_set_names()));
  make->add_option("FOLDER", line.make.folder, "where to; existing files are never overwritten")
      ->required();
  make->add_option("--rows", line.make.rows,
                   "cifar10: of each file (10000); bank (10000); ag_news: for training (12000), "
                   "and a tenth for the test");
  make->add_option("--bytes", line.make.bytes, "text (1000000)");
  make->add_option("--table", line.make.table,
                   "bank: bank-full or bank-additional-full, which is the default");
  make->add_option("--seed", line.make.seed, "another seed gives other data")
      ->capture_default_str();
  make->add_flag("--json", line.json, "one JSON object on the last line of standard output");
  const auto add_reader = [&](const char* name, const char* what) {
    CLI::App* command = data->add_subcommand(name, what);
    command
        ->add_option(
            "FOLDER", line.info_folder,
            "the folder, one that has a subfolder of the set's name, or a file (bank, text)")
        ->required();
    command
        ->add_option("--dataset", line.info_dataset,
                     "which set is meant, where the folder holds several")
        ->check(CLI::IsMember(data_set_names()));
    command->add_flag("--json", line.json, "one JSON object on the last line of standard output");
    return command;
  };
  add_reader("info", "what a folder holds");
  CLI::App* check = add_reader(
      "check", "classes of splits and slices, damaged rows (code 5), leaks between splits (code 1)");
  check->add_option("--plan", line.inputs.plan_path,
                    "the plan whose data set and split are meant (default: one that fits the set)");
  add_slices(*check, line.data_slices,
             "slices in which classes are counted (default: time, column:tokens or column:file)");
}

int run_command(const CLI::App& app, const CommandLine& line, Session& session,
                const StopSignals* signals) {
  if (app.got_subcommand("layouts")) {
    LayoutsOptions options = line.layouts;
    options.inputs = line.inputs;
    options.json = line.json;
    return layouts(options, session, std::cerr, std::cout);
  }
  if (app.got_subcommand("profile")) {
    ProfileOptions options = line.profile;
    options.inputs = line.inputs;
    options.json = line.json;
    return profile(options, session, std::cerr, std::cout);
  }
  if (app.got_subcommand("async")) {
    AsyncOptions options = line.async;
    options.inputs = line.inputs;
    options.json = line.json;
    return train_async(options, session, std::cerr, std::cout);
  }
  if (app.got_subcommand("eval")) {
    EvalOptions options = line.eval;
    options.inputs = line.inputs;
    options.json = line.json;
    return evaluate_checkpoint(options, session, std::cerr, std::cout);
  }
  TrainOptions options = line.train;
  options.inputs = line.inputs;
  options.json = line.json;
  if (!line.resume.from.empty()) options.resume = line.resume;
  if (app.get_subcommand("train")->count("--trace") > 0) options.trace = line.trace;
  if (!options.resume && (line.resume.strict || line.resume.allow_plan_change))
    throw AgreedError(
        ExitCode::usage,
        "--strict and --allow-plan-change say how to resume: give --resume auto, too");
  return train(options, session, *signals, std::cerr, std::cout);
}

// A command of many ranks.
int run_on_ranks(const CLI::App& app, const CommandLine& line, int* argc, char*** argv) {
  // Only training stops in order; first of all, as starting many ranks takes a while.
  std::optional<StopSignals> signals;
  if (app.got_subcommand("train")) signals.emplace();
  const std::unique_ptr<Session> session = make_session(argc, argv);
  try {
    return run_command(app, line, *session, signals ? &*signals : nullptr);
  } catch (const AgreedError& error) {
    if (session->rank() == 0) say(error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    if (session->size() > 1) session->abort(error.code(), error.what());
    say(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    if (session->size() > 1) session->abort(ExitCode::failed, error.what());
    say(error.what());
    return static_cast<int>(ExitCode::failed);
  }
}

// OpenMP's threads spin at each kernel's end, by default for milliseconds. With more threads than
// cores, as when ranks share a node, each kernel then waits for the scheduler: steps take minutes.
// How long they spin is read from the environment before main() runs, so the program starts itself
// once more with a short time (some 25 us, then they sleep). Who has set it keeps it.
void start_with_short_spins(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  setenv("GOMP_SPINCOUNT", "500", 1);
  setenv("KMP_BLOCKTIME", "0", 0);
  execv("/proc/self/exe", argv);  // returns only where it fails: then the threads spin longer
}

int dispatch(const CLI::App& app, const CommandLine& line, int* argc, char*** argv) {
  for (const char* command : {"train", "async", "eval", "layouts", "profile"})
    if (app.got_subcommand(command)) return run_on_ranks(app, line, argc, argv);
  if (app.got_subcommand("check")) {
    const Plan plan = load_plan(line.inputs.plan_path, line.inputs.overrides, line.num_ranks);
    if (!line.check_run.empty())
      return check_run(line.inputs, plan, line.check_run, line.json, std::cerr, std::cout);
    if (line.prose) {
      std::cout << plan_prose(plan);
      return static_cast<int>(ExitCode::done);
    }
    return check_plan(plan, line.num_ranks, line.json, std::cerr, std::cout);
  }
  if (app.got_subcommand("drill")) {
    DrillOptions options = line.drill;
    options.inputs = line.inputs;
    options.json = line.json;
    return drill_plan(options, std::cerr, std::cout);
  }
  if (app.got_subcommand("bench")) {
    return bench_gemm(load_plan(line.inputs.plan_path, line.inputs.overrides), line.json, std::cerr,
                      std::cout);
  }
  if (app.got_subcommand("ideal")) return ideal(line.ideal, std::cerr, std::cout);
  if (app.got_subcommand("report")) return report(line.report, std::cerr, std::cout);
  if (app.got_subcommand("ckpt")) return run_ckpt(*app.get_subcommand("ckpt"), line.ckpt);
  const CLI::App* data = app.get_subcommand("data");
  if (data->got_subcommand("make")) {
    DataMakeOptions options = line.make;
    options.json = line.json;
    return data_make(options, std::cerr, std::cout);
  }
  if (data->got_subcommand("check")) {
    std::optional<TaskPlan> task;
    if (!line.inputs.plan_path.empty()) task = load_plan(line.inputs.plan_path).task;
    return data_check(line.info_folder, line.info_dataset,
                      {.task = task, .slices = line.data_slices, .json = line.json}, std::cerr,
                      std::cout);
  }
  return data_info(line.info_folder, line.info_dataset, line.json, std::cerr, std::cout);
}

int main(int argc, char** argv) {
  start_with_short_spins(argv);
  CommandLine line;
  CLI::App app(
      "weft trains neural networks on grids of processes (tensor x data x pipeline parallel), and\n"
      "the result does not depend on the grid.\n",
      "weft");
  app.set_version_flag("--version", [] { return version_text(); });
  app.require_subcommand(1);
  app.footer(std::string("\n") + first_steps + exit_codes);

  CLI::App* check = app.add_subcommand(
      "check", "explain a plan without running it: layout, batch, memory; lists every fault");
  add_plan_arguments(*check, line);
  check->add_option("--ranks", line.num_ranks,
                    "number of ranks that will be started: must match the layout");
  CLI::Option* prose = check->add_flag(
      "--prose", line.prose, "the plan as text for an appendix, in Markdown, on standard output");
  check
      ->add_option("--run", line.check_run,
                   "RUN: whether that run did what the plan says: updates and samples of replicas")
      ->excludes(prose);
  add_data_argument(*check, line);

  add_train(app, line);
  add_async(app, line);
  add_eval(app, line);
  add_drill(app, line);
  add_layouts(app, line);
  add_profile(app, line);
  add_ckpt(app, line.ckpt);
  add_ideal(app, line.ideal);
  add_report(app, line.report);

  CLI::App* bench = app.add_subcommand("bench", "measure the machine");
  bench->require_subcommand(1);
  add_plan_arguments(
      *bench->add_subcommand("gemm", "a plan's matrix products, whole and in pieces"), line);

  add_data(app, line);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (is_first_process())
      say(usage_fault(app, error) + "\nRun with --help for more.");
    else  // a launcher ends all ranks when one has failed: the first one speaks before that
      std::this_thread::sleep_for(std::chrono::seconds(1));
    return static_cast<int>(ExitCode::usage);
  }
  try {
    return dispatch(app, line, &argc, &argv);
  } catch (const Error& error) {
    say(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    say(error.what());
    return static_cast<int>(ExitCode::failed);
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::main(argc, argv); }
