#include "apps/ckpt_view_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "apps/ckpt_output.hpp"
#include "io/checkpoint/checkpoint_view.hpp"

namespace weft {

int ckpt_view(const CkptViewOptions& options, std::ostream& text, std::ostream& out) {
  const Checkpoint checkpoint = open_checkpoint(options.path);
  const std::string path = options.out.empty() ? default_view_path(options.path) : options.out;
  const std::uint64_t num_bytes = write_view(checkpoint, path);
  const auto& tensors = checkpoint.index.tensors;
  const auto value = std::find_if(tensors.begin(), tensors.end(),
                                  [](const TensorRecord& one) { return one.kind == "value"; });
  const std::string example = value == tensors.end() ? "" : "value/" + value->name;
  text << fmt::format(
      "{}: {} tensors of step {}, as pieces of {} show them; no copy, and not checked: NaN where a "
      "shard is missing\n  h5dump -d /{} {}\n",
      path, tensors.size(), checkpoint.manifest.step, checkpoint.path, example, path);
  finish_ckpt(options.json,
              {{"path", path},
               {"from", checkpoint.path},
               {"step", checkpoint.manifest.step},
               {"tensors", tensors.size()},
               {"bytes", num_bytes},
               {"state_fingerprint", checkpoint.manifest.state_fingerprint}},
              text, out);
  return 0;
}

}  // namespace weft
