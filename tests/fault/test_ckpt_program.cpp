// `weft ckpt` as a user starts it: which command does what, and the exit codes that scripts rely
// on.
#include <catch2/catch.hpp>

#include "tests/fault/checkpoint_run.hpp"

using namespace weft::test;

namespace {

// Saved after 2, 4 and 6 steps.
const std::string& saved_run() {
  static const std::string run = [] {
    const SmallPlan plan{.model = "mlp", .keep = 3};
    const std::string folder = fresh_run("ckpt-program");
    const ProcessResult result =
        train(write_plan(plan, "ckpt-program"), folder, {2, "layout.tp=2"});
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    return folder;
  }();
  return run;
}

int code_of(const std::string& arguments) { return run_weft("ckpt " + arguments).exit_code; }

}  // namespace

TEST_CASE("ls and inspect") {
  const ProcessResult ls = run_weft("ckpt ls " + saved_run() + " --json");
  CHECK(ls.exit_code == 0);
  const auto list = ls.json().at("checkpoints");
  REQUIRE(list.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const int step = 6 - 2 * static_cast<int>(i);
    CHECK(list[i].at("step") == step);
    const ProcessResult inspect =
        run_weft("ckpt inspect " + step_folder(saved_run(), step) + " --json");
    CHECK(inspect.exit_code == 0);
    CHECK(inspect.json().at("id") == list[i].at("id"));
    CHECK(inspect.json().at("step") == step);
  }
  const ProcessResult pieces = run_weft("ckpt inspect " + step_folder(saved_run(), 6) +
                                        " --tensor block.1.up.weight --json");
  CHECK(pieces.exit_code == 0);
  CHECK(pieces.json().at("pieces").size() >= 3);
  CHECK(code_of("inspect " + step_folder(saved_run(), 6) + " --tensor nothing") == 2);
}

TEST_CASE("verify and diff") {
  const std::string two = step_folder(saved_run(), 2), four = step_folder(saved_run(), 4);
  CHECK(code_of("verify " + two) == 0);
  CHECK(code_of("diff " + two + " " + two) == 0);
  const ProcessResult differ = run_weft("ckpt diff " + two + " " + four + " --json");
  CHECK(differ.exit_code == 1);
  CHECK(differ.json().at("equal") == false);
  CHECK(differ.json().at("steps") == nlohmann::json{2, 4});
}

TEST_CASE("what is not there, and what is not a command") {
  const std::string missing = step_folder(saved_run(), 5), two = step_folder(saved_run(), 2);
  for (const std::string& arguments : {"ls " + missing, "inspect " + missing, "verify " + missing,
                                       "diff " + two + " " + missing}) {
    const ProcessResult result = run_weft("ckpt " + arguments);
    INFO(arguments << "\n" << result.text);
    CHECK(result.exit_code == 5);
    CHECK(contains(result.text, missing));
  }
  for (const char* arguments :
       {"", "prune", "ls", "verify", "diff", "reshard", "export", "import", "nonsense"}) {
    INFO(arguments);
    CHECK(code_of(arguments) == 2);
  }
  CHECK(code_of("diff " + two) == 2);
}

TEST_CASE("reshard for another layout, and resume from it") {
  const std::string source = step_folder(saved_run(), 4), run = fresh_run("ckpt-reshard");
  const std::string made = step_folder(run, 4);
  const std::string layout = " --set layout.tp=2 --set layout.dp=2 --set layout.zero=1";
  const ProcessResult result =
      run_weft("ckpt reshard " + source + " --to " + made + layout + " --json");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(result.json().at("shards") == 4);
  CHECK(code_of("verify " + made) == 0);
  CHECK(code_of("diff " + source + " " + made) == 0);
  CHECK(code_of("reshard " + source + " --to " + made + layout) == 2);
  CHECK(code_of("reshard " + source + " --to " + run + "/new --set layout.tp=7") == 2);
  // A run that begins with it ends as the one that it is from.
  const SmallPlan plan{.model = "mlp", .keep = 3};
  const ProcessResult resumed =
      train(write_plan(plan, "ckpt-program"), run, {2, "layout.dp=2"}, "--resume auto");
  INFO(resumed.text);
  REQUIRE(resumed.exit_code == 0);
  CHECK(contains(resumed.text, "resumed from " + made));
  CHECK(code_of("diff " + step_folder(run, 6) + " " + step_folder(saved_run(), 6)) == 0);
  // The shards are those that such a run writes itself.
  const std::string other = fresh_run("ckpt-reshard-native");
  REQUIRE(train(write_plan({.model = "mlp", .steps = 4}, "ckpt-native"), other,
                {4, "layout.tp=2 layout.dp=2 layout.zero=1"})
              .exit_code == 0);
  for (const char* tensor : {"block.1.up.weight", "head.weight", "final_norm.gain"}) {
    const std::string inspect = std::string(" --tensor ") + tensor + " --json";
    CHECK(run_weft("ckpt inspect " + made + inspect).json() ==
          run_weft("ckpt inspect " + step_folder(other, 4) + inspect).json());
  }
}

TEST_CASE("export, import, export: the same bytes; and training from what was imported") {
  const std::string folder = fresh_run("ckpt-exchange");
  REQUIRE(run_shell("mkdir -p " + folder).exit_code == 0);
  const std::string plan = write_plan({.model = "mlp", .keep = 3}, "ckpt-program");
  const std::string plan_file = plan.substr(0, plan.find(' '));
  const std::string first = folder + "/1.safetensors", second = folder + "/2.safetensors";
  const std::string run = folder + "/run", made = step_folder(run, 0);
  const std::string export_to = " --format safetensors --to ";
  REQUIRE(code_of("export " + step_folder(saved_run(), 6) + export_to + first) == 0);
  const ProcessResult import = run_weft("ckpt import " + first + " --plan " + plan_file +
                                        " --set layout.tp=2 --to " + made + " --json");
  INFO(import.text);
  REQUIRE(import.exit_code == 0);
  CHECK(import.json().at("shards") == 2);
  CHECK(code_of("verify " + made) == 0);
  REQUIRE(code_of("export " + made + export_to + second) == 0);
  CHECK(run_shell("cmp " + first + " " + second).exit_code == 0);
  // Values are those of the checkpoint that they are from, moments are not.
  const ProcessResult diff =
      run_weft("ckpt diff " + step_folder(saved_run(), 6) + " " + made + " --json");
  const nlohmann::json compared = diff.json();
  CHECK_FALSE(compared.at("tensors").empty());
  for (const auto& tensor : compared.at("tensors"))
    if (tensor.at("kind") == "value") CHECK(tensor.at("result") == "equal");

  const std::string evaluate = "eval " + plan + " --split validation --json --checkpoint ";
  const ProcessResult a = run_weft(evaluate + step_folder(saved_run(), 6));
  const ProcessResult b = run_weft(evaluate + made);
  INFO(a.text << b.text);
  REQUIRE((a.exit_code == 0 && b.exit_code == 0));
  CHECK(a.json().at("metrics") == b.json().at("metrics"));
  CHECK(b.json().at("step") == 0);
  // The same on two layouts; nothing warns of other data, builds or plans.
  std::string hash;
  for (const Layout& layout : {Layout{1, ""}, Layout{2, "layout.dp=2 layout.zero=1"}}) {
    const std::string copy = run + std::to_string(layout.num_ranks);
    REQUIRE(run_shell("mkdir -p " + copy + " && cp -r " + run + "/checkpoints " + copy).exit_code ==
            0);
    const ProcessResult trained = train(plan, copy, layout, "--resume auto");
    INFO(trained.text);
    REQUIRE(trained.exit_code == 0);
    CHECK(!contains(trained.text, "WARNING"));
    const Outcome outcome = outcome_of(copy);
    CHECK(outcome.loss_bits.size() == 6);
    if (hash.empty()) hash = outcome.state_hash;
    CHECK(outcome.state_hash == hash);
  }
  CHECK(hash != outcome_of(saved_run()).state_hash);
}

TEST_CASE("import of what does not fit, and of what is damaged") {
  const std::string folder = fresh_run("ckpt-import-faults");
  REQUIRE(run_shell("mkdir -p " + folder).exit_code == 0);
  const std::string file = folder + "/f.safetensors", to = folder + "/made";
  REQUIRE(code_of("export " + step_folder(saved_run(), 2) + " --format safetensors --to " + file) ==
          0);
  const auto import_of = [&](const std::string& path, const SmallPlan& plan,
                             const std::string& more = "") {
    const std::string text = write_plan(plan, "ckpt-import");
    return run_weft("ckpt import " + path + " --plan " + text.substr(0, text.find(' ')) + " --to " +
                    to + more);
  };
  const ProcessResult other = import_of(file, {.model = "vit"});
  CHECK(other.exit_code == 2);
  CHECK(contains(other.text, "expected the tensor "));
  const ProcessResult wider = import_of(file, {.model = "mlp", .hidden = 32});
  CHECK(wider.exit_code == 2);
  CHECK(contains(wider.text, "of another model than the plan's"));
  REQUIRE(run_shell("head -c 5000 " + file + " > " + folder + "/cut").exit_code == 0);
  const ProcessResult cut = import_of(folder + "/cut", {.model = "mlp"});
  CHECK(cut.exit_code == 5);
  CHECK(contains(cut.text, folder + "/cut"));
  CHECK(import_of(folder + "/none", {.model = "mlp"}).exit_code == 5);
  CHECK(import_of(step_folder(saved_run(), 2), {.model = "mlp"}).exit_code == 5);
  CHECK(run_shell("test ! -e " + to).exit_code == 0);
  CHECK(import_of(file, {.model = "mlp"}).exit_code == 0);
  CHECK(import_of(file, {.model = "mlp"}).exit_code == 2);
}

TEST_CASE("prune") {
  const std::string run = fresh_run("ckpt-prune");
  REQUIRE(
      run_shell("mkdir -p " + run + " && cp -r " + saved_run() + "/checkpoints " + run).exit_code ==
      0);
  const ProcessResult dry = run_weft("ckpt prune " + run + " --keep 1 --dry-run --json");
  CHECK(dry.exit_code == 0);
  CHECK(dry.json().at("removed") == nlohmann::json{4, 2});
  CHECK(step_folders(run).size() == 3);
  CHECK(code_of("prune " + run) == 2);
  CHECK(code_of("prune " + run + " --keep 0") == 2);
  // A pin takes one step: what follows is the run.
  const ProcessResult pinned =
      run_weft("ckpt prune --pin 4 --keep 1 --pin 2 " + run + " --dry-run --json");
  CHECK(pinned.exit_code == 0);
  CHECK(pinned.json().at("removed").empty());
  CHECK(code_of("prune --keep 1 --pin 2 4 " + run) == 2);
  CHECK(code_of("prune " + run + " --keep 1 --pin 2 --json") == 0);
  CHECK(step_folders(run) == std::vector{step_folder(run, 2), step_folder(run, 6)});
}
