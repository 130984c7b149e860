// `weft ckpt ls | inspect | verify | diff` without the command line: exit codes, what people read,
// and the JSON, about checkpoints whose every element the test knows.
#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "apps/ckpt_command.hpp"
#include "io/checkpoint/pins.hpp"
#include "io/checkpoint/verify.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;
using Catch::Contains;
using nlohmann::json;

namespace fs = std::filesystem;

namespace {

const SomeModel& model() {
  static const SomeModel some{{"up", cut({8, 6}, 0)}, {"norm", whole({5})}};
  return some;
}
const StateLayout two{.shards = 2, .tp = 2};

struct Said {
  int exit_code = 0;
  std::string text, out;
  json object;
};

using Command = int (*)(const CkptOptions&, std::ostream&, std::ostream&);

Said run(Command command, CkptOptions options) {
  options.json = true;
  std::ostringstream text, out, people, none;
  Said said;
  said.exit_code = command(options, text, out);
  said.text = text.str();
  said.out = out.str();
  said.object = json::parse(said.out);
  // One line of JSON, and none unless it is asked for; people read the same.
  CHECK(said.out.find('\n') == said.out.size() - 1);
  options.json = false;
  CHECK(command(options, people, none) == said.exit_code);
  CHECK(none.str().empty());
  CHECK(people.str() == said.text);
  return said;
}

// That it does not open, in words; the error's code is Error(data).
std::string refusal(Command command, const CkptOptions& options) {
  std::ostringstream text, out;
  const auto error = error_of([&] { command(options, text, out); });
  CHECK(out.str().empty());
  if (!error) return "no error";
  return error->code() == ExitCode::data ? error->what() : "another exit code";
}

void alter(const std::string& path, std::size_t at) {
  std::string bytes = read_all(path);
  bytes.at(at) ^= 1;
  write_all(path, bytes);
}

// Values 0.5 i and moments 0, then what `change` makes of the values of "up".
std::string save_values(const std::string& folder, index_t step,
                        const std::function<void(float*)>& change) {
  on_state_ranks(model(), {}, [&](StateRank& rank) {
    for (const auto& p : rank.parameters.all()) {
      for (index_t i = 0; i < p->spec.local_elements(); ++i)
        p->value[i] = 0.5f * static_cast<float>(i);
    }
    change(rank.parameters.all()[0]->value);
    rank.save(folder, step);
  });
  return folder + "/" + step_folder_name(step);
}

const auto nothing = [](float*) {};

}  // namespace

TEST_CASE("ckpt ls shows a run's checkpoints, newest first", "[ckpt_command]") {
  const TemporaryFolder run_folder;
  const std::string folder = run_folder / "checkpoints";
  fs::create_directory(folder);
  const Said none = run(ckpt_ls, {.path = run_folder.path()});
  CHECK(none.exit_code == 0);
  CHECK_THAT(none.text, Contains("(none in " + run_folder.path()));
  CHECK(none.object["checkpoints"].empty());

  save_state(model(), {}, folder, 9, 1);
  save_state(model(), two, folder, 10, 1);
  fs::create_directory(folder + "/.staging-11-x");
  const Said said = run(ckpt_ls, {.path = run_folder.path()});
  CHECK(said.exit_code == 0);
  CHECK(run(ckpt_ls, {.path = folder}).out == said.out);
  CHECK(said.object["folder"] == folder);
  const json list = said.object["checkpoints"];
  REQUIRE(list.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const json& one = list[i];
    CHECK(one["step"] == (i == 0 ? 10 : 9));
    CHECK(one["path"] == folder + "/" + step_folder_name(one["step"]));
    CHECK(one["opens"] == true);
    CHECK(one["plan"] == "some");
    CHECK(one["plan_hash"] == "0123");
    CHECK(one["elements"] == 3 * (8 * 6 + 5));
    CHECK(one["files"] == (i == 0 ? 4 : 3));  // a shard a rank, index, manifest
    std::uintmax_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(one["path"].get<std::string>()))
      bytes += entry.path().filename() == "MANIFEST" ? 0 : entry.file_size();
    CHECK(one["bytes"] == bytes);
    CHECK_THAT(said.text, Contains(one["state_fingerprint"].get<std::string>()) &&
                              Contains(one["written"].get<std::string>()));
  }
  CHECK(list[0]["state_fingerprint"] == list[1]["state_fingerprint"]);
  CHECK(said.text.find("\n        10  ") < said.text.find("\n         9  "));
}

TEST_CASE("ckpt ls marks what is pinned and what is best", "[ckpt_command]") {
  const TemporaryFolder run_folder;
  const std::string folder = run_folder / "checkpoints";
  fs::create_directory(folder);
  for (const index_t step : {3, 6, 9}) save_state(model(), {}, folder, step, 1);
  const auto marked = [&](const char* mark) {
    std::vector<index_t> steps;
    const json list = run(ckpt_ls, {.path = folder}).object["checkpoints"];
    for (const json& one : list) {
      if (one[mark]) steps.push_back(one["step"]);
    }
    return steps;
  };
  using Steps = std::vector<index_t>;
  pin_steps(folder, {6, 7});
  CHECK(marked("pinned") == Steps{6});
  CHECK(marked("best").empty());  // no run around it, so no evaluations
  const std::string plan =
      "[model]\nkind = \"mlp\"\nlayers = 2\nhidden = 48\n[batch]\nglobal = 128\nmicro = 16\n"
      "[optimizer]\nlr = 1e-3\n[run]\nsteps = 20\n";
  write_all(run_folder / "plan.toml", plan);
  CHECK(marked("best").empty());
  // A run may be at half a line.
  write_all(run_folder / "eval.jsonl",
            "{\"step\":3,\"split\":\"validation\",\"accuracy\":0.7,\"loss\":2.0}\n"
            "{\"step\":5,\"split\":\"validation\",\"accuracy\":0.9,\"loss\":0.1}\n"
            "{\"step\":9,\"split\":\"validation\",\"accuracy\":0.6,\"loss\":1.0}\n{\"step\":");
  CHECK(marked("best") == Steps{3});
  CHECK_THAT(run(ckpt_ls, {.path = folder}).text, Contains("  best\n") && Contains("  pinned\n"));
  const std::string by_loss =
      "[task]\ntarget = { metric = \"loss\", split = \"validation\", at_most = 1.0 }\n";
  write_all(run_folder / "plan.toml", by_loss + plan);
  CHECK(marked("best") == Steps{9});
  write_all(run_folder / "plan.toml", by_loss + plan + "[checkpoint]\nkeep_best = 2\n");
  CHECK(marked("best") == Steps{9, 3});
  // What is wrong beside the checkpoints is said, and no fault of theirs.
  write_all(run_folder / "plan.toml", "no plan");
  const Said said = run(ckpt_ls, {.path = run_folder.path()});
  CHECK(said.exit_code == 0);
  CHECK_THAT(said.text, Contains("not all known: ") && Contains("plan.toml:1"));
  CHECK(marked("pinned") == Steps{6});
}

TEST_CASE("ckpt ls goes on after a damaged checkpoint", "[ckpt_command]") {
  const TemporaryFolder folder;
  save_state(model(), {}, folder.path(), 1, 1);
  const std::string damaged = save_state(model(), {}, folder.path(), 2, 1);
  alter(damaged + "/index.h5", 100);
  const Said said = run(ckpt_ls, {.path = folder.path()});
  CHECK(said.exit_code == 5);
  CHECK_THAT(said.text, Contains("2  DAMAGED: " + damaged + "/index.h5"));
  const json list = said.object["checkpoints"];
  REQUIRE(list.size() == 2);
  CHECK(list[0]["opens"] == false);
  CHECK_THAT(list[0]["fault"].get<std::string>(), Contains(damaged + "/index.h5"));
  CHECK(list[1]["opens"] == true);
}

TEST_CASE("ckpt inspect tells what a checkpoint is", "[ckpt_command]") {
  const TemporaryFolder folder;
  const Said said = run(ckpt_inspect, {.path = save_state(model(), two, folder.path(), 25, 1)});
  CHECK(said.exit_code == 0);
  const json& object = said.object;
  CHECK(object["step"] == 25);
  CHECK(object["epoch"] == 2);
  CHECK(object["numerics"] == "n");
  CHECK(object["data"] == "d");
  CHECK(object["split"] == json::object());
  CHECK(object["plan_toml"] == "name = \"some\"");
  std::set<std::string> tensors;
  for (const json& one : object["tensors"]) {
    CHECK(one["dtype"] == "f32");
    const std::string fingerprint = one["fingerprint"];
    CHECK(fingerprint.size() == 16);
    CHECK_THAT(said.text, Contains(fingerprint));
    tensors.insert(one["kind"].get<std::string>() + " " + one["name"].get<std::string>() + " " +
                   one["shape"].dump());
  }
  CHECK(tensors == std::set<std::string>{"value up [8,6]", "exp_avg up [8,6]",
                                         "exp_avg_sq up [8,6]", "value norm [5]",
                                         "exp_avg norm [5]", "exp_avg_sq norm [5]"});
  CHECK_THAT(said.text, Contains("step 25 (epoch 2)") && Contains("159 numbers") &&
                            Contains("in 4 files") && Contains("name = \"some\"") &&
                            Contains(object["state_fingerprint"].get<std::string>()));
}

TEST_CASE("ckpt inspect --tensor says where each element lies", "[ckpt_command]") {
  const TemporaryFolder folder;
  const std::string path = save_state(model(), two, folder.path(), 3, 7);
  const Said said = run(ckpt_inspect, {.path = path, .tensor = "up"});
  CHECK(said.exit_code == 0);
  CHECK(said.object["tensor"] == "up");
  // Read without weft: row by row, little-endian, from the offset on.
  std::map<std::string, int> times_found;
  for (const json& piece : said.object["pieces"]) {
    const std::string kind = piece["kind"];
    const std::string bytes = read_all(path + "/" + piece["file"].get<std::string>());
    std::size_t at = piece["offset"];
    for (index_t row = piece["rows"][0]; row < piece["rows"][1]; ++row) {
      for (index_t col = piece["columns"][0]; col < piece["columns"][1]; ++col, at += 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes.data() + at, 4);
        CHECK(word == bits_of("up", kind, {0, row, col}, 7));
        ++times_found[kind + std::to_string(row) + "," + std::to_string(col)];
      }
    }
    CHECK_THAT(said.text, Contains(piece["file"].get<std::string>() + " from byte " +
                                   std::to_string(piece["offset"].get<index_t>())));
  }
  CHECK(times_found.size() == 3 * 48);
  for (const auto& [element, times] : times_found) CHECK(times == 1);

  std::ostringstream text, out;
  const auto error = error_of([&] { ckpt_inspect({.path = path, .tensor = "down"}, text, out); });
  REQUIRE(says(error, "has no tensor down"));
  CHECK(error->code() == ExitCode::usage);
}

TEST_CASE("ckpt verify reads every byte", "[ckpt_command]") {
  const TemporaryFolder folder;
  const std::string path = save_state(model(), two, folder.path(), 3, 1);
  const std::vector<std::string> shards{path + "/shard-00000.h5", path + "/shard-00001.h5"};
  const Said sound = run(ckpt_verify, {.path = path});
  CHECK(sound.exit_code == 0);
  CHECK_THAT(sound.text, Contains(path + ": sound"));
  CHECK(sound.object["sound"] == true);
  CHECK(sound.object["faults"].empty());
  CHECK(sound.object["tensors"] == 6);
  CHECK(sound.object["bytes"] == fs::file_size(shards[0]) + fs::file_size(shards[1]));

  alter(shards[1], fs::file_size(shards[1]) - 1);
  const Said altered = run(ckpt_verify, {.path = path});
  CHECK(altered.exit_code == 5);
  CHECK(altered.object["sound"] == false);
  CHECK(altered.object["num_faults"] == 1);
  REQUIRE(altered.object["faults"].size() == 1);
  const std::string fault = altered.object["faults"][0];
  CHECK_THAT(fault, Contains(shards[1]) && !Contains(shards[0]));
  CHECK_THAT(altered.text, Contains("DAMAGED: " + fault) && !Contains("sound"));

  alter(path + "/MANIFEST", 20);
  const Said manifest = run(ckpt_verify, {.path = path});
  CHECK(manifest.exit_code == 5);
  CHECK_THAT(manifest.text, Contains("DAMAGED: " + path + "/MANIFEST"));
}

TEST_CASE("ckpt verify counts the faults that it does not show", "[ckpt_command]") {
  // 30 blocks of values.
  const SomeModel large{{"up", whole({30, 16384})}};
  const TemporaryFolder folder;
  const std::string path = save_state(large, {}, folder.path(), 1, 1);
  const Checkpoint checkpoint = open_checkpoint(path);
  std::string bytes = read_all(path + "/shard-00000.h5");
  for (const PieceRecord& piece : checkpoint.index.pieces) {
    if (checkpoint.tensor_of(piece).kind != "value") continue;
    const BlockRecord& first = checkpoint.index.blocks[static_cast<std::size_t>(piece.first_block)];
    for (std::size_t i = 0; i < 30; ++i) bytes.at(first.offset + i * 65536) ^= 4;
  }
  write_all(path + "/shard-00000.h5", bytes);
  const Said said = run(ckpt_verify, {.path = path});
  CHECK(said.exit_code == 5);
  CHECK(said.object["num_faults"] == 30);
  CHECK(said.object["faults"].size() == most_faults);
  CHECK_THAT(said.text, Contains("... and " + std::to_string(30 - most_faults) + " more"));
}

TEST_CASE("ckpt diff of equal states, whoever wrote them", "[ckpt_command]") {
  const TemporaryFolder a, b;
  const Said said = run(ckpt_diff, {.path = save_state(model(), two, a.path(), 3, 1),
                                    .other = save_state(model(), {.dp = 3}, b.path(), 3, 1)});
  CHECK(said.exit_code == 0);
  CHECK(said.text == "6 of 6 tensors are equal, bit for bit\n");
  const json& object = said.object;
  CHECK(object["equal"] == true);
  CHECK(object["same_losses"] == true);
  CHECK(object["different"] == 0);
  CHECK(object["tensors"].size() == 6);
  for (const json& tensor : object["tensors"]) CHECK(tensor["result"] == "equal");
}

TEST_CASE("ckpt diff says what differs", "[ckpt_command]") {
  const TemporaryFolder a, b, c;
  const std::string plain = save_values(a.path(), 3, nothing);
  const Said said = run(ckpt_diff, {.path = plain, .other = save_values(b.path(), 3, [](float* up) {
                                                     up[2 * 6 + 5] += 0.25f;
                                                     up[7 * 6] -= 3.0f;
                                                   })});
  CHECK(said.exit_code == 1);
  // Number 17 is 8.5.
  CHECK_THAT(said.text,
             Contains("up (value): 2 of 48 differ, by up to 3; first at [2, 5]: 8.5 against 8.75\n"
                      "5 of 6 tensors are equal, bit for bit\n"));
  const json& object = said.object;
  CHECK(object["equal"] == false);
  CHECK(object["different"] == 1);
  for (const json& tensor : object["tensors"]) {
    const bool is_changed = tensor["name"] == "up" && tensor["kind"] == "value";
    CHECK(tensor["result"] == (is_changed ? "values" : "equal"));
    if (!is_changed) continue;
    CHECK(tensor["different"] == 2);
    CHECK(tensor["first"] == json{2, 5});
    CHECK(tensor["max_difference"] == 3.0);
  }
  // JSON has no number for it.
  const Said nan = run(ckpt_diff, {.path = plain, .other = save_values(c.path(), 3, [](float* up) {
                                                    up[0] = std::numeric_limits<float>::quiet_NaN();
                                                  })});
  CHECK(nan.exit_code == 1);
  for (const json& tensor : nan.object["tensors"]) {
    if (tensor["result"] == "values") CHECK(tensor["max_difference"].is_null());
  }
}

TEST_CASE("ckpt diff of another step, another model", "[ckpt_command]") {
  const TemporaryFolder folder, others;
  const std::string first = save_values(folder.path(), 1, nothing);
  const Said later =
      run(ckpt_diff, {.path = first, .other = save_values(folder.path(), 2, nothing)});
  CHECK(later.exit_code == 1);
  CHECK(later.text ==
        "steps 1 and 2\nthe losses of the steps so far differ\n"
        "6 of 6 tensors are equal, bit for bit\n");
  CHECK(later.object["equal"] == false);
  CHECK(later.object["steps"] == json{1, 2});
  CHECK(later.object["same_losses"] == false);
  CHECK(later.object["different"] == 0);

  const SomeModel other{{"up", cut({8, 7}, 0)}, {"more", whole({5})}};
  const Said said =
      run(ckpt_diff, {.path = first, .other = save_state(other, {}, others.path(), 1, 1)});
  CHECK(said.exit_code == 1);
  CHECK_THAT(said.text, Contains("up (value): [8, 6] against [8, 7]\n") &&
                            Contains("norm (exp_avg): only in the first\n") &&
                            Contains("more (exp_avg_sq): only in the second\n") &&
                            Contains("0 of 9 tensors are equal"));
  std::multiset<std::string> results;
  for (const json& tensor : said.object["tensors"]) results.insert(tensor["result"]);
  for (const char* result : {"shape", "only_in_a", "only_in_b"}) CHECK(results.count(result) == 3);
}

TEST_CASE("ckpt commands name what is missing or damaged", "[ckpt_command]") {
  const TemporaryFolder folder;
  const std::string good = save_state(model(), {}, folder.path(), 1, 1);
  const std::string missing = folder / "nowhere", file = folder / "file";
  write_all(file, "text");
  CHECK_THAT(refusal(ckpt_ls, {.path = missing}), Contains(missing) && Contains("found nothing"));
  CHECK_THAT(refusal(ckpt_ls, {.path = file}), Contains(file) && Contains("found a file"));
  CHECK_THAT(refusal(ckpt_inspect, {.path = missing}), Contains(missing));
  CHECK_THAT(refusal(ckpt_inspect, {.path = file}), Contains("found a file"));
  CHECK_THAT(refusal(ckpt_diff, {.path = good, .other = missing}), Contains(missing));
  CHECK_THAT(refusal(ckpt_diff, {.path = missing, .other = good}), Contains(missing));
  const Said verified = run(ckpt_verify, {.path = missing});
  CHECK(verified.exit_code == 5);
  CHECK_THAT(verified.text, Contains("DAMAGED: " + missing));

  const std::string damaged = save_state(model(), {}, folder.path(), 2, 1);
  const std::string shard = damaged + "/shard-00000.h5";
  alter(shard, fs::file_size(shard) - 1);
  CHECK_THAT(refusal(ckpt_diff, {.path = good, .other = damaged}), Contains(shard));
  fs::remove(shard);
  CHECK_THAT(refusal(ckpt_inspect, {.path = damaged}), Contains(shard));
}
