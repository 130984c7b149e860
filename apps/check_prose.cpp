#include "apps/check_prose.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "apps/leak_mark.hpp"
#include "io/length_buckets.hpp"
#include "parallel/plan/balance.hpp"
#include "parallel/plan/memory_model.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

namespace {

constexpr std::size_t line_width = 100;

std::string wrapped(std::string_view words, std::string_view indent = "") {
  std::istringstream in{std::string(words)};
  std::string text, line;
  for (std::string word; in >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > line_width) {
      text += line + '\n';
      line = std::string(indent);
    } else if (!line.empty()) {
      line += ' ';
    }
    line += word;
  }
  return text + line + '\n';
}

std::string or_not_stated(const std::string& words, const char* key) {
  return words.empty() ? fmt::format("not stated ({} is empty)", key) : words;
}

// 45000 -> "45,000".
std::string grouped(index_t number) {
  std::string digits = fmt::format("{}", number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string count_of(index_t number, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

// A chapter, and the points of it.
class Prose {
 public:
  void chapter(const char* name) {
    text_ += fmt::format("{}## {}\n", text_.empty() ? "" : "\n", name);
  }
  void say(const std::string& words) { text_ += wrapped("- " + words, "  "); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string data_text(const TaskPlan& task) {
  if (task.dataset == "cifar10")
    return "CIFAR-10, the official binary version: images of 32 x 32 x 3";
  if (task.dataset == "bank")
    return fmt::format("UCI Bank Marketing, {}.csv, its rows in the order of their dates",
                       task.table);
  if (task.dataset == "ag_news") return "AG News: titles and descriptions in four classes";
  return "plain text, as bytes";
}

std::string split_text(const TaskPlan& task) {
  const std::string counts = fmt::format("{} training and {} validation samples",
                                         grouped(task.train), grouped(task.validation));
  if (task.dataset == "cifar10" || task.dataset == "ag_news") {
    return fmt::format(
        "{}, drawn at random from the official training part with seed {} and recorded; the "
        "official "
        "test part serves a final confirmation only, each use of it is recorded",
        counts, task.split_seed);
  }
  const std::string all = fmt::format("{}, and {} for a final confirmation, each use recorded",
                                      counts, grouped(task.test));
  if (task.dataset == "text" || task.split_kind == "time")
    return all +
           ": the first are trained on, the next validated on, the ones behind tested on; "
           "nothing is shuffled across";
  if (task.split_kind == "group")
    return fmt::format("{}; rows with the same {} stay together (seed {})", all, task.split_by,
                       task.split_seed);
  return fmt::format("{}, drawn at random with seed {}", all, task.split_seed);
}

std::string buckets_text(const TaskPlan& task) {
  if (task.length_buckets.empty()) return "";
  return fmt::format(
      "; a training batch is of texts of about one length (an epoch's shuffled order is sorted by "
      "length within windows of {} batches, then the batches are shuffled) and is computed with as "
      "few of {} tokens as hold its longest text",
      batches_per_window, fmt::join(task.length_buckets, ", "));
}

std::string preparation_text(const TaskPlan& task) {
  if (task.dataset == "cifar10") {
    return std::string("pixels are normalised by fixed constants; ") +
           (task.augment ? "training images are shifted by up to 4 pixels and flipped at random, "
                           "validation and test images never"
                         : "no augmentation");
  }
  if (task.dataset == "bank") {
    return fmt::format(
        "numbers are standardized and categories become places, both fitted on the training rows "
        "only; \"unknown\" is a category, one that training did not have goes to a place for "
        "others; "
        "{}",
        task.allow_leak ? leak_mark(task)
                        : "duration is left out, since it is known only after the call");
  }
  if (task.dataset == "ag_news")
    return fmt::format(
        "a vocabulary of {} fitted on the training part only; texts end at {} tokens{}",
        grouped(task.vocabulary), task.tokens, buckets_text(task));
  return fmt::format("windows of {} bytes, each byte predicted from those before it", task.tokens);
}

std::string balance_text(const TaskPlan& task) {
  std::string text;
  if (task.class_weights == "balanced")
    text = "the loss of a sample is weighted by n / (2 n_class), counted over all training rows";
  if (task.rare_share > 0.0)
    text += fmt::format("{}{:g} % of an epoch's samples are drawn from the rare class",
                        text.empty() ? "" : "; ", 100 * task.rare_share);
  return text;
}

void write_task(const Plan& plan, Prose& prose) {
  const TaskPlan& task = plan.task;
  prose.chapter("Task");
  prose.say("**Data.** " + data_text(task) +
            ". Source: " + or_not_stated(task.text.source, "task.source") + ".");
  prose.say(
      "**Prediction.** Made at this moment: " + or_not_stated(task.text.moment, "task.moment") +
      "; from: " + or_not_stated(task.text.features, "task.features") +
      "; predicted is: " + or_not_stated(task.text.label, "task.label") + ".");
  prose.say("**Split.** " + split_text(task) + ".");
  prose.say("**Preparation.** " + preparation_text(task) +
            (task.skips_faulty_rows()
                 ? "; rows that break the CSV form are left out and counted, before the split."
                 : "."));
  if (const std::string balance = balance_text(task); !balance.empty())
    prose.say("**Rare classes.** " + balance + "; the same on every layout.");
}

std::string model_text(const Plan& plan) {
  std::string text = fmt::format("{} of {}, hidden width {}, feed-forward width {}",
                                 plan.model.kind, count_of(plan.model.layers, "block", "blocks"),
                                 plan.model.hidden, plan.feed_forward());
  if (plan.is_transformer())
    text +=
        fmt::format(", {} heads, {} tokens a sample", plan.model.heads, plan.tokens_per_sample());
  if (plan.model.dropout > 0) text += fmt::format(", dropout {:g}", plan.model.dropout);
  return fmt::format("{}; {} parameters in {}", text, grouped(num_parameters(plan)),
                     plan.numerics.dtype);
}

std::string optimizer_text(const OptimizerPlan& optimizer) {
  std::string text = fmt::format("{}, learning rate {:g}",
                                 optimizer.kind == "adamw" ? "AdamW" : "SGD", optimizer.lr);
  if (optimizer.schedule.kind == "cosine")
    text += fmt::format(" after {} of warm-up, then down half a cosine to {:g} of it",
                        count_of(optimizer.schedule.warmup_steps, "step", "steps"),
                        optimizer.schedule.final_fraction);
  text += fmt::format(", weight decay {:g}", optimizer.weight_decay);
  if (optimizer.clip_norm > 0)
    text += fmt::format(", gradient norm clipped at {:g}", optimizer.clip_norm);
  return text;
}

std::string last_batch_text(const Plan& plan) {
  const index_t rest = plan.task.train % plan.batch.global;
  if (rest == 0) return "an epoch is whole batches";
  if (plan.batch.last == LastBatch::drop)
    return fmt::format("the last {} of an epoch are left out, others in each epoch",
                       count_of(rest, "sample", "samples"));
  return fmt::format("the last batch of an epoch has {}, its other rows weigh nothing",
                     count_of(rest, "sample", "samples"));
}

void write_training(const Plan& plan, Prose& prose) {
  prose.chapter("Model and training");
  prose.say("**Model.** " + model_text(plan) + ".");
  prose.say("**Optimizer.** " + optimizer_text(plan.optimizer) + ".");
  prose.say(
      fmt::format("**Batch.** {} samples an update = {} a microbatch x {} accumulated x {} logical "
                  "replicas (lanes); tensor "
                  "and pipeline parallel ranks do not multiply it; {}.",
                  plan.batch.global, plan.batch.micro, plan.microbatches_per_lane(),
                  plan.num_lanes(), last_batch_text(plan)));
  prose.say(fmt::format(
      "**Length.** {} = {:.4g} epochs; a new order of samples each epoch, seed {}.",
      count_of(plan.num_steps(), "update", "updates"),
      static_cast<double>(plan.num_steps()) / static_cast<double>(plan.steps_per_epoch()),
      plan.numerics.seed));
  prose.say(
      "**Synchronous rule.** Every update uses the gradients of its whole global batch, all of "
      "the same parameters; none is stale. A step waits for its slowest rank.");
  prose.say(
      plan.is_exact()
          ? "**Tolerance between layouts.** Zero: exact mode gives the same bits on every layout."
          : "**Tolerance between layouts.** Fast mode: sums depend on the layout, by rounding.");
}

std::string resources_text(const Plan& plan) {
  const ResourcesPlan& machine = plan.resources;
  const std::string nodes =
      machine.nodes > 0 ? count_of(machine.nodes, "node", "nodes") : "nodes not stated";
  const std::string devices = machine.devices_per_node > 0
                                  ? fmt::format("{} devices each", machine.devices_per_node)
                                  : "devices not stated";
  return fmt::format("{}, {}{}{}", nodes, devices, machine.device.empty() ? "" : ": ",
                     machine.device);
}

void write_layout(const Plan& plan, Prose& prose) {
  const LayoutPlan& layout = plan.layout;
  prose.chapter("Machines and layout");
  prose.say("**Resources.** " + resources_text(plan) + ".");
  prose.say(
      fmt::format("**Layout.** {}: {} data-parallel replica{} x {} tensor-parallel rank{} a stage "
                  "x {} stage{}{}{}; transport {}.",
                  count_of(plan.num_ranks(), "rank", "ranks"), layout.dp, layout.dp == 1 ? "" : "s",
                  layout.tp, layout.tp == 1 ? "" : "s", layout.pp, layout.pp == 1 ? "" : "s",
                  layout.pp > 1 ? ", schedule " + layout.schedule : "",
                  layout.zero > 0 ? ", optimizer state cut over the replicas (ZeRO-1)" : "",
                  plan.comm.transport));
  prose.say("**Baseline.** " +
            (plan.study.baseline.empty() ? std::string("the smallest layout that runs the model")
                                         : plan.study.baseline) +
            (plan.study.candidates.empty() ? "; no candidates named."
                                           : "; compared with it: " + plan.study.candidates + "."));
}

std::string bounds_text(const TargetPlan& target) {
  const std::string what = fmt::format("{} on the {} part", target.metric, target.split);
  if (target.at_least && target.at_most)
    return fmt::format("{} from {:g} to {:g}", what, *target.at_least, *target.at_most);
  return target.at_least ? fmt::format("{} of at least {:g}", what, *target.at_least)
                         : fmt::format("{} of at most {:g}", what, *target.at_most);
}

void write_judgement(const Plan& plan, Prose& prose) {
  const TaskPlan& task = plan.task;
  prose.chapter("Judgement");
  prose.say(
      "**Accepted is** " +
      (task.accept.is_set() ? bounds_text(task.accept) : std::string("not stated (task.accept)")) +
      ".");
  if (task.target.is_set())
    prose.say("**Time to quality** is the time to " + bounds_text(task.target) +
              ", reached in two validations one after the other.");
  std::string metrics =
      "Loss, accuracy, and per class and in the mean precision, recall and F1, from one confusion "
      "matrix over all ranks";
  if (sample_shape(task).classes == 2)
    metrics +=
        "; ROC AUC and PR AUC from the global order of scores; the decision threshold is chosen on "
        "the validation part";
  prose.say("**Metrics.** " + metrics + ". Padding is removed before they are counted.");
  prose.say(
      "**Timing.** Step time as median and P95 after 20 steps of warm-up (half of the steps where "
      "there are "
      "fewer than 40); throughput counts real samples only; evaluation and saving are counted "
      "apart.");
  if (plan.num_checkpoints() > 0 || plan.saves_on_the_way())
    prose.say(
        "**Interruption.** Checkpoints hold parameters, optimizer, progress and losses; random "
        "numbers and the "
        "order of data follow from the plan. A resumed run repeats no sample and ends in the same "
        "bits.");
}

}  // namespace

std::string plan_prose(const Plan& plan) {
  Prose prose;
  write_task(plan, prose);
  write_training(plan, prose);
  write_layout(plan, prose);
  write_judgement(plan, prose);
  return fmt::format("# Plan {}\n\n", plan.name) + prose.take();
}

}  // namespace weft
