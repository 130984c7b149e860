// A checkpoint that was altered, cut, mixed up or is of another run: found by `ckpt verify` (code
// 5, the file's name), never loaded; the run goes on from the older one and says so, or stops where
// it was told to be strict. WEFT_FLIPS: bytes to flip; WEFT_FLIP_SEED: repeats what a failure
// printed.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
namespace fs = std::filesystem;

const SmallPlan small{.model = "vit", .hidden = 16, .steps = 6, .every_steps = 3, .keep = 3};

// A run with the checkpoints of steps 3 and 6, made once.
struct Good {
  std::string plan, run;
  Outcome outcome;
};

Good make_good(const Layout& layout, const std::string& name) {
  Good good{write_plan(small, "altered"), fresh_run(name), {}};
  const ProcessResult result = train(good.plan, good.run, layout);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  good.outcome = outcome_of(good.run);
  const std::vector<std::string> both = {step_folder(good.run, 3), step_folder(good.run, 6)};
  REQUIRE(valid_step_folders(good.run) == both);
  return good;
}

const Good& good_run() {
  static const Good good = make_good(layouts()[0], "altered-good");
  return good;
}

const Good& good_run_of_two() {
  static const Good good = make_good({2, "layout.dp=2 layout.zero=1"}, "altered-good-of-two");
  return good;
}

std::string copy_of(const Good& good) {
  const std::string run = fresh_run("altered");
  fs::copy(good.run, run, fs::copy_options::recursive);
  return run;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void require_found(const std::string& folder, const std::vector<std::string>& parts) {
  const ProcessResult result = run_weft("ckpt verify " + folder);
  INFO(result.out << result.text);
  CHECK(result.exit_code == 5);
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(contains(result.out + result.text, part));
  }
}

void require_strict_stops(const Good& good, const std::string& run) {
  const std::string before = read_file(run + "/run.jsonl");
  const ProcessResult result = train(good.plan, run, layouts()[0], "--resume auto --strict");
  INFO(result.text);
  CHECK(result.exit_code == 5);
  CHECK(read_file(run + "/run.jsonl") == before);
}

// From step 3, with a line that names the newer one, to the same end.
void require_fall_back(const Good& good, const std::string& run, const std::string& newer) {
  const ProcessResult result = train(good.plan, run, layouts()[0], "--resume auto");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.text, newer));
  CHECK(contains(result.text, "step-000000003"));
  CHECK(outcome_of(run) == good.outcome);
  CHECK(run_weft("ckpt verify " + step_folder(run, 6)).exit_code == 0);
}

// `alter` does something to the folder of step 6, after which `named` must be in what is said.
void require_refused(const Good& good, const std::function<void(const std::string&)>& alter,
                     const std::vector<std::string>& named) {
  const std::string run = copy_of(good);
  alter(step_folder(run, 6));
  require_found(step_folder(run, 6), named);
  require_strict_stops(good, run);
  require_fall_back(good, run, "step-000000006");
}

std::string shard(int number) { return "shard-0000" + std::to_string(number) + ".h5"; }

}  // namespace

TEST_CASE("one byte flipped anywhere") {
  const Good& good = good_run();
  const long given = number_from_environment("WEFT_FLIP_SEED", -1);
  const std::uint64_t seed =
      given >= 0 ? static_cast<std::uint64_t>(given) : std::random_device()();
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
  };
  const std::vector<std::string> names = files_of(step_folder(good.run, 6));
  REQUIRE(names.size() == 3);
  const long flips = number_from_environment("WEFT_FLIPS", 45);
  for (long i = 0; i < flips; ++i) {
    const std::string run = copy_of(good);
    // Each file as often: a byte of the small ones counts as much as one of the large ones.
    const std::string name = names[static_cast<std::size_t>(i) % names.size()];
    const std::string path = step_folder(run, 6) + "/" + name;
    std::string bytes = read_file(path);
    // Half of the places are in the first bytes, where the formats have their own.
    const auto size = static_cast<std::uint64_t>(bytes.size());
    const std::uint64_t at = below(i % 2 == 0 ? size : std::min<std::uint64_t>(size, 4096));
    const auto change = static_cast<char>(1 + below(255));
    bytes[at] = static_cast<char>(bytes[at] ^ change);
    write_file(path, bytes);
    INFO("WEFT_FLIP_SEED=" << seed << ", flip " << i << ": byte " << at << " of " << name);
    require_found(step_folder(run, 6), {name});
    if (i % 8 == 0) require_strict_stops(good, run);
    require_fall_back(good, run, "step-000000006");
  }
}

TEST_CASE("shards that are missing, cut, too long, of another rank or another step") {
  const Good& good = good_run_of_two();
  const auto resized = [](double factor, long more) {
    return [=](const std::string& folder) {
      const std::string path = folder + "/" + shard(1);
      const auto size = static_cast<double>(fs::file_size(path));
      fs::resize_file(path, static_cast<std::uintmax_t>(static_cast<long>(size * factor) + more));
    };
  };
  require_refused(good, [](const auto& folder) { fs::remove(folder + "/" + shard(1)); },
                  {shard(1)});
  require_refused(good, resized(0.0, 0), {shard(1)});
  require_refused(good, resized(0.5, 0), {shard(1)});
  require_refused(good, resized(1.0, -1), {shard(1)});
  require_refused(good, resized(1.0, 1), {shard(1)});
  require_refused(good,
                  [](const std::string& folder) {
                    fs::rename(folder + "/" + shard(0), folder + "/other");
                    fs::rename(folder + "/" + shard(1), folder + "/" + shard(0));
                    fs::rename(folder + "/other", folder + "/" + shard(1));
                  },
                  {"shard-0000"});
  require_refused(good,
                  [&](const std::string& folder) {
                    fs::copy_file(step_folder(good.run, 3) + "/" + shard(1),
                                  folder + "/" + shard(1), fs::copy_options::overwrite_existing);
                  },
                  {shard(1)});
}

TEST_CASE("an index that is missing or of another step") {
  const Good& good = good_run();
  require_refused(good, [](const auto& folder) { fs::remove(folder + "/index.h5"); }, {"index.h5"});
  require_refused(good,
                  [&](const std::string& folder) {
                    fs::copy_file(step_folder(good.run, 3) + "/index.h5", folder + "/index.h5",
                                  fs::copy_options::overwrite_existing);
                  },
                  {"index.h5"});
}

TEST_CASE("a manifest that is missing, empty, cut off, or of a later version of the format") {
  const Good& good = good_run();
  const auto written = [](const std::string& bytes) {
    return [=](const std::string& folder) { write_file(folder + "/MANIFEST", bytes); };
  };
  const std::string whole = read_file(step_folder(good.run, 6) + "/MANIFEST");
  require_refused(good, [](const auto& folder) { fs::remove(folder + "/MANIFEST"); }, {"MANIFEST"});
  require_refused(good, written(""), {"MANIFEST", "empty"});
  require_refused(good, written(whole.substr(0, whole.size() / 2)), {"MANIFEST"});
  require_refused(good, written(whole.substr(0, whole.size() - 1)), {"MANIFEST"});

  const auto last_line = whole.rfind('\n', whole.size() - 2) + 1;
  auto manifest = nlohmann::json::parse(whole.substr(0, last_line));
  const auto with_hash = [](const std::string& object) {
    return object + "xxh3-128 " + weft::hash128(object.data(), object.size()).text() + "\n";
  };
  REQUIRE(with_hash(whole.substr(0, last_line)) == whole);
  manifest.at("version").at(0) = 2;
  require_refused(good, written(with_hash(manifest.dump(2) + "\n")), {"MANIFEST", "version 2.0"});
  // A hash that fits does not make a folder what it is not.
  manifest.at("version").at(0) = 1;
  manifest.at("step") = 5;
  require_refused(good, written(with_hash(manifest.dump(2) + "\n")), {"manifest", "step 5"});
}

TEST_CASE("a folder with the name of another step") {
  const Good& good = good_run();
  const std::string run = copy_of(good);
  fs::rename(step_folder(run, 6), step_folder(run, 5));
  require_found(step_folder(run, 5), {"step-000000005", "6"});
  require_strict_stops(good, run);
  require_fall_back(good, run, "step-000000005");
}

TEST_CASE("no checkpoint that is whole, none at all, a file that is not one of them") {
  const Good& good = good_run();
  std::string run = copy_of(good);
  for (const int step : {3, 6}) fs::resize_file(step_folder(run, step) + "/MANIFEST", 0);
  const std::string before = read_file(run + "/run.jsonl");
  const ProcessResult none = train(good.plan, run, layouts()[0], "--resume auto");
  INFO(none.text);
  CHECK(none.exit_code == 5);
  CHECK(contains(none.text, "step-000000003"));
  CHECK(contains(none.text, "step-000000006"));
  CHECK(read_file(run + "/run.jsonl") == before);

  const ProcessResult missing = run_weft("ckpt verify " + step_folder(run, 7));
  INFO(missing.text);
  CHECK(missing.exit_code == 5);
  CHECK(contains(missing.text, "step-000000007"));

  run = copy_of(good);
  const ProcessResult absent = train(good.plan, run, layouts()[0], "--resume 4");
  INFO(absent.text);
  CHECK(absent.exit_code == 5);
  CHECK(contains(absent.text, "--resume 4"));
  CHECK(contains(absent.text, "3 6"));
}

TEST_CASE("an older step by its number") {
  const Good& good = good_run();
  const std::string run = copy_of(good);
  const ProcessResult result = train(good.plan, run, layouts()[0], "--resume 3");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == good.outcome);
}

TEST_CASE("a folder that may not be read") {
  const std::string nobody = "setpriv --reuid=65534 --clear-groups ";
  if (run_shell(nobody + WEFT_PROGRAM " --version").exit_code != 0) {
    WARN("not tested: cannot run the program as a user without rights");
    return;
  }
  const std::string run = copy_of(good_run());
  const std::string folder = step_folder(run, 6);
  fs::permissions(folder + "/" + shard(0), fs::perms::none);
  const ProcessResult file = run_shell(nobody + WEFT_PROGRAM " ckpt verify " + folder);
  fs::permissions(folder, fs::perms::none);
  const ProcessResult all = run_shell(nobody + WEFT_PROGRAM " ckpt verify " + folder);
  fs::permissions(folder, fs::perms::owner_all);
  INFO(file.text << all.text);
  CHECK(file.exit_code == 5);
  CHECK(contains(file.out + file.text, shard(0)));
  CHECK(contains(file.out + file.text, "Permission denied"));
  CHECK(all.exit_code == 5);
  CHECK(contains(all.out + all.text, "step-000000006"));
  CHECK(contains(all.out + all.text, "Permission denied"));
}

namespace {

// Refused, saying what differs; nothing is changed.
void require_plan_refused(const std::string& plan, const std::string& more,
                          const std::vector<std::string>& parts,
                          const Layout& layout = layouts()[0]) {
  const std::string run = copy_of(good_run());
  const std::string before = read_file(run + "/run.jsonl");
  const ProcessResult result = train(plan, run, layout, "--resume auto " + more);
  INFO(more << "\n" << result.text);
  CHECK(result.exit_code == 2);
  CHECK_FALSE(contains(result.text, "passed over"));
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(contains(result.text, part));
  }
  CHECK(read_file(run + "/run.jsonl") == before);
  CHECK(valid_step_folders(run) == step_folders(run));
}

}  // namespace

TEST_CASE("the checkpoint of another plan, with and without leave") {
  const std::string& plan = good_run().plan;
  const std::string flag = "--allow-plan-change";
  require_plan_refused(plan, "--set optimizer.lr=0.01", {"optimizer", "lr", flag});
  require_plan_refused(plan, "--set numerics.shards=2", {"numerics", "shards", flag});
  require_plan_refused(plan, "--set numerics.lanes=2", {"numerics", "lanes", flag});
  require_plan_refused(plan, "--set batch.micro=1", {"batch", "micro", flag});
  require_plan_refused(plan, "--set batch.global=32", {"batch", "global", flag});
  require_plan_refused(plan, "--set numerics.seed=2", {"numerics", "seed", flag});

  const std::string run = copy_of(good_run());
  fs::remove_all(step_folder(run, 6));
  const ProcessResult result =
      train(plan, run, layouts()[0], "--resume auto --set optimizer.lr=0.01 " + flag);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run).state_hash != good_run().outcome.state_hash);
}

TEST_CASE("the checkpoint of another model, also with leave") {
  SmallPlan wide = small;
  wide.hidden = 32;
  const std::string plan = write_plan(wide, "altered-wide");
  require_plan_refused(plan, "", {"hidden"});
  // Of the state itself: no flag makes 16 columns 32.
  require_plan_refused(plan, "--allow-plan-change", {"16", "32"});
  SmallPlan other = small;
  other.model = "mlp";
  require_plan_refused(write_plan(other, "altered-mlp"), "--allow-plan-change",
                       {"the tensor", "another model"});
  // More than this model has: no stage misses it, only all of them together.
  const std::string& same = good_run().plan;
  const std::string flag = "--allow-plan-change ";
  for (const Layout& layout : {layouts()[0], Layout{2, "layout.pp=2"}}) {
    require_plan_refused(same, flag + "--set optimizer.kind=sgd --set optimizer.momentum=0",
                         {"(exp_avg)", "another model or optimizer"}, layout);
  }
  require_plan_refused(same, flag + "--set model.layers=1", {"block.1.", "another model"});
}
