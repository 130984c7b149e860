// The report of `weft check`: exit codes, the figures in it, one JSON object on one line.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/check_command.hpp"
#include "apps/check_prose.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;

namespace {

struct Output {
  int code;
  std::string text;
  std::string out;
};

Output check(const Plan& plan, std::optional<index_t> num_ranks, bool json) {
  std::ostringstream text, out;
  const int code = check_plan(plan, num_ranks, json, text, out);
  return {code, text.str(), out.str()};
}

Plan eight_ranks() {
  Plan plan = sample_plan();
  plan.layout.tp = 4;
  plan.layout.dp = 2;
  return plan;
}

Plan vit_on_twelve_ranks() {
  Plan plan = weft::testing::sample_vit();
  plan.model.layers = 5;
  plan.layout.tp = 2;
  plan.layout.dp = 2;
  plan.layout.pp = 3;
  plan.layout.stages = {1, 3, 1};
  plan.layout.zero = 1;
  plan.layout.schedule = "gpipe";
  plan.layout.sequence_parallel = true;
  return plan;
}

}  // namespace

TEST_CASE("a legal plan is explained") {
  const Output output = check(eight_ranks(), 8, false);
  CHECK(output.code == 0);
  CHECK(output.out.empty());
  for (const char* part : {"8 ranks = tp 4 x dp 2 x pp 1", "tp groups 0 1 2 3 | 4 5 6 7",
                           "dp groups 0 4 | 1 5 | 2 6 | 3 7",
                           "128 = 16 samples x 2 microbatches x 4 lanes; each of 2 replicas "
                           "computes lanes 0-1, 2-3: 64 "
                           "samples a step",
                           "an epoch of 45000 samples is 351 (72 samples dropped)",
                           "4 pieces on 4 ranks: 1 1 1 1 a rank"}) {
    INFO(output.text);
    CHECK(output.text.find(part) != std::string::npos);
  }
}

TEST_CASE("a ViT on all three axes is explained, line by line") {
  const Output output = check(vit_on_twelve_ranks(), 12, false);
  CHECK(output.code == 0);
  // Sizes by hand: qkv 144x48+144, proj 48x48+48, up 192x48+192, down 48x192+48, two norms: 28272 a
  // block; patch 48x48+48 and positions 64x48; final norm 96 and head 490.
  // The rank that holds most is on stage 1, with two of four pieces of each block: 2 x (qkv 1728 +
  // 64 in place of 36, proj 576, up 2304 + 64 in place of 48, down 2304) + 6 vectors of 64 = 14464
  // elements; 3 blocks are 169.5 KiB. Gradients: twice that and 2 token blocks of 18 vectors;
  // optimizer: 22 of its 43 norm blocks, the last of them not full, in two moments.
  CHECK(
      output.text ==
      "plan        sample: legal; exact mode, seed 1\n"
      "model       vit of 5 blocks, hidden 48, feed-forward 192, 4 heads of 12, 64 tokens a "
      "sample (patches of 4 x 4)\n"
      "layout      12 ranks = tp 2 x dp 2 x pp 3, order tp,dp,pp (fastest first), 1 thread a "
      "rank, transport auto\n"
      "  tp groups 0 1 | 2 3 | 4 5 | 6 7 | 8 9 | 10 11 (one part of the model each)\n"
      "  dp groups 0 2 | 1 3 | 4 6 | 5 7 | 8 10 | 9 11 (same parameters, other samples)\n"
      "  pp groups 0 4 8 | 1 5 9 | 2 6 10 | 3 7 11 (the stages of one model)\n"
      "batch       128 = 16 samples x 2 microbatches x 4 lanes; each of 2 replicas computes lanes "
      "0-1, 2-3: 64 samples a step\n"
      "steps       20 in all; an epoch of 45000 samples is 351 (72 samples dropped)\n"
      "tp          4 pieces on 2 ranks: 2 2 a rank, largest / mean 1.00; tree P = 1.00, an "
      "all-reduce moves 1.00 x a ring's bytes\n"
      "  sequence parallel: 512 512 of 1024 rows of a microbatch a rank\n"
      "dp          4 lanes on 2 ranks: 2 2 a rank, largest / mean 1.00; tree P = 1.00, an "
      "all-reduce moves 1.00 x a ring's bytes\n"
      "pp          5 blocks on 3 ranks: 1 3 1 a rank, largest / mean 1.80\n"
      "  stage 0: block 0, 33696 parameters\n"
      "  stage 1: blocks 1-3, 84816 parameters\n"
      "  stage 2: block 4, 28858 parameters\n"
      // 16 samples of 64 tokens, 48 floats each.
      "  at each cut 192.0 KiB of activations a microbatch, and as much of gradients back (all 2 tp "
      "ranks)\n"
      "schedule    gpipe, 4 microbatches through 3 stages; ideal bubble (3 - 1) / (4 + 3 - 1) = "
      "33.3 %\n"
      "  stage 0 | F0 F1 F2 F3 .. .. .. .. B0 B1 B2 B3\n"
      "  stage 1 | .. F0 F1 F2 F3 .. .. B0 B1 B2 B3 ..\n"
      "  stage 2 | .. .. F0 F1 F2 F3 B0 B1 B2 B3 .. ..\n"
      "parameters  147370 in all; a rank holds 42840 at most, 14572 at least\n"
      "memory      687.0 KiB on the rank that needs most, activations not counted\n"
      "  parameters 169.5 KiB, gradients 348.0 KiB (2 x the local model), optimizer 169.5 KiB "
      "(ZeRO-1: one of 2 slices)\n"
      "sent        12.2 MiB a step and rank at most, about\n"
      "  tp 11.3 MiB (rows, sequence parallel), dp 169.5 KiB (gradients out, parameters back), pp "
      "768.0 KiB (stage boundaries), each on its busiest rank\n"
      "checkpoints at the end: 1 in all, the newest 1 kept\n"
      "  one has 1.7 MiB (parameters and 2 moments); 1.7 MiB on disk at most\n"
      "warning     numerics.shards: pieces of attention's heads are 12 wide, of the feed-forward "
      "width are 48 wide; below 96 the price of computing piece by piece passes 5 %\n"
      "warning     layout.stages: 5 blocks on 3 stages are 1 3 1 a stage: the largest share is "
      "1.80 times the mean; balanced: layout.pp = 1 or 5\n"
      "warning     layout.pp: 3 stages with 4 microbatches a step wait (3 - 1) / (4 + 3 - 1) = 33 "
      "% of it at best; at most 20 % with layout.pp <= 2\n");
}

TEST_CASE("JSON says all that the text says") {
  const Output output = check(vit_on_twelve_ranks(), 12, true);
  const auto json = nlohmann::json::parse(output.out);
  CHECK(json["model"]["heads"] == 4);
  CHECK(json["model"]["tokens_per_sample"] == 64);
  CHECK(json["layout"]["pp"] == 3);
  CHECK(json["layout"]["zero"] == 1);
  CHECK(json["layout"]["stages"] == std::vector<index_t>{1, 3, 1});
  CHECK(json["tp"]["rows"] == std::vector<index_t>{512, 512});
  CHECK(json["pp"]["groups"][1] == std::vector<index_t>{1, 5, 9});
  CHECK(json["pp"]["shares"] == std::vector<index_t>{1, 3, 1});
  CHECK(json["pipeline"]["microbatches"] == 4);
  CHECK(json["pipeline"]["ideal_bubble"].get<double>() == Approx(1.0 / 3));
  CHECK(json["pipeline"]["stages"][1]["first_block"] == 1);
  CHECK(json["pipeline"]["stages"][1]["parameters"] == 84816);
  const auto cut = [](int behind) {
    return nlohmann::json{{"behind_block", behind},
                          {"activation_bytes", 192 * 1024},
                          {"gradient_bytes", 192 * 1024}};
  };
  CHECK(json["pipeline"]["cuts"] == nlohmann::json::array({cut(0), cut(3)}));
  CHECK(json["bytes_sent_per_step"]["pp"]["max"] == 768 * 1024);
  CHECK(json["bytes_sent_per_step"]["pp"]["min"] == 384 * 1024);
  CHECK(json["warnings"].size() == 3);
  CHECK(json["warnings"][2]["fixes"][0]["layout.pp"] == "2");
}

TEST_CASE("what is cut: nothing on one stage, whole rows on each tp rank, measured when told") {
  Plan plan = vit_on_twelve_ranks();
  plan.layout.sequence_parallel = false;
  plan.layout.stages.clear();
  plan.layout.measures_stages = true;
  const std::string text = check(plan, 12, false).text;
  INFO(text);
  CHECK(text.find("at each cut 384.0 KiB of activations") != std::string::npos);
  CHECK(text.find("after 13 steps of a process split by its stages' times") != std::string::npos);
  plan.layout.pp = 1;
  const Output one = check(plan, 4, true);
  CHECK(one.text.find("at each cut") == std::string::npos);
  CHECK(nlohmann::json::parse(one.out)["pipeline"]["cuts"].empty());
}

TEST_CASE("checkpoints: when, how many, how large") {
  // Parameters of the sample by hand: stem 3072 x 48 + 48; two blocks of 2 x 48 (norm), 192 x 48 +
  // 192 and 48 x 192 + 48; final norm 2 x 48; head 10 x 48 + 10. 185,626 in all, 4 bytes each.
  constexpr index_t parameter_bytes = 742504;
  Plan plan = sample_plan();
  const auto text = [&] {
    const std::string all = check(plan, std::nullopt, false).text;
    return all.substr(all.find("checkpoints "), all.find("warning") - all.find("checkpoints "));
  };
  const auto json = [&] {
    return nlohmann::json::parse(check(plan, std::nullopt, true).out)["checkpoints"];
  };
  CHECK(json()["bytes_each"] == 3 * parameter_bytes);  // and two moments
  CHECK(json()["count"] == 1);
  CHECK(json()["bytes_on_disk_at_most"] == 3 * parameter_bytes);
  plan.layout.tp = 4;  // whatever the layout
  plan.layout.dp = 3;
  plan.layout.zero = 1;
  CHECK(json()["bytes_each"] == 3 * parameter_bytes);

  plan.optimizer.kind = "sgd";
  plan.checkpoint.every_steps = 6;
  CHECK(text() ==
        "checkpoints every 6 steps and at the end: 4 in all, the newest 2 kept\n"
        "  one has 725.1 KiB (parameters and 0 moments); 2.1 MiB on disk at most\n");
  plan.optimizer.momentum = 0.9;
  plan.checkpoint.at_end = false;
  CHECK(text() ==
        "checkpoints every 6 steps: 3 in all, the newest 2 kept\n"
        "  one has 1.4 MiB (parameters and 1 moment); 4.2 MiB on disk at most\n");
  CHECK(json()["bytes_each"] == 2 * parameter_bytes);
  CHECK(json()["bytes_on_disk_at_most"] == 6 * parameter_bytes);
  CHECK(json()["every_steps"] == 6);
  CHECK(json()["at_end"] == false);
  CHECK(json()["keep"] == 2);
  CHECK(json()["read_back"] == true);
  plan.checkpoint.every_steps = 21;  // of 20
  CHECK(text() == "checkpoints none; set checkpoint.every_steps or checkpoint.at_end\n");
  plan.checkpoint.at_end = true;
  CHECK(text().starts_with("checkpoints at the end: 1 in all"));
  CHECK(json()["async"] == false);
  CHECK(json()["every_s"] == 0);
  plan.checkpoint.every = {5400};
  plan.checkpoint.async = true;
  CHECK(text() ==
        "checkpoints every 1h30m and at the end: 1 in all but those by time, the newest 2 kept; "
        "written while steps go on\n"
        "  one has 1.4 MiB (parameters and 1 moment); 4.2 MiB on disk at most\n");
  CHECK(json()["async"] == true);
  CHECK(json()["every_s"] == 5400);
  CHECK(json()["bytes_on_disk_at_most"] == 6 * parameter_bytes);
}

TEST_CASE("checkpoints as often as a share of the time allows") {
  Plan plan = sample_plan();
  plan.checkpoint.overhead = 0.025;
  CHECK_THAT(
      check(plan, std::nullopt, false).text,
      Catch::Contains("checkpoints as often as steps wait 2.5 % of the time for saving (measured "
                      "while the run goes on) and at the end: 1 in all but those by time, the "
                      "newest 2 kept\n"));
  const auto json = nlohmann::json::parse(check(plan, std::nullopt, true).out)["checkpoints"];
  CHECK(json["overhead"] == 0.025);
  CHECK(json["bytes_on_disk_at_most"] == 3 * json["bytes_each"].get<index_t>());
}

TEST_CASE("what of a run's checkpoints stays") {
  Plan plan = sample_plan();  // 20 steps
  plan.checkpoint = {.every_steps = 2, .keep = 1, .keep_every = 10, .keep_best = 2};
  plan.task.target = {.metric = "loss", .at_least = {}, .at_most = 1.0};
  const std::string text = check(plan, std::nullopt, false).text;
  CHECK_THAT(text, Catch::Contains("10 in all, the newest 1 kept, and each at a multiple of 10 "
                                   "steps, and the best 2 by validation loss\n"));
  const auto json = nlohmann::json::parse(check(plan, std::nullopt, true).out)["checkpoints"];
  CHECK(json["keep_every"] == 10);
  CHECK(json["keep_best"] == 2);
  // One while it is new, the newest, steps 10 and 20, two best ones.
  CHECK(json["bytes_on_disk_at_most"] == 6 * json["bytes_each"].get<index_t>());
}

TEST_CASE("the copy for checkpoints is the share that a rank writes, all shares the checkpoint") {
  Plan plan = sample_plan();
  const auto memory = [&] {
    return nlohmann::json::parse(check(plan, std::nullopt, true).out)["memory_bytes"];
  };
  plan.checkpoint.async = true;
  CHECK(memory()["staging"] == 0);  // only at the end: nothing goes on meanwhile
  plan.checkpoint.every_steps = 6;
  // One rank writes everything: 185,626 parameters and two moments each, and the gaps that align
  // them: the stored elements that parameters and optimizer take, too.
  const auto alone = memory();
  CHECK(alone["staging"].get<index_t>() ==
        alone["parameters"].get<index_t>() + alone["optimizer"].get<index_t>());
  CHECK(alone["staging"].get<index_t>() >= 3 * 742504);
  plan.layout.dp = 2;  // half of it each, to a norm block
  CHECK(memory()["staging"].get<double>() ==
        Approx(alone["staging"].get<double>() / 2).epsilon(0.05));
  plan.checkpoint.async = false;
  CHECK(memory()["staging"] == 0);
}

TEST_CASE("a transport that is not built in is said before the run says it") {
  Plan plan = sample_plan();
  plan.comm.transport = "ucx";
  const std::vector<std::string> built_in = built_in_transports();
  const bool has_ucx = std::find(built_in.begin(), built_in.end(), "ucx") != built_in.end();
  const Output output = check(plan, 1, false);
  CHECK(output.code == 0);
  CHECK((output.text.find("comm.transport: this build does not have ucx, only ") ==
         std::string::npos) == has_ucx);
  plan.comm.transport = "local";
  CHECK(check(plan, 1, false).text.find("comm.transport") == std::string::npos);
}

TEST_CASE("JSON is one object on one line") {
  const Output output = check(eight_ranks(), 8, true);
  REQUIRE(output.out.find('\n') == output.out.size() - 1);
  const auto json = nlohmann::json::parse(output.out);
  CHECK(json["legal"] == true);
  CHECK(json["ranks"] == 8);
  CHECK(json["layout"]["tp"] == 4);
  CHECK(json["batch"]["microbatches_per_lane"] == 2);
  CHECK(json["steps_per_epoch"] == 351);
  CHECK(json["dp"]["tree_factor"] == 1.0);
  CHECK(json["memory_bytes"]["total"] == json["memory_bytes"]["parameters"].get<index_t>() +
                                             json["memory_bytes"]["gradients"].get<index_t>() +
                                             json["memory_bytes"]["optimizer"].get<index_t>() +
                                             json["memory_bytes"]["staging"].get<index_t>());
}

TEST_CASE("a plan with faults exits with 2 and lists all of them") {
  Plan plan = eight_ranks();
  plan.batch.global = 100;
  const Output output = check(plan, 4, true);
  CHECK(output.code == 2);
  CHECK(output.text.find("batch.global: expected") != std::string::npos);
  CHECK(output.text.find("layout: 4 ranks were started") != std::string::npos);
  const auto json = nlohmann::json::parse(output.out);
  CHECK(json["legal"] == false);
  REQUIRE(json["faults"].size() == 2);
  CHECK(json["faults"][0]["fixes"][0]["batch.global"] == "128");
}

TEST_CASE("a grid too large to list is still reported") {
  Plan plan = sample_plan();
  plan.model.hidden = 192;
  plan.numerics.shards = 48;
  plan.layout.tp = 48;
  const Output output = check(plan, std::nullopt, false);
  CHECK(output.code == 0);
  CHECK(output.text.find("tp groups") == std::string::npos);
  CHECK(nlohmann::json::parse(check(plan, std::nullopt, true).out)["tp"]["groups"].is_null());
}

namespace {

// Lines joined, so that a sentence is found wherever it is broken.
std::string joined(const std::string& text) {
  std::istringstream in(text);
  std::string all;
  for (std::string word; in >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

void check_says(const Plan& plan, const std::vector<std::string>& sentences) {
  const std::string prose = plan_prose(plan);
  INFO(prose);
  std::istringstream lines(prose);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  for (const std::string& sentence : sentences) {
    INFO(sentence);
    CHECK(joined(prose).find(sentence) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a plan as prose says what its numbers mean") {
  Plan plan = eight_ranks();
  plan.run = {.steps = std::nullopt, .epochs = 3};  // 351 steps of 128 each
  check_says(plan,
             {"45,000 training and 5,000 validation samples, drawn at random", "with seed 7",
              "Made at this moment: not stated (task.moment is empty)",
              "128 samples an update = 16 a microbatch x 2 accumulated x 4 logical replicas",
              "the last 72 samples of an epoch are left out", "1,053 updates = 3 epochs",
              "none is stale", "Zero: exact mode gives the same bits on every layout",
              "8 ranks: 2 data-parallel replicas x 4 tensor-parallel ranks a stage x 1 stage",
              "nodes not stated, devices not stated", "**Accepted is** not stated (task.accept)"});
}

TEST_CASE("a plan as prose has its author's words") {
  Plan plan = eight_ranks();
  plan.task.text = {.source = "Krizhevsky 2009",
                    .moment = "when the image is taken",
                    .features = "its pixels",
                    .label = "which of ten things it shows"};
  plan.task.accept = {
      .metric = "macro_f1", .split = "test", .at_least = 0.6, .at_most = std::nullopt};
  plan.resources = {.nodes = 2, .devices_per_node = 4, .device = "H200"};
  plan.study = {.baseline = "tp=1 dp=1", .candidates = "tp=1,2,4 dp=1,2"};
  plan.batch.last = LastBatch::pad;
  plan.numerics.mode = NumericsMode::fast;
  check_says(plan, {"Source: Krizhevsky 2009.",
                    "Made at this moment: when the image is taken; from: its pixels; predicted is: "
                    "which of ten things it shows.",
                    "macro_f1 on the test part of at least 0.6", "2 nodes, 4 devices each: H200",
                    "**Baseline.** tp=1 dp=1; compared with it: tp=1,2,4 dp=1,2.",
                    "the last batch of an epoch has 72 samples, its other rows weigh nothing",
                    "Fast mode: sums depend on the layout"});
}

TEST_CASE("a table's plan as prose says what was done about time, leaks and rare classes") {
  Plan plan = eight_ranks();
  plan.task.dataset = "bank";
  plan.task.train = 30000;
  plan.task.test = 6000;
  plan.task.split_kind = "time";
  plan.task.class_weights = "balanced";
  plan.task.rare_share = 0.25;
  check_says(plan,
             {"30,000 training and 5,000 validation samples, and 6,000 for a final confirmation",
              "the first are trained on, the next validated on",
              "duration is left out, since it is known only after the call",
              "weighted by n / (2 n_class), counted over all training rows; 25 % of an epoch's "
              "samples are drawn from the rare class",
              "ROC AUC and PR AUC from the global order of scores; the decision threshold is "
              "chosen on the validation part"});
  plan.task.allow_leak = true;
  check_says(plan, {"LEAK ALLOWED: duration is a feature (task.allow_leak), which is known only "
                    "after the call: figures of this plan are no predictions"});
}
