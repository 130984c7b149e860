#include "apps/ckpt_reshard_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ostream>
#include <utility>

#include "apps/ckpt_output.hpp"
#include "apps/layout_json.hpp"
#include "apps/model_shards.hpp"
#include "apps/version_command.hpp"
#include "core/error.hpp"
#include "io/checkpoint/reshard.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

constexpr index_t most_shards = 65536;

struct Cut {
  std::vector<ShardCut> shards;
  std::string layout;  // in words
};

Cut choose_cut(const CkptReshardOptions& options, const Checkpoint& source) {
  const std::vector<TensorRecord>& tensors = source.index.tensors;
  const bool has_plan = !options.plan_path.empty() || !options.overrides.empty();
  require(options.num_shards.has_value() != has_plan, ExitCode::usage,
          "how is it to be cut? Give either --ranks N, for N even shards, or a layout: --set "
          "layout.tp=2 (of the checkpoint's own plan), --plan PLAN, or both");
  if (options.num_shards) {
    const index_t n = *options.num_shards;
    require(n >= 1 && n <= most_shards, ExitCode::usage,
            fmt::format("--ranks: expected 1 to {}, found {}", most_shards, n));
    return {cut_evenly(tensors, n), fmt::format("{} even shards", n)};
  }
  const Plan plan =
      options.plan_path.empty()
          ? parse_plan(source.index.identity.plan, source.path + "'s plan", options.overrides)
          : load_plan(options.plan_path, options.overrides);
  return {shards_of_layout(plan, tensors), layout_text(plan)};
}

}  // namespace

int ckpt_reshard(const CkptReshardOptions& options, std::ostream& text, std::ostream& out) {
  const Checkpoint source = open_checkpoint(options.path);
  const Cut cut = choose_cut(options, source);
  const NewPlace place(options.to, source.manifest.step);
  ProgressLine line(text, isatty(STDERR_FILENO) != 0);
  const CheckpointIndex made = reshard(
      source, cut.shards,
      {.program = version_number(), .plan_name = source.manifest.plan_name, .layout = cut.layout},
      place, show_bytes(line, "copied"));
  std::uint64_t num_bytes = 0;
  for (const FileRecord& file : made.files) num_bytes += file.num_bytes;
  line.keep(fmt::format("{}: step {}, {} shards ({}), {:.2f} MiB, read back; state {} as before",
                        place.path(), made.progress.step, made.files.size(), cut.layout,
                        mib(num_bytes), made.state_fingerprint()));
  finish_ckpt(options.json,
              {{"path", place.path()},
               {"from", source.path},
               {"step", made.progress.step},
               {"id", made.id},
               {"shards", made.files.size()},
               {"layout", cut.layout},
               {"bytes", num_bytes},
               {"state_fingerprint", made.state_fingerprint()}},
              text, out);
  return 0;
}

}  // namespace weft
