#include "apps/trainer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "apps/agreement.hpp"
#include "core/numerics_check.hpp"
#include "core/reduce_tree.hpp"
#include "core/state_hash.hpp"
#include "layers/mlp_classifier.hpp"

namespace weft {

namespace {

Order order_of(const Plan& plan) {
  return plan.numerics.mode == NumericsMode::exact ? Order::tree : Order::any;
}

Numerics numerics_of(const Plan& plan) {
  const bool exact = plan.numerics.mode == NumericsMode::exact;
  return {.num_pieces = plan.num_pieces(),
          .num_token_blocks = exact ? plan.numerics.shards : 1,
          .seed = plan.numerics.seed};
}

std::vector<MeshAxis> axes_of(const Plan& plan) {
  return {{"tp", static_cast<int>(plan.layout.tp)},
          {"dp", static_cast<int>(plan.layout.dp)},
          {"pp", static_cast<int>(plan.layout.pp)}};
}

MlpSpec model_of(const Plan& plan) {
  return {.input_features = Cifar10::image_bytes,
          .layers = plan.model.layers,
          .hidden = plan.model.hidden,
          .feed_forward = plan.feed_forward(),
          .dropout = static_cast<float>(plan.model.dropout),
          .num_classes = Cifar10::num_classes,
          .padded_classes = round_up(Cifar10::num_classes, plan.numerics.shards)};
}

std::unique_ptr<Optimizer> make_optimizer(Context& context, const ParameterSet& parameters,
                                          const OptimizerPlan& plan) {
  if (plan.kind == "sgd") {
    return make_sgd(context, parameters,
                    {.momentum = plan.momentum, .weight_decay = plan.weight_decay});
  }
  return make_adamw(context, parameters,
                    {.beta1 = plan.beta1,
                     .beta2 = plan.beta2,
                     .eps = plan.eps,
                     .weight_decay = plan.weight_decay});
}

LearningRate schedule_of(const Plan& plan) {
  const SchedulePlan& schedule = plan.optimizer.schedule;
  return {.peak = plan.optimizer.lr,
          .cosine = schedule.kind == "cosine",
          .warmup_steps = schedule.warmup_steps,
          .num_steps = plan.num_steps(),
          .final_fraction = schedule.final_fraction};
}

}  // namespace

Trainer::Trainer(const Plan& plan, const Cifar10& data, const Split& split, Transport& transport)
    : plan_(plan),
      context_(static_cast<int>(plan.layout.threads), numerics_of(plan)),
      mesh_(transport, &context_.trace, axes_of(plan), plan.layout.order),
      tp_(mesh_.axis("tp"), plan.num_pieces(), order_of(plan)),
      learning_rate_(schedule_of(plan)),
      validation_reader_(data, Cifar10::Part::training, std::nullopt),
      validation_sampler_(split.validation, plan.batch.micro) {
  const Trace::Span span(&context_.trace, Activity::start_up, "trainer.start_up");
  // The loader's thread reads while the model is built.
  LoaderOptions reading = loader_options(plan_, mesh_.rank("dp"));
  reading.end_step = plan_.num_steps();
  loader_ = std::make_unique<Loader>(
      data, Sampler(split.train, plan_.batch.global, plan_.batch.last, plan_.numerics.seed),
      reading);
  model_ = std::make_unique<StageModel>(make_mlp_classifier(model_of(plan_), parameters_, tp_));
  parameters_.allocate(context_);
  optimizer_ = make_optimizer(context_, parameters_, plan_.optimizer);
  grad_sync_ = std::make_unique<GradSync>(parameters_, mesh_.axis("dp"), plan_.num_lanes(),
                                          plan_.microbatches_per_lane(), order_of(plan_));
  global_norm_ = std::make_unique<GlobalNorm>(context_, parameters_);
  check_machine();
}

void Trainer::check_machine() {
  fingerprint_ = numerics_fingerprint(context_.device);
  if (plan_.numerics.mode != NumericsMode::exact) return;
  require_equal(
      mesh_.world(), "the arithmetic fingerprint (libraries, CPU)", fingerprint_,
      "Exact mode needs equal machines: ask for one kind of node, or set numerics.mode = \"fast\"");
  agree(mesh_.world(), "numerics", [&] {
    check_denormals(context_);
    probe_gemm(context_, model_->products(plan_.batch.micro));
  });
}

Microbatch Trainer::to_device(const HostBatch& batch, Range rows, float scale) {
  const auto take = [&](const auto& from, index_t row_length) {
    using T = typename std::decay_t<decltype(from)>::value_type;
    Tensor to(context_.arena, MemoryKind::input, {rows.size(), row_length}, DTypeOf<T>::value);
    copy_to_device(to.raw(), from.data() + rows.begin * row_length, to.num_bytes());
    return to;
  };
  return {.x = take(batch.x, Cifar10::image_bytes),
          .labels = take(batch.labels, 1),
          .weights = take(batch.weight, 1),
          .scale = scale};
}

std::vector<LossSums> Trainer::run_lanes(const HostBatch& batch) {
  const index_t micro = plan_.batch.micro;
  const index_t per_lane = plan_.microbatches_per_lane();
  const auto scale = static_cast<float>(1.0 / static_cast<double>(batch.num_real_global));
  std::vector<LossSums> sums;
  for (index_t lane = grad_sync_->lanes().begin; lane < grad_sync_->lanes().end; ++lane) {
    grad_sync_->begin_lane(context_, lane);
    LossSums& lane_sum = sums.emplace_back();
    for (index_t m = 0; m < per_lane; ++m) {
      const index_t first_sample = (lane * per_lane + m) * micro;
      const index_t first_row = first_sample - grad_sync_->lanes().begin * per_lane * micro;
      const Pass pass{
          .step = step_, .first_sample = first_sample, .num_rows = micro, .first_of_lane = m == 0};
      StageModel::State state;
      {
        const Trace::Span span(&context_.trace, Activity::forward, "forward");
        context_.arena.set_phase(Phase::forward);
        lane_sum += model_->forward(
            context_, to_device(batch, {first_row, first_row + micro}, scale), &state, pass);
      }
      const Trace::Span span(&context_.trace, Activity::backward, "backward");
      context_.arena.set_phase(Phase::backward);
      const bool completes_lane = m + 1 == per_lane;
      model_->backward(context_, state, pass, [&](const Parameter& parameter, index_t shard) {
        if (completes_lane) grad_sync_->ready(context_, parameter, shard);
      });
    }
    grad_sync_->end_lane(context_);
  }
  return sums;
}

LossSums Trainer::sum_over_lanes(const std::vector<LossSums>& mine, index_t num_leaves) {
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()),
                               mine.size() * sizeof(LossSums));
  reduce_tree::Stack<LossSums> stack(num_leaves);
  index_t leaf = 0;
  for (const std::string& part : mesh_.axis("dp").all_gather_strings("loss", bytes)) {
    for (std::size_t at = 0; at < part.size(); at += sizeof(LossSums), ++leaf) {
      LossSums sums;
      std::memcpy(&sums, part.data() + at, sizeof(LossSums));
      stack.push({leaf, leaf + 1}, sums,
                 [](LossSums left, const LossSums& right) { return left += right; });
    }
  }
  return stack.nodes().front().value;
}

void Trainer::check_finite(const StepResult& result) const {
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  throw AgreedError(
      ExitCode::failed,
      fmt::format("step {}: the loss is {} and the gradient norm is {}; stopped before the update. "
                  "Use a smaller optimizer.lr (now {}), warm-up steps, or optimizer.clip_norm",
                  result.step + 1, result.loss, result.gradient_norm, plan_.optimizer.lr));
}

StepResult Trainer::step() {
  const HostBatch* batch = nullptr;
  {
    const Trace::Span span(&context_.trace, Activity::data_wait, "loader.next");
    batch = &loader_->next();
  }
  StepResult result{.step = step_, .epoch = batch->epoch, .num_real = batch->num_real_global};
  const std::vector<LossSums> lane_sums = run_lanes(*batch);
  const LossSums total = sum_over_lanes(lane_sums, plan_.num_lanes());
  const auto count = static_cast<double>(batch->num_real_global);
  result.loss = total.loss / count;
  result.accuracy = static_cast<double>(total.correct) / count;

  const Trace::Span span(&context_.trace, Activity::update, "update");
  context_.arena.set_phase(Phase::update);
  grad_sync_->finish(context_);
  result.gradient_norm = global_norm_->of_gradients(context_, parameters_, mesh_.axis("tp"));
  check_finite(result);
  const double clip = plan_.optimizer.clip_norm;
  const double factor =
      clip > 0.0 && result.gradient_norm > clip ? clip / result.gradient_norm : 1.0;
  result.learning_rate = learning_rate_.at(step_);
  optimizer_->update(context_, parameters_,
                     {.step = step_, .learning_rate = result.learning_rate, .clip_factor = factor});
  context_.device.fence();
  grad_sync_->release();
  losses_.push_back(result.loss);
  ++step_;
  return result;
}

Evaluation Trainer::evaluate() {
  const Trace::Span span(&context_.trace, Activity::evaluation, "evaluate");
  context_.arena.set_phase(Phase::evaluation);
  const Communicator& dp = mesh_.axis("dp");
  const index_t num_microbatches = validation_sampler_.num_microbatches();
  const Range mine = part_of(dp.rank(), dp.size(), num_microbatches);
  std::vector<LossSums> sums;
  HostBatch batch;
  for (index_t m = mine.begin; m < mine.end; ++m) {
    const BatchIndices indices = validation_sampler_.indices_of(m);
    const Range rows{0, plan_.batch.micro};
    validation_reader_.read_into(indices, rows, batch);
    const Pass pass{.num_rows = rows.size(), .training = false};
    sums.push_back(model_->forward(context_, to_device(batch, rows, 1.0f), nullptr, pass));
  }
  const LossSums total = sum_over_lanes(sums, num_microbatches);
  const auto count = static_cast<double>(total.rows);
  return {.loss = total.loss / count,
          .accuracy = static_cast<double>(total.correct) / count,
          .samples = total.rows};
}

Hash128 Trainer::state_hash() {
  StateHash mine = hash_state(parameters_, optimizer_.get());
  const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof(mine));
  Hash128 total = mine.replicated;
  for (const std::string& part : mesh_.axis("tp").all_gather_strings("state_hash", bytes)) {
    StateHash other;
    std::memcpy(&other, part.data(), sizeof(other));
    if (other.replicated != mine.replicated) {
      throw Error(ExitCode::failed, "the copies of replicated parameters differ between tp ranks");
    }
    total += other.cut;
  }
  for (const std::string& text :
       mesh_.axis("dp").all_gather_strings("state_hash.dp", total.text())) {
    require(text == total.text(), ExitCode::failed,
            "the data-parallel replicas hold different parameters");
  }
  return total;
}

}  // namespace weft
