#include "apps/ckpt_arguments.hpp"

#include <iostream>
#include <string>

#include "core/kokkos_session.hpp"

namespace weft {

namespace {

void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "one JSON object on the last line of standard output");
}

void add_overrides(CLI::App& command, std::vector<std::string>& overrides, const char* what) {
  command.add_option("--set", overrides, what)->type_name("KEY=VALUE")->take_all();
}

constexpr const char* names_help =
    "TOML table of names, ours = theirs: [names] \"block.*.q.weight\" = \"layer.*.query.weight\"; "
    "* is a number";

void add_looks(CLI::App& ckpt, CkptOptions& look) {
  const auto add = [&](const char* name, const char* what, const char* path) {
    CLI::App* command = ckpt.add_subcommand(name, what);
    command->add_option("PATH", look.path, path)->required();
    add_json(*command, look.json);
    return command;
  };
  add("ls", "the checkpoints of a run, newest first", "a run folder");
  add("inspect", "what a checkpoint is: run, plan, tensors", "a checkpoint (step-*)")
      ->add_option("--tensor", look.tensor, "where the pieces of this tensor lie");
  add("verify", "read every byte; exit code 5 where one is altered", "a checkpoint (step-*)");
  add("diff", "two checkpoints, tensor by tensor; exit code 0 where they are equal, else 1",
      "a checkpoint (step-*)")
      ->add_option("OTHER", look.other, "another one")
      ->required();
}

void add_reshard(CLI::App& ckpt, CkptReshardOptions& options) {
  CLI::App* command = ckpt.add_subcommand(
      "reshard",
      "the same state in other shards, verified on the way, whole or not there at all; the source "
      "stays as it is. Not needed to resume: every layout reads every checkpoint");
  command->add_option("CHECKPOINT", options.path, "a checkpoint (step-*)")->required();
  command
      ->add_option("--to", options.to,
                   "the new checkpoint's folder, which must not exist: step-* of the same step, or "
                   "any other name")
      ->required();
  command->add_option("--ranks", options.num_shards, "as many even shards, cut by whole rows")
      ->type_name("N");
  command->add_option("--plan", options.plan_path,
                      "shards as this plan's layout writes them (default: the checkpoint's plan)");
  add_overrides(*command, options.overrides,
                "KEY=VALUE of the plan: layout.tp=2 layout.dp=2; may be repeated");
  add_json(*command, options.json);
}

void add_prune(CLI::App& ckpt, CkptPruneOptions& options) {
  CLI::App* command = ckpt.add_subcommand(
      "prune",
      "remove older checkpoints; only what has --keep newer ones of which every byte was verified. "
      "Refused while a run writes there. Exit code 5 where a damaged one was met");
  command->add_option("RUN", options.path, "a run folder")->required();
  command->add_option("--keep", options.keep, "newest ones that stay, once verified")->required();
  command
      ->add_option("--every", options.every,
                   "those of every M-th step stay, too (default: checkpoint.keep_every of the "
                   "run's plan; its keep_best stay in any case)")
      ->type_name("M");
  command
      ->add_option("--pin", options.pins,
                   "this step stays, too, from now on: it goes into RUN/checkpoints/PINS, which "
                   "training respects; take the line out to let it go; may be repeated")
      ->type_name("STEP")
      ->allow_extra_args(false);  // RUN may come behind it
  command->add_flag("--dry-run", options.dry_run, "say what would go, and change nothing");
  add_json(*command, options.json);
}

void add_view(CLI::App& ckpt, CkptViewOptions& options) {
  CLI::App* command = ckpt.add_subcommand(
      "view",
      "one HDF5 file that shows each tensor whole, out of the pieces in the shards (virtual "
      "datasets, no copy): for h5dump, h5py and the like, never read by weft");
  command->add_option("CHECKPOINT", options.path, "a checkpoint (step-*)")->required();
  command
      ->add_option("--out", options.out,
                   "the file, which must not exist (default: view-step-N.h5 in the run folder, or "
                   "beside the checkpoint)")
      ->type_name("FILE");
  add_json(*command, options.json);
}

void add_export(CLI::App& ckpt, CkptExportOptions& options) {
  CLI::App* command =
      ckpt.add_subcommand("export", "a checkpoint's parameters as a file for other programs");
  command->add_option("CHECKPOINT", options.path, "a checkpoint (step-*)")->required();
  command->add_option("--format", options.format, "safetensors")
      ->required()
      ->check(CLI::IsMember({"safetensors"}));
  command->add_option("--to", options.to, "the file, which must not exist")->required();
  command->add_option("--names", options.names, names_help)->type_name("TABLE");
  command->add_flag("--with-optimizer", options.with_optimizer,
                    "its moments, too, as optimizer.<kind>.<name>");
  add_json(*command, options.json);
}

void add_import(CLI::App& ckpt, CkptImportOptions& options) {
  CLI::App* command = ckpt.add_subcommand(
      "import",
      "a safetensors file's parameters (F32) as a checkpoint at step 0, with moments of zero. "
      "Training begins from it with --to RUN/checkpoints/step-000000000 and weft train --run RUN "
      "--resume auto");
  command->add_option("FILE", options.path, "a safetensors file")->required();
  command->add_option("--plan", options.plan_path, "the plan of the model that they are of")
      ->required();
  add_overrides(*command, options.overrides, "KEY=VALUE: overrides a key of the plan");
  command->add_option("--to", options.to, "the checkpoint's folder, which must not exist")
      ->required();
  command->add_option("--names", options.names, names_help)->type_name("TABLE");
  add_json(*command, options.json);
}

}  // namespace

void add_ckpt(CLI::App& app, CkptArguments& arguments) {
  CLI::App* ckpt =
      app.add_subcommand("ckpt", "look at checkpoints, cut, remove, view, export, import");
  ckpt->require_subcommand(1);
  add_looks(*ckpt, arguments.look);
  add_reshard(*ckpt, arguments.reshard);
  add_prune(*ckpt, arguments.prune);
  add_view(*ckpt, arguments.view);
  add_export(*ckpt, arguments.to_file);
  add_import(*ckpt, arguments.from_file);
}

int run_ckpt(const CLI::App& ckpt, const CkptArguments& arguments) {
  std::ostream &text = std::cerr, &out = std::cout;
  if (ckpt.got_subcommand("ls")) return ckpt_ls(arguments.look, text, out);
  if (ckpt.got_subcommand("inspect")) return ckpt_inspect(arguments.look, text, out);
  if (ckpt.got_subcommand("verify")) return ckpt_verify(arguments.look, text, out);
  if (ckpt.got_subcommand("diff")) return ckpt_diff(arguments.look, text, out);
  if (ckpt.got_subcommand("reshard")) return ckpt_reshard(arguments.reshard, text, out);
  if (ckpt.got_subcommand("prune")) return ckpt_prune(arguments.prune, text, out);
  if (ckpt.got_subcommand("view")) return ckpt_view(arguments.view, text, out);
  if (ckpt.got_subcommand("export")) return ckpt_export(arguments.to_file, text, out);
  const KokkosSession kokkos(1);
  return ckpt_import(arguments.from_file, text, out);
}

}  // namespace weft
