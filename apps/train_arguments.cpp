#include "apps/train_arguments.hpp"

namespace weft {

void add_records(CLI::App& train, TrainOptions& options, TraceOptions& trace) {
  train
      .add_option("--trace", trace.path,
                  "record steps of all ranks in Chrome's format, for ui.perfetto.dev; FILE.json "
                  "is replaced where it exists (default: trace.json in the run folder)")
      ->expected(0, 1)
      ->type_name("FILE");
  train
      .add_option("--trace-steps", trace.num_steps,
                  "with --trace: so many steps, after the warm-up of step times")
      ->capture_default_str();
  train.add_flag("--tensorboard", options.tensorboard,
                 "also write loss, accuracy, learning rate, times and evaluations as event files "
                 "to RUN/tensorboard; a resume goes on with them unasked");
}

}  // namespace weft
