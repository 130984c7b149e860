// Plans as TOML: every key out and in again, every kind of slip with its place and its nearest
// legal value, --set, and the hash of a plan.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "core/error.hpp"
#include "io/plan_file.hpp"
#include "parallel/plan/plan_keys.hpp"

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

// A plan in which every key differs from its default.
Plan unusual_plan(bool adamw) {
  Plan plan;
  plan.name = "odd \"name\"\\ \x01 \xc3\xa9";
  plan.task = {.dataset = "cifar10",
               .path = "C:\\data\t\"x\"",
               .train = 40001,
               .validation = 4999,
               .split_seed = (std::uint64_t{1} << 56) - 1,
               .augment = false};
  plan.model = {.kind = "mlp", .layers = 3, .hidden = 60, .mlp_ratio = 5, .dropout = 0.1};
  plan.batch = {.global = 180, .micro = 5, .last = LastBatch::pad};
  plan.numerics = {.mode = NumericsMode::fast,
                   .shards = 12,
                   .lanes = 6,
                   .dtype = "f32",
                   .seed = 123456789012345};
  plan.optimizer.kind = adamw ? "adamw" : "sgd";
  plan.optimizer.lr = 0.1 + 0.2;
  plan.optimizer.weight_decay = 1.0 / 3;
  plan.optimizer.clip_norm = 5e-324;
  if (adamw) {
    plan.optimizer.beta1 = 0.12345678901234567;
    plan.optimizer.beta2 = 1 - 1e-16;
    plan.optimizer.eps = std::numeric_limits<double>::max();
  } else {
    plan.optimizer.momentum = 1 - 1e-16;
  }
  plan.optimizer.schedule = {"cosine", 7, 1.0 / 7};
  plan.run.epochs = 11;
  plan.eval.every_epochs = 0;
  plan.layout = {.tp = 2, .dp = 3, .threads = 4, .order = "dp,tp"};
  plan.comm.transport = "mpi";
  return plan;
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

TEST_CASE("every key goes out and in again with its bits") {
  for (const bool adamw : {true, false}) {
    const Plan plan = unusual_plan(adamw);
    REQUIRE(validate(plan, std::nullopt).empty());
    const std::string text = to_toml(plan);
    INFO(text);
    CHECK(read(text) == plan);
    const Plan defaults;
    for (const PlanKey& key : plan_keys()) {
      if (!is_used(key, plan) || key.name == "run.steps") continue;
      if (std::holds_alternative<Choices>(key.legal) &&
          std::get<Choices>(key.legal).now.size() == 1)
        continue;
      const bool is_kind = key.name == "optimizer.kind" && adamw;
      if (!is_kind) CHECK(value_text(key, plan) != value_text(key, defaults));
      const std::string last = key.name.substr(key.name.find('.') + 1);
      CHECK(text.find("\n" + last + " = ") != std::string::npos);
    }
  }
  CHECK(read(to_toml(read(small_plan))) == read(small_plan));
}

TEST_CASE("numbers keep their bits") {
  std::mt19937_64 generator(7);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bits = generator() & ~(std::uint64_t{1} << 63);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    Plan plan = unusual_plan(true);
    plan.optimizer.lr = value;
    if (!validate(plan, std::nullopt).empty()) continue;
    const Plan again = read(to_toml(plan));
    CHECK(std::memcmp(&again.optimizer.lr, &value, sizeof value) == 0);
  }
  CHECK(number_text(-0.0) == "-0.0");
  CHECK(number_text(1) == "1.0");
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
  CHECK(
      message_of(with_line("[layout]\nzreo = 1")) ==
      "plan.toml:12:1: layout.zreo: unknown key; did you mean layout.zero (not in this version)?");
  CHECK(message_of("\"batch.micro\" = 4\n" + small_plan) ==
        "plan.toml:1:1: \"batch.micro\": unknown key; did you mean batch.micro?");
}

TEST_CASE("keys of later versions are refused, never ignored") {
  const auto later = [](const std::string& lines) { return message_of(small_plan + lines); };
  CHECK(message_of(replaced(small_plan, "hidden = 48", "hidden = 48\nheads = 8\npatch = 4")) ==
        "plan.toml:4:1: model.heads: not in this version; remove it\n"
        "plan.toml:5:1: model.patch: not in this version; remove it");
  for (const char* key : {"pp = 1", "zero = 0", "schedule = '1f1b'", "sequence_parallel = false",
                          "stages = [1, 1]"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find(' '));
    CHECK(later(std::string("[layout]\n") + key + '\n') ==
          "plan.toml:12:1: layout." + name + ": not in this version; remove it");
  }
  CHECK(later("[checkpoint]\nevery_steps = 200\nkeep = 3\n") ==
        "plan.toml:11:2: checkpoint: not in this version; remove it");
  CHECK(later("[task]\ntarget = { metric = 'macro_f1', at_least = 0.6 }\n") ==
        "plan.toml:12:1: task.target: not in this version; remove it");
  CHECK(later("[comm]\ntransport = 'ucx'\n") ==
        "plan.toml:12:1: comm.transport: expected \"auto\", \"mpi\" or \"local\"; found \"ucx\", "
        "which is not in this version; nearest legal: comm.transport = \"auto\"");
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
                         "hidden, mlp_ratio, "
                         "dropout; found the integer 3"));
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
                         "1 = 2: start 2, or for 4: "));
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
                   "[layout]\ntp = 5\npp = 2\n[run]\nsteps = 20\n",
                   {"optimizer.kind=adam", "layuot.dp=2"}) ==
        "plan.toml:2:1: model.layers: expected an integer from 1 to 1024; found 0; nearest legal: "
        "model.layers = 1\n"
        "plan.toml:3:1: model.hidden: expected an integer from 1 to 65536, such as 192; found the "
        "string \"wide\"\n"
        "plan.toml:5:1: batch.globl: unknown key; did you mean batch.global?\n"
        "plan.toml:8:1: layout.tp: expected at most one rank per shard: tp <= 4; found 5; nearest "
        "legal: layout.tp = 4\n"
        "plan.toml:9:1: layout.pp: not in this version; remove it\n"
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
  CHECK(read(small_plan, {"layout.order=dp,tp"}).layout.order == "dp,tp");
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

TEST_CASE("--set with faults") {
  CHECK(message_of(small_plan, {"layout.tp"}) ==
        "--set layout.tp: expected KEY=VALUE, such as --set layout.tp=2");
  CHECK(message_of(small_plan, {"=3"}) ==
        "--set =3: expected KEY=VALUE, such as --set layout.tp=2");
  CHECK(message_of(small_plan, {"layout.tp=two"}) ==
        "--set layout.tp=two: layout.tp: expected an integer from 1 to 3072, such as 1; found the "
        "string \"two\"");
  CHECK(message_of(small_plan, {"layout.pp=2"}) ==
        "--set layout.pp=2: layout.pp: not in this version; remove it");
  CHECK(message_of(small_plan, {"checkpoint.keep=2"}) ==
        "--set checkpoint.keep=2: checkpoint.keep: not in this version; remove it");
  CHECK(message_of(small_plan, {"layout=5"})
            .starts_with("--set layout=5: layout: expected a table with the keys tp, dp,"));
}

TEST_CASE("fingerprints") {
  const Plan plan = read(small_plan);
  CHECK(plan_fingerprint(plan).size() == 32);
  Plan moved = plan;  // another layout of the same plan, elsewhere
  moved.layout = {.tp = 4, .dp = 2, .threads = 2, .order = "dp,tp"};
  moved.comm.transport = "mpi";
  moved.name = "other";
  moved.task.path = "/elsewhere";
  CHECK(plan_fingerprint(plan) == plan_fingerprint(moved));
  CHECK(plan_fingerprint(plan, FingerprintOf::all) != plan_fingerprint(moved, FingerprintOf::all));

  // Every key counts.
  for (const bool adamw : {true, false}) {
    const Plan odd = unusual_plan(adamw);
    for (const PlanKey& key : plan_keys()) {
      Plan other = odd;
      const PlanField& field = key.field;
      if (auto* text = std::get_if<std::string& (*)(Plan&)>(&field))
        (*text)(other) += "x";
      else if (auto* flag = std::get_if<bool& (*)(Plan&)>(&field))
        (*flag)(other) ^= true;
      else if (auto* count = std::get_if<index_t& (*)(Plan&)>(&field))
        (*count)(other) += 1;
      else if (auto* maybe = std::get_if<std::optional<index_t>& (*)(Plan&)>(&field))
        (*maybe)(other) = 99;
      else if (auto* seed = std::get_if<std::uint64_t& (*)(Plan&)>(&field))
        (*seed)(other) -= 1;
      else if (auto* number = std::get_if<double& (*)(Plan&)>(&field))
        (*number)(other) /= 2;
      else if (auto* pair = std::get_if<NumberPair>(&field))
        pair->second(other) /= 2;
      else if (auto* mode = std::get_if<NumericsMode& (*)(Plan&)>(&field))
        (*mode)(other) = NumericsMode::exact;
      else if (auto* last = std::get_if<LastBatch& (*)(Plan&)>(&field))
        (*last)(other) = LastBatch::drop;
      INFO(key.name);
      CHECK((plan_fingerprint(odd, FingerprintOf::all) ==
             plan_fingerprint(other, FingerprintOf::all)) == !is_used(key, odd));
      const bool decides = key.scope == KeyScope::result && is_used(key, odd);
      CHECK((plan_fingerprint(odd) == plan_fingerprint(other)) == !decides);
    }
  }
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
}
