#include "apps/ckpt_exchange_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ostream>
#include <utility>

#include "apps/ckpt_output.hpp"
#include "apps/layout_json.hpp"
#include "apps/model_shards.hpp"
#include "apps/version_command.hpp"
#include "core/error.hpp"
#include "io/plan_file.hpp"
#include "io/safetensors_exchange.hpp"

namespace weft {

namespace {

NameTable table_of(const std::string& path) {
  return path.empty() ? NameTable() : NameTable::read(path);
}

}  // namespace

int ckpt_export(const CkptExportOptions& options, std::ostream& text, std::ostream& out) {
  require(options.format == "safetensors", ExitCode::usage,
          fmt::format("--format: expected safetensors, found \"{}\"", options.format));
  const NameTable names = table_of(options.names);
  const Checkpoint checkpoint = open_checkpoint(options.path);
  ProgressLine line(text, isatty(STDERR_FILENO) != 0);
  const ExportReport report = export_safetensors(
      checkpoint, options.to, names, options.with_optimizer, show_bytes(line, "written"));
  line.keep(fmt::format("{}: {} tensors of {}, {:.2f} MiB, read back", options.to,
                        report.num_tensors, checkpoint.path, mib(report.num_bytes)));
  finish_ckpt(options.json,
              {{"path", options.to},
               {"from", checkpoint.path},
               {"format", options.format},
               {"step", checkpoint.manifest.step},
               {"tensors", report.num_tensors},
               {"bytes", report.num_bytes},
               {"with_optimizer", options.with_optimizer},
               {"state_fingerprint", checkpoint.manifest.state_fingerprint}},
              text, out);
  return 0;
}

int ckpt_import(const CkptImportOptions& options, std::ostream& text, std::ostream& out) {
  const Plan plan = load_plan(options.plan_path, options.overrides);
  const NameTable names = table_of(options.names);
  const SafetensorsFile file(options.path);
  const std::vector<TensorRecord> parameters = model_tensors(plan);
  NewCheckpoint made = import_safetensors(file, parameters, optimizer_kinds(plan), names);
  made.texts = {.program = version_number(), .plan_name = plan.name, .layout = layout_text(plan)};
  made.identity.plan = to_toml(plan);
  made.identity.plan_hash = plan_fingerprint(plan);
  const std::vector<ShardCut> shards = shards_of_layout(plan, made.tensors);
  const NewPlace place(options.to, 0);
  ProgressLine line(text, isatty(STDERR_FILENO) != 0);
  const CheckpointIndex index = write_checkpoint(made, shards, place, show_bytes(line, "written"));
  line.keep(fmt::format("{}: step 0 of {}, {} parameters of {}, moments of zero, state {}",
                        place.path(), plan.name, parameters.size(), file.path(),
                        index.state_fingerprint()));
  finish_ckpt(options.json,
              {{"path", place.path()},
               {"from", file.path()},
               {"step", 0},
               {"id", index.id},
               {"shards", index.files.size()},
               {"layout", layout_text(plan)},
               {"tensors", index.tensors.size()},
               {"elements", index.num_elements()},
               {"state_fingerprint", index.state_fingerprint()}},
              text, out);
  return 0;
}

}  // namespace weft
