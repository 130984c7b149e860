#include "apps/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "apps/agreement.hpp"
#include "apps/assemble.hpp"
#include "apps/nonfinite_hunt.hpp"
#include "core/drill_point.hpp"
#include "core/numerics_check.hpp"
#include "core/reduce_tree.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "parallel/comm/gather_values.hpp"
#include "parallel/data/run_hash.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"

namespace weft {

namespace {

// Which NaN a sum gives depends on the order of its operands, and so on the layout.
constexpr double one_nan = std::numeric_limits<double>::quiet_NaN();
double as_one_nan(double x) { return std::isnan(x) ? one_nan : x; }

}  // namespace

Trainer::Trainer(const Plan& plan, const TrainingData& data, Transport& transport, Start start)
    : plan_(plan),
      data_(data),
      context_(static_cast<int>(plan.layout.threads), numerics_of(plan)),
      mesh_(transport, &context_.trace, mesh_axes(plan), plan.layout.order, wait_options(plan)),
      tp_(mesh_.axis("tp"), plan.num_pieces(), order_of_sums(plan), token_blocks_of(plan)),
      learning_rate_(learning_rate_of(plan)) {
  const Trace::Span span(&context_.trace, Activity::start_up, "trainer.start_up");
  context_.numerics.token_blocks = tp_.owned_token_blocks();
  // The loader's thread reads while the model is built.
  if (start == Start::at_first_step) start_loader();
  build_stage();
  check_machine();
}

void Trainer::build_stage() {
  model_ =
      std::make_unique<StageModel>(make_model(plan_, mesh_.rank("pp"), parameters_, copies_, tp_));
  parameters_.allocate(context_);
  grad_sync_ = std::make_unique<GradSync>(context_, parameters_, mesh_.axis("tp"), mesh_.axis("dp"),
                                          grad_sync_options(plan_));
  if (plan_.ties_embedding()) {
    tied_ = std::make_unique<TiedParameter>(context_, parameters_, copies_, mesh_.axis("dp"),
                                            mesh_.axis("pp"), tied_options(plan_));
    grad_sync_->tie(*tied_);
  }
  optimizer_ = make_optimizer(context_, plan_.optimizer, grad_sync_->owned());
  global_norm_ =
      std::make_unique<GlobalNorm>(context_, parameters_, grad_sync_->shares(), mesh_.rank("dp"));
  work_ = std::make_unique<TrainingWork>(context_, *model_, *grad_sync_, plan_.batch.micro,
                                         plan_.microbatches_per_lane());
  runner_ = std::make_unique<pipeline::Runner>(context_, mesh_.axis("pp"),
                                               training_schedule(plan_, mesh_.rank("dp")));
}

// What was built last goes first. The products of a stage's layers are those that were probed: each
// rank has blocks, and the ends of the model stay where they are.
void Trainer::split_again(std::vector<index_t> stages) {
  const Trace::Span span(&context_.trace, Activity::start_up, "trainer.split_again");
  loader_.reset();
  batch_ = nullptr;
  runner_.reset();
  work_.reset();
  global_norm_.reset();
  optimizer_.reset();
  tied_.reset();
  grad_sync_.reset();
  model_.reset();
  copies_ = {};
  parameters_ = {};
  plan_.layout.stages = std::move(stages);
  build_stage();
  work_->slow_down(delay_);
}

void Trainer::start_loader() {
  LoaderOptions reading = loader_options(plan_, mesh_.rank("dp"));
  reading.first_step = step_;
  reading.end_step = plan_.num_steps();
  reading.class_weights = data_.balance.weights;
  reading.with_input = mesh_.rank("pp") == 0;
  loader_ = std::make_unique<Loader>(*data_.samples,
                                     training_sampler(plan_, data_), reading);
}

FlatRanges Trainer::share_to_write() {
  const int tp = mesh_.rank("tp"), tp_size = mesh_.size("tp");
  if (plan_.layout.zero > 0)
    return weft::share_to_write(parameters_, tp, tp_size, grad_sync_->owned());
  return weft::share_to_write(parameters_, tp, tp_size, mesh_.rank("dp"), mesh_.size("dp"));
}

RunProgress Trainer::progress() const {
  return {.step = step_,
          .epoch = step_ == 0 ? 0 : (step_ - 1) / plan_.steps_per_epoch(),
          .losses = losses_};
}

void Trainer::take_loaded_state() {
  if (tied_) tied_->publish(context_);
}

void Trainer::start_at(RunProgress progress) {
  step_ = progress.step;
  losses_ = std::move(progress.losses);
  num_skipped_ =
      std::count_if(losses_.begin(), losses_.end(), [](double loss) { return std::isnan(loss); });
  start_loader();
}

void Trainer::check_machine() {
  fingerprint_ = numerics_fingerprint(context_.device);
  if (!plan_.is_exact()) return;
  require_equal(
      mesh_.world(), "the arithmetic fingerprint (libraries, CPU, build)", fingerprint_,
      "Exact mode needs equal machines and one build of weft: ask for one kind of node, start the "
      "same program on all, or set numerics.mode = \"fast\"");
  agree(mesh_.world(), "numerics", [&] {
    check_denormals(context_);
    std::vector<kernels::GemmCall> products = model_->products(plan_.batch.micro);
    for (const index_t tokens : plan_.task.length_buckets) {
      for (const kernels::GemmCall& call : model_->products(plan_.batch.micro, tokens))
        products.push_back(call);
    }
    probe_gemm(context_, products);
  });
}

LossSums Trainer::sum_over_leaves(const std::vector<LossSums>& mine, index_t num_leaves) {
  reduce_tree::Stack<LossSums> stack(num_leaves);
  index_t leaf = 0;
  for (const std::vector<LossSums>& part : all_gather_values(mesh_.axis("dp"), "loss", mine)) {
    for (const LossSums& sums : part) {
      stack.push({leaf, leaf + 1}, sums,
                 [](LossSums left, const LossSums& right) { return left += right; });
      ++leaf;
    }
  }
  // The last stage knows; the others learn it.
  LossSums total = stack.nodes().front().value;
  Communicator& pp = mesh_.axis("pp");
  pp.start({"loss.all_stages", Broadcast{pp.size() - 1, index_t{sizeof(total)}, &total}}).wait();
  return total;
}

index_t Trainer::num_skipped_in_a_row() const {
  const auto last =
      std::find_if(losses_.rbegin(), losses_.rend(), [](double loss) { return !std::isnan(loss); });
  return last - losses_.rbegin();
}

void Trainer::leave_out(StepResult& result) {
  grad_sync_->release();
  StageClock* const clock = work_->set_clock(nullptr);  // the hunt looks at layers instead
  const std::string first = NonfiniteHunt({context_, mesh_, parameters_, copies_, *model_,
                                           *grad_sync_, *work_, *runner_, plan_.batch.micro})
                                .find(*batch_, step_);
  work_->set_clock(clock);
  const std::string what =
      fmt::format("the loss is {} and the gradient norm is {}; the first that is not finite: {}",
                  result.loss, result.gradient_norm, first);
  const index_t in_a_row = num_skipped_in_a_row() + 1;
  const bool is_over = in_a_row > plan_.integrity.max_skips;
  if (plan_.integrity.skips() && !is_over) {
    result.skipped = what;
    ++num_skipped_;
    return;
  }
  const std::string many = plan_.integrity.skips()
                               ? fmt::format("{} such steps in a row, integrity.max_skips is {}; ",
                                             in_a_row, plan_.integrity.max_skips)
                               : "";
  throw AgreedError(
      ExitCode::failed,
      fmt::format("step {}: {}. {}Stopped before the update. Use a smaller optimizer.lr (now {}), "
                  "warm-up steps, or optimizer.clip_norm",
                  step_ + 1, what, many, plan_.optimizer.lr));
}

StepResult Trainer::step() {
  drill::reach("data");
  {
    const Trace::Span span(&context_.trace, Activity::data_wait, "loader.next");
    batch_ = &loader_->next();
  }
  if (Trace& trace = context_.trace; trace.is_recording()) {
    trace.add_interval({.row = "loader", .name = "loader.read", .index = step_ + 1},
                       trace.ns_of(batch_->read_begin), trace.ns_of(batch_->read_end));
  }
  StepResult result = forward_backward(*batch_, step_);
  update(result);
  losses_.push_back(result.skipped.empty() ? result.loss : one_nan);
  ++step_;
  return result;
}

StepResult Trainer::forward_backward(const HostBatch& batch, index_t step) {
  StepResult result{.step = step, .epoch = batch.epoch, .num_real = batch.num_real_global};
  work_->begin(batch, step);
  runner_->run(*work_, model_->boundary_shape(plan_.batch.micro, batch.tokens_per_sample));
  const LossSums total = sum_over_leaves(work_->lane_sums(), plan_.num_lanes());
  const auto count = static_cast<double>(batch.num_targets_global());
  result.loss = as_one_nan(total.loss / count);
  result.accuracy = static_cast<double>(total.correct) / count;
  return result;
}

StepResult Trainer::gradient_of(const HostBatch& batch, index_t step, float* gradient) {
  const StepResult result = forward_backward(batch, step);
  grad_sync_->finish(context_);
  copy_to_host(gradient, grad_sync_->flat_gradient(),
               parameters_.flat_elements() * index_t{sizeof(float)});
  grad_sync_->release();
  return result;
}

void Trainer::apply_gradient(const float* gradient, StepResult& result) {
  const Trace::Span span(&context_.trace, Activity::update, "update");
  const Tensor flat(context_.arena, MemoryKind::gradients, {parameters_.flat_elements()});
  copy_to_device(flat.data(), gradient, parameters_.flat_elements() * index_t{sizeof(float)});
  parameters_.bind_gradients(flat.data());
  require(measure(result), ExitCode::failed,
          fmt::format("update {}: the loss is {} and the gradient norm is {}. Use a smaller "
                      "optimizer.lr (now {}), warm-up steps, or optimizer.clip_norm",
                      step_ + 1, result.loss, result.gradient_norm, plan_.optimizer.lr));
  apply_bound_gradients(result);
  losses_.push_back(result.loss);
  ++step_;
}

bool Trainer::measure(StepResult& result) {
  result.gradient_norm = as_one_nan(global_norm_->of_gradients(
      context_, parameters_, mesh_.axis("tp"), mesh_.axis("dp"), mesh_.axis("pp")));
  result.learning_rate = learning_rate_.at(step_);
  return std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
}

void Trainer::apply_bound_gradients(const StepResult& result) {
  const double clip = plan_.optimizer.clip_norm;
  const double factor =
      clip > 0.0 && result.gradient_norm > clip ? clip / result.gradient_norm : 1.0;
  drill::reach("update");
  optimizer_->update(
      context_, parameters_,
      {.step = step_ - num_skipped_, .learning_rate = result.learning_rate, .clip_factor = factor});
  context_.device.fence();
}

void Trainer::update(StepResult& result) {
  const Trace::Span span(&context_.trace, Activity::update, "update");
  context_.arena.set_phase(Phase::update);
  drill::reach("reduce");
  grad_sync_->finish(context_);
  if (!measure(result)) return leave_out(result);
  apply_bound_gradients(result);
  grad_sync_->publish(context_);
  grad_sync_->release();
}

EvalSampler Trainer::sampler_of(EvalSplit split) const {
  const Split& parts = data_.split;
  return {split == EvalSplit::validation ? parts.validation : parts.test, plan_.batch.micro};
}

Evaluation Trainer::evaluate(EvalSplit split, std::vector<Prediction>* predictions) {
  const Trace::Span span(&context_.trace, Activity::evaluation, "evaluate");
  context_.arena.set_phase(Phase::evaluation);
  drill::reach("evaluate");
  Communicator& dp = mesh_.axis("dp");
  const EvalSampler sampler = sampler_of(split);
  const BatchReader reader(*data_.samples, mesh_.rank("pp") == 0);
  const index_t num_microbatches = sampler.num_microbatches();
  const Range mine = part_of(dp.rank(), dp.size(), num_microbatches);
  EvaluationWork work(context_, *model_, reader, sampler, mine, plan_.batch.micro);
  if (!mine.empty()) {
    const auto schedule = pipeline::forward_only(static_cast<int>(plan_.layout.pp), mine.size());
    pipeline::Runner(context_, mesh_.axis("pp"), pipeline::lower(schedule))
        .run(work, model_->boundary_shape(plan_.batch.micro));
  }
  const LossSums total = sum_over_leaves(work.sums(), num_microbatches);
  Evaluation evaluation;
  evaluation.loss = total.loss / static_cast<double>(total.rows);
  evaluation.samples = total.rows;
  judge(dp, mesh_.axis("pp"), num_classes_of(plan_), work.predictions(), evaluation);
  if (predictions) *predictions = gather_predictions(dp, mesh_.axis("pp"), work.predictions());
  return evaluation;
}

std::uint64_t Trainer::bytes_sent() {
  return mesh_.axis("tp").bytes_sent() + mesh_.axis("dp").bytes_sent() +
         mesh_.axis("pp").bytes_sent();
}

Hash128 Trainer::state_hash() {
  return run_hash(parameters_, *optimizer_, mesh_.axis("tp"), mesh_.axis("dp"), mesh_.axis("pp"));
}

}  // namespace weft
