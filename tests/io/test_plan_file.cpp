// Plans as TOML: every kind of slip with its place and its nearest legal value, and --set.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "io/plan_file.hpp"

using namespace weft;

namespace {

// Lines are numbered in the messages that the tests expect: keep the shape.
const std::string small_plan =
    "[model]\n"       // 1
    "layers = 2\n"    // 2
    "hidden = 48\n"   // 3
    "[batch]\n"       // 4
    "global = 128\n"  // 5
    "micro = 16\n"    // 6
    "[optimizer]\n"   // 7
    "lr = 1e-3\n"     // 8
    "[run]\n"         // 9
    "steps = 20\n";   // 10

Plan read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_plan(text, "plan.toml", overrides);
}

// The message of the Error that reading throws; "legal" where it does not.
std::string message_of(const std::string& text, const std::vector<std::string>& overrides = {},
                       std::optional<index_t> num_ranks = std::nullopt) {
  try {
    parse_plan(text, "plan.toml", overrides, num_ranks);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "legal";
}

std::string with_line(const std::string& line) { return small_plan + line + '\n'; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("a small plan takes defaults for the rest") {
  const Plan plan = read(small_plan);
  CHECK(plan.name == "plan");
  CHECK(plan.model.layers == 2);
  CHECK(plan.model.mlp_ratio == 4);
  CHECK(plan.optimizer.lr == 1e-3);
  CHECK(plan.run.steps == 20);
  CHECK(!plan.run.epochs);
  CHECK(plan.numerics.shards == 4);
}

TEST_CASE("an unknown key names the nearest known one, and does not count as missing too") {
  CHECK(message_of(replaced(small_plan, "global", "globl")) ==
        "plan.toml:5:1: batch.globl: unknown key; did you mean batch.global?");
  CHECK(message_of("lr = 1e-3\n" + replaced(small_plan, "[optimizer]\nlr = 1e-3\n", "")) ==
        "plan.toml:1:1: lr: unknown key; did you mean optimizer.lr?");
  CHECK(message_of(replaced(small_plan, "[model]", "[modle]")) ==
        "plan.toml:2:1: modle.layers: unknown key; did you mean model.layers?\n"
        "plan.toml:3:1: modle.hidden: unknown key; did you mean model.hidden?");
  CHECK(message_of(with_line("[evl]\nevery_epochs = 2")) ==
        "plan.toml:12:1: evl.every_epochs: unknown key; did you mean eval.every_epochs?");
  CHECK(message_of(with_line("[evaluation]"))  // empty, and still not ignored
            .starts_with("plan.toml:11:2: evaluation: unknown key; did you mean "));
  CHECK(message_of(with_line("[layout]\nzreo = 1")) ==
        "plan.toml:12:1: layout.zreo: unknown key; did you mean layout.zero?");
  CHECK(message_of(with_line("[layout]\nrecomptue = true")) ==
        "plan.toml:12:1: layout.recomptue: unknown key; did you mean layout.recompute (not in this "
        "version)?");
  CHECK(message_of("\"batch.micro\" = 4\n" + small_plan) ==
        "plan.toml:1:1: \"batch.micro\": unknown key; did you mean batch.micro?");
}

TEST_CASE("keys of later versions are refused, never ignored") {
  const auto later = [](const std::string& lines) { return message_of(small_plan + lines); };
  CHECK(message_of(replaced(small_plan, "hidden = 48", "hidden = 48\nkv_heads = 8")) ==
        "plan.toml:4:1: model.kv_heads: not in this version; remove it");
  CHECK(later("[layout]\nrecompute = false\n") ==
        "plan.toml:12:1: layout.recompute: not in this version; remove it");
  CHECK(later("[layout]\nzero = 3\n") ==
        "plan.toml:12:1: layout.zero: expected an integer from 0 to 1; found 3, which is not in "
        "this version; nearest legal: layout.zero = 1");
  CHECK(later("[comm]\ntransport = 'nccl'\n") ==
        "plan.toml:12:1: comm.transport: expected \"auto\", \"ucx\", \"mpi\" or \"local\"; found "
        "\"nccl\", which is not in this version; nearest legal: comm.transport = \"ucx\"");
}

TEST_CASE("wrong types say what was expected, what was found, and where") {
  const auto fault = [](const std::string& from, const std::string& to) {
    return message_of(replaced(small_plan, from, to));
  };
  CHECK(fault("layers = 2", "layers = \"two\"") ==
        "plan.toml:2:1: model.layers: expected an integer from 1 to 1024, such as 2; found the "
        "string \"two\"");
  CHECK(fault("layers = 2", "layers = 2.0") ==
        "plan.toml:2:1: model.layers: expected an integer from 1 to 1024, such as 2; found the "
        "number 2.0");
  CHECK(fault("lr = 1e-3", "lr = true") ==
        "plan.toml:8:1: optimizer.lr: expected a finite number greater than 0, such as 1e-3; found "
        "true");
  CHECK(fault("lr = 1e-3", "lr = { a = 1 }") ==
        "plan.toml:8:1: optimizer.lr: expected a finite number greater than 0, such as 1e-3; found "
        "a table");
  CHECK(fault("lr = 1e-3", "lr = 2024-05-01") ==
        "plan.toml:8:1: optimizer.lr: expected a finite number greater than 0, such as 1e-3; found "
        "a date or time");
  CHECK(fault("lr = 1e-3", "lr = 1\nbetas = [0.9]") ==
        "plan.toml:9:1: optimizer.betas: expected [a, b], each a number in [0, 1), such as [0.9, "
        "0.999]; found an array of 1 value");
  CHECK(fault("lr = 1e-3", "lr = 1\nschedule = \"cosine\"") ==
        "plan.toml:9:1: optimizer.schedule: expected a table with the keys kind, warmup_steps, "
        "final_fraction; found the string \"cosine\"");
  CHECK(fault("micro = 16", "micro = 16\nlast = \"pda\"") ==
        "plan.toml:7:1: batch.last: expected \"drop\" or \"pad\"; found \"pda\"; nearest legal: "
        "batch.last = \"pad\"");
  CHECK(fault("micro = 16", "micro = 16\nlast = 3") ==
        "plan.toml:7:1: batch.last: expected \"drop\" or \"pad\"; found the integer 3");
  CHECK(message_of(with_line("[numerics]\nseed = -1")) ==
        "plan.toml:12:1: numerics.seed: expected an integer from 0 to 72057594037927935; found -1; "
        "nearest legal: numerics.seed = 0");
  CHECK(message_of(with_line("[task]\naugment = \"yes\"")) ==
        "plan.toml:12:1: task.augment: expected true or false, such as true; found the string "
        "\"yes\"");
  CHECK(message_of("model = 3\n")
            .starts_with("plan.toml:1:1: model: expected a table with the keys kind, layers, "
                         "hidden, heads, patch, mlp_ratio, dropout, tied; found the integer 3"));
}

TEST_CASE("keys of the ViT") {
  const std::string vit = replaced(small_plan, "[model]\n", "[model]\nkind = \"vit\"\n");
  CHECK(message_of(vit) ==
        "plan.toml: model.heads: missing; expected an integer from 1 to 65536, such as 8");
  const Plan plan = read(vit, {"model.heads=4"});
  CHECK(plan.model.heads == 4);
  CHECK(plan.model.patch == 4);
  CHECK(message_of(replaced(small_plan, "hidden = 48", "hidden = 48\nheads = 4\npatch = 4")) ==
        "plan.toml:4:1: model.heads: model.kind = \"mlp\" does not use it; remove it, or set "
        "model.kind = \"vit\"\n"
        "plan.toml:5:1: model.patch: model.kind = \"mlp\" does not use it; remove it, or set "
        "model.kind = \"vit\"");
  // Not where the kind itself is wrong.
  CHECK(message_of(replaced(vit, "vit\"\n", "vti\"\nheads = 4\n")) ==
        "plan.toml:2:1: model.kind: expected \"mlp\", \"vit\", \"text_encoder\" or \"gpt\"; found "
        "\"vti\"; nearest legal: model.kind = \"vit\"");
  CHECK(message_of(vit, {"model.heads=6"}) ==
        "--set model.heads=6: numerics.shards: expected a divisor of model.heads 6, so 1, 2, 3 or "
        "6; found 4; nearest legal: numerics.shards = 3 or 6, or model.heads = 4 or 8");
}

TEST_CASE("stages are a word or a list") {
  const auto fault = [](const std::string& value) {
    return message_of(with_line("[layout]\npp = 2\nstages = " + value));
  };
  CHECK(fault("\"even\"") == "legal");
  CHECK(fault("\"measured\"") == "legal");
  CHECK(fault("[1, 1]") == "legal");
  const std::string expected =
      "plan.toml:13:1: layout.stages: expected \"even\", \"measured\" or a list of integers from 1 to "
      "1024, such as [3, 3]; found ";
  CHECK(fault("\"evn\"") == expected + "the string \"evn\"");
  CHECK(fault("[]") == expected + "an array of 0 values");
  CHECK(fault("[0.5, 1.5]") == expected + "an array of 2 values");
  CHECK(fault("[1, \"a\"]") == expected + "an array of 2 values");
  CHECK(fault("2.5") == expected + "the number 2.5");
  CHECK(fault("2") ==
        "plan.toml:13:1: layout.stages: expected \"even\", \"measured\" or a list of integers from 1 to 1024; "
        "found 2; nearest legal: layout.stages = \"even\"");
  CHECK(fault("[0, 2]") ==
        "plan.toml:13:1: layout.stages: expected \"even\", \"measured\" or a list of integers from 1 to 1024; "
        "found [0, 2]; nearest legal: layout.stages = \"even\"");
  CHECK(fault("[1, 2]").starts_with(
      "plan.toml:13:1: layout.stages: expected 2 numbers for layout.pp = 2 that "
      "add up to model.layers = 2; found [1, 2], 2 numbers with the sum 3"));
  CHECK(message_of(with_line("[layout]\nzero = 2.0")) ==
        "plan.toml:12:1: layout.zero: expected an integer from 0 to 1, such as 1; found the number "
        "2.0");
}

TEST_CASE("keys of integrity") {
  CHECK(read(small_plan).integrity == IntegrityPlan{100, "stop", 10});
  CHECK(read(with_line("[integrity]\nreplicas_every_steps = 0\non_nonfinite = 'skip'\n"
                       "max_skips = 3"))
            .integrity == IntegrityPlan{0, "skip", 3});
  const auto fault = [](const std::string& line) {
    return message_of(with_line("[integrity]\n" + line));
  };
  CHECK(fault("on_nonfinite = 'ignore'")
            .starts_with("plan.toml:12:1: integrity.on_nonfinite: expected \"stop\" or \"skip\"; "
                         "found \"ignore\""));
  CHECK(fault("on_nonfinite = 'skip'\nmax_skips = 0") ==
        "plan.toml:13:1: integrity.max_skips: expected an integer from 1 to 1073741824; found 0; "
        "nearest legal: integrity.max_skips = 1");
  CHECK(fault("replicas_every_steps = -1") ==
        "plan.toml:12:1: integrity.replicas_every_steps: expected an integer from 0 to 1073741824; "
        "found -1; nearest legal: integrity.replicas_every_steps = 0");
  // A limit of what the plan does not do.
  CHECK(fault("max_skips = 3").starts_with("plan.toml:12:1: integrity.max_skips: "));
}

TEST_CASE("keys of checkpoints") {
  CHECK(
      read(small_plan).checkpoint ==
      CheckpointPlan{.every_steps = 0, .every = {}, .keep = 2, .at_end = true, .read_back = true});
  CHECK_FALSE(read(small_plan).checkpoint.async);
  CHECK(
      read(with_line(
               "[checkpoint]\nevery_steps = 200\nevery = \"30m\"\noverhead = 0.02\nkeep = 3\n"
               "keep_every = 1000\nkeep_best = 1\nat_end = false\nread_back = false\nasync = true"))
          .checkpoint == CheckpointPlan{.every_steps = 200,
                                        .every = {1800},
                                        .overhead = 0.02,
                                        .keep = 3,
                                        .keep_every = 1000,
                                        .keep_best = 1,
                                        .at_end = false,
                                        .read_back = false,
                                        .async = true});
  const auto fault = [](const std::string& line) {
    return message_of(with_line("[checkpoint]\n" + line));
  };
  CHECK(fault("every_steps = -1") ==
        "plan.toml:12:1: checkpoint.every_steps: expected an integer from 0 to 1073741824; found "
        "-1; nearest legal: checkpoint.every_steps = 0");
  CHECK(fault("keep = 0") ==
        "plan.toml:12:1: checkpoint.keep: expected an integer from 1 to 1000; found 0; nearest "
        "legal: checkpoint.keep = 1");
  CHECK(fault("at_end = 1") ==
        "plan.toml:12:1: checkpoint.at_end: expected true or false, such as true; found the "
        "integer 1");
  CHECK(fault("evry_steps = 5") ==
        "plan.toml:12:1: checkpoint.evry_steps: unknown key; did you mean checkpoint.every_steps?");
}

TEST_CASE("an integer is a number too") {
  CHECK(read(replaced(small_plan, "1e-3", "1")).optimizer.lr == 1.0);
  CHECK(read(replaced(small_plan, "lr = 1e-3", "lr = 1\nbetas = [0, 0.5]")).optimizer.beta1 == 0);
}

TEST_CASE("missing keys") {
  CHECK(message_of("") ==
        "plan.toml: model.layers: missing; expected an integer from 1 to 1024, such as 2\n"
        "plan.toml: model.hidden: missing; expected an integer from 1 to 65536, such as 192\n"
        "plan.toml: batch.global: missing; expected an integer from 1 to 1073741824, such as 128\n"
        "plan.toml: batch.micro: missing; expected an integer from 1 to 1048576, such as 16\n"
        "plan.toml: optimizer.lr: missing; expected a finite number greater than 0, such as 1e-3\n"
        "plan.toml: run.steps: expected either run.steps or run.epochs; found neither: set one, "
        "such as run.epochs = 10");
}

TEST_CASE("faults of rules carry the line of the key they are about") {
  CHECK(message_of(replaced(small_plan, "128", "100"))
            .starts_with("plan.toml:5:1: batch.global: expected micro 16 x lanes 4"));
  // The shards are the default: the first key of the rule that the file does say.
  CHECK(message_of(replaced(small_plan, "hidden = 48", "hidden = 49\nmlp_ratio = 1"))
            .starts_with("plan.toml:3:1: numerics.shards: expected a feed-forward width"));
  CHECK(message_of(with_line("[layout]\ntp = 2"), {}, 4)
            .starts_with("plan.toml:12:1: layout: 4 ranks were started, the layout needs tp 2 x dp "
                         "1 x pp 1 = 2: start 2, or for 4: "));
  CHECK(message_of(with_line("epochs = 2")) ==
        "plan.toml:10:1: run.steps: expected either run.steps or run.epochs; found both: remove "
        "one");
}

TEST_CASE("a given key that is not used is refused even at its default") {
  CHECK(message_of(replaced(small_plan, "lr = 1e-3", "lr = 1e-3\nmomentum = 0.0")) ==
        "plan.toml:9:1: optimizer.momentum: optimizer.kind = \"adamw\" does not use it; remove it, "
        "or set optimizer.kind = \"sgd\"");
  CHECK(
      message_of(replaced(small_plan, "lr = 1e-3", "kind = \"sgd\"\nlr = 1\neps = 1e-8")) ==
      "plan.toml:10:1: optimizer.eps: optimizer.kind = \"sgd\" does not use it; remove it, or set "
      "optimizer.kind = \"adamw\"");
  CHECK(message_of(replaced(small_plan, "lr = 1e-3",
                            "lr = 1\nschedule = { kind = \"constant\", warmup_steps = 0 }")) ==
        "plan.toml:9:33: optimizer.schedule.warmup_steps: optimizer.schedule.kind = \"constant\" "
        "does not use it; remove it, or set optimizer.schedule.kind = \"cosine\"");
  // Not where the kind itself is wrong.
  CHECK(
      message_of(replaced(small_plan, "lr = 1e-3", "kind = \"lamb\"\nlr = 1\neps = 1e-8")) ==
      "plan.toml:8:1: optimizer.kind: expected \"sgd\" or \"adamw\"; found \"lamb\", which is not "
      "in this version; nearest legal: optimizer.kind = \"adamw\"");
}

TEST_CASE("all faults at once, in the order of the file, then overrides, then what is missing") {
  CHECK(message_of("[model]\nlayers = 0\nhidden = \"wide\"\n[batch]\nglobl = 128\nmicro = 16\n"
                   "[layout]\ntp = 5\nrecompute = true\n[run]\nsteps = 20\n",
                   {"optimizer.kind=adam", "layuot.dp=2"}) ==
        "plan.toml:2:1: model.layers: expected an integer from 1 to 1024; found 0; nearest legal: "
        "model.layers = 1\n"
        "plan.toml:3:1: model.hidden: expected an integer from 1 to 65536, such as 192; found the "
        "string \"wide\"\n"
        "plan.toml:5:1: batch.globl: unknown key; did you mean batch.global?\n"
        "plan.toml:8:1: layout.tp: expected at most one rank per shard: tp <= 4; found 5; nearest "
        "legal: layout.tp = 4\n"
        "plan.toml:9:1: layout.recompute: not in this version; remove it\n"
        "--set optimizer.kind=adam: optimizer.kind: expected \"sgd\" or \"adamw\"; found \"adam\"; "
        "nearest legal: optimizer.kind = \"adamw\"\n"
        "--set layuot.dp=2: layuot.dp: unknown key; did you mean layout.dp?\n"
        "plan.toml: optimizer.lr: missing; expected a finite number greater than 0, such as 1e-3");
}

TEST_CASE("what is not TOML") {
  CHECK(message_of("[model]\nlayers = = 2\n").starts_with("plan.toml:2:"));
  CHECK(message_of("[model]\nlayers = = 2\n").find("not TOML: ") != std::string::npos);
  CHECK(message_of("[model]\nlayers = 2\nlayers = 3\n").starts_with("plan.toml:3:"));
}

TEST_CASE("--set") {
  CHECK(read(small_plan, {"layout.tp=2", "layout.dp = 4"}).num_ranks() == 8);
  CHECK(read(small_plan, {"optimizer.lr=0.5"}).optimizer.lr == 0.5);
  CHECK(read(small_plan, {"optimizer.lr=1", "optimizer.lr=2"}).optimizer.lr == 2);
  CHECK(read(small_plan, {"optimizer.betas=[0.5, 0.25]"}).optimizer.beta2 == 0.25);
  CHECK(read(small_plan, {"layout.order=dp,tp,pp"}).layout.order == "dp,tp,pp");
  CHECK(read(small_plan, {"layout.pp=2", "layout.stages=[1, 1]"}).layout.stages ==
        std::vector<index_t>{1, 1});
  CHECK(read(small_plan, {"layout.stages=even"}).layout.stages.empty());
  CHECK(read(small_plan, {"layout.sequence_parallel=true"}).layout.sequence_parallel);
  CHECK(read(small_plan, {"comm.timeout_s=5"}).comm.timeout_s == 5.0);
  CHECK(read(small_plan, {"comm.transport=mpi"}).comm.transport == "mpi");
  CHECK(read(small_plan, {"comm.transport=\"mpi\""}).comm.transport == "mpi");
  CHECK(read(small_plan, {"task.path=/data/a b=c"}).task.path == "/data/a b=c");
  CHECK(read(small_plan, {"task.path="}).task.path == "");
  CHECK(read(small_plan, {"task.augment=false"}).task.augment == false);
  CHECK(read(small_plan, {"numerics.mode=fast"}).numerics.mode == NumericsMode::fast);
  CHECK(read(small_plan, {"name=5\nx=7"}).name == "5\nx=7");
  // An override takes the place of a value that is wrong in the file.
  CHECK(read(replaced(small_plan, "128", "\"many\""), {"batch.global=64"}).batch.global == 64);
}

TEST_CASE("--set of a table replaces all of it") {
  const std::string text = replaced(
      small_plan, "lr = 1e-3", "lr = 1e-3\nschedule = { kind = \"cosine\", warmup_steps = 9 }");
  CHECK(read(text, {"optimizer.schedule={ kind = \"constant\" }"}).optimizer.schedule ==
        SchedulePlan{});
  CHECK(read(text, {"optimizer.schedule.warmup_steps=3"}).optimizer.schedule.warmup_steps == 3);
  CHECK(message_of(text, {"optimizer.schedule={ kind = \"cosine\", warmup = 1 }"}) ==
        "--set optimizer.schedule={ kind = \"cosine\", warmup = 1 }: optimizer.schedule.warmup: "
        "unknown key; did you mean optimizer.schedule.warmup_steps?");
}

TEST_CASE("--set of one way to give the length replaces the other one in the file") {
  const Plan plan = read(small_plan, {"run.epochs=3"});
  CHECK(!plan.run.steps);
  CHECK(plan.run.epochs == 3);
  CHECK(message_of(small_plan, {"run.epochs=3", "run.steps=4"}).find("found both") !=
        std::string::npos);
}

TEST_CASE("a time limit is a text or whole seconds, beside any length") {
  const auto limit = [](const std::string& value) {
    const Plan plan = read(small_plan, {"run.time_limit=" + value});
    CHECK(plan.run.steps == 20);  // no override of the run's length
    return plan.run.time_limit.seconds;
  };
  CHECK(limit("3h55m") == 14100);
  CHECK(limit("\"2s\"") == 2);
  CHECK(limit("7200") == 7200);
  CHECK(limit("0") == 0);
  CHECK(to_toml(read(small_plan)).find("time_limit") == std::string::npos);
  const std::string expected =
      "run.time_limit: expected a time of d, h, m and s, or seconds (at most 366d; 0: none), such "
      "as \"3h55m\"; found ";
  for (const auto& [value, found] : {std::pair<std::string, std::string>{"3x", "the string \"3x\""},
                                     {"-1", "the integer -1"},
                                     {"31622401", "the integer 31622401"},
                                     {"1.5", "the number 1.5"},
                                     {"true", "true"}}) {
    CHECK(message_of(small_plan, {"run.time_limit=" + value}) ==
          "--set run.time_limit=" + value + ": " + expected + found);
  }
}

TEST_CASE("--set with faults") {
  CHECK(message_of(small_plan, {"layout.tp"}) ==
        "--set layout.tp: expected KEY=VALUE, such as --set layout.tp=2");
  CHECK(message_of(small_plan, {"=3"}) ==
        "--set =3: expected KEY=VALUE, such as --set layout.tp=2");
  CHECK(message_of(small_plan, {"layout.tp=two"}) ==
        "--set layout.tp=two: layout.tp: expected an integer from 1 to 3072, such as 1; found the "
        "string \"two\"");
  CHECK(message_of(small_plan, {"layout.recompute=true"}) ==
        "--set layout.recompute=true: layout.recompute: not in this version; remove it");
  CHECK(message_of(small_plan, {"checkpoint.async=2"}) ==
        "--set checkpoint.async=2: checkpoint.async: expected true or false, such as true; found "
        "the integer 2");
  CHECK(message_of(small_plan, {"layout=5"})
            .starts_with("--set layout=5: layout: expected a table with the keys tp, dp,"));
}

TEST_CASE("files") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "weft_test_plan_file";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "my-plan.toml") << small_plan;
  CHECK(load_plan(folder / "my-plan.toml").name == "my-plan");
  CHECK(load_plan(folder / "my-plan.toml", {"layout.tp=2"}, 2).layout.tp == 2);
  const auto message = [](const std::filesystem::path& path) {
    try {
      load_plan(path);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::usage);
      return std::string(error.what());
    }
    return std::string("legal");
  };
  CHECK(message(folder) == folder.string() + ": expected a plan (a TOML file); found a folder");
  CHECK(message(folder / "none.toml") ==
        (folder / "none.toml").string() +
            ": expected a plan (a TOML file); found no file that can be read");
  std::filesystem::remove_all(folder);
}

TEST_CASE("the plans that come with weft are legal on their layouts") {
  const std::filesystem::path plans = WEFT_TEST_PLANS;
  for (const auto& [tp, dp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 4}}) {
    CHECK(load_plan(plans / "cifar10-mlp.toml",
                    {"layout.tp=" + std::to_string(tp), "layout.dp=" + std::to_string(dp)}, tp * dp)
              .num_ranks() == tp * dp);
  }
  for (int tp = 1; tp <= 12; ++tp) {
    for (int dp = 1; dp <= 12; ++dp) {
      load_plan(plans / "cifar10-mlp-12.toml",
                {"layout.tp=" + std::to_string(tp), "layout.dp=" + std::to_string(dp)}, tp * dp);
    }
  }
  CHECK(load_plan(plans / "cifar10-mlp.toml").batch.micro == 16);
  const auto on = [&](const char* file, int tp, int dp, int pp) {
    return load_plan(plans / file,
                     {"layout.tp=" + std::to_string(tp), "layout.dp=" + std::to_string(dp),
                      "layout.pp=" + std::to_string(pp)},
                     tp * dp * pp);
  };
  for (const int pp : {1, 2, 3, 6}) {
    for (const int tp : {1, 2, 4}) on("cifar10-vit.toml", tp, 4, pp);
    for (const int tp : {1, 2, 3, 4, 6, 12}) on("cifar10-vit-12.toml", tp, 12, pp);
  }
  // The plan of the invariance tests: one microbatch a lane, 12 heads, 12 shards.
  const Plan twelve = load_plan(plans / "cifar10-vit-12.toml");
  CHECK(twelve.microbatches_per_lane() == 1);
  CHECK(twelve.num_steps() == 20);
}
