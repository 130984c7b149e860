// task.faulty_rows: files with a ragged row, an unclosed quote and bytes that are no UTF-8, as they
// are and with those rows cut out by hand. Left out they give the bits of the file without them,
// and are told everywhere; by default they end the run.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/weft_process.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using weft::test::ProcessResult;
using weft::test::run_weft;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE_FALSE(lines.empty());
  return lines;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ProcessResult require_done(const ProcessResult& result) {
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result;
}

const std::string skip = " --set task.faulty_rows=skip";

// A drawn set, once with faulty rows between the sound ones and once without: the same samples.
struct Sets {
  std::string folder, clean, faulty, plan, file;

  Sets(const std::string& name, const std::string& set, std::string made_file,
       std::string plan_text, const std::vector<std::string>& rows_to_add)
      : folder(weft::test::fresh_folder(name)),
        clean(folder + "/clean"),
        faulty(folder + "/faulty"),
        plan(folder + "/plan.toml"),
        file(std::move(made_file)) {
    require_done(run_weft("data make " + set + " " + clean + " --rows 600"));
    fs::copy(clean, faulty);
    const std::vector<std::string> sound = lines_of(clean + "/" + file);
    std::ofstream out(faulty + "/" + file, std::ios::binary);
    // Behind lines 1, 11, 21, ..; the last one, whose quote stays open, at the end.
    std::size_t added = 0;
    for (std::size_t i = 0; i < sound.size(); ++i) {
      out << sound[i] << '\n';
      if (i % 10 == 0 && added + 1 < rows_to_add.size()) out << rows_to_add[added++] << '\n';
    }
    out << rows_to_add.back();
    out.close();
    std::ofstream(plan) << plan_text
                        << "[batch]\nglobal = 32\nmicro = 4\n[numerics]\nshards = 2\nlanes = 2\n"
                           "[optimizer]\nkind = \"adamw\"\nlr = 1e-3\n[run]\nsteps = 4\n"
                           "[checkpoint]\nevery_steps = 2\n";
  }
  std::string train(const std::string& data, const std::string& run) const {
    return "train " + plan + " --json --data " + data + " --run " + folder + "/" + run;
  }
};

Sets bank_sets(const std::string& name) {
  const std::string begin = "58;\"manage\xffment\"";
  std::string invalid = begin;
  for (int i = 0; i < 19; ++i) invalid += ";1";
  return {name,
          "bank",
          "bank-additional-full.csv",
          "[task]\ndataset = \"bank\"\n"
          "split = { kind = \"time\", train = 400, validation = 100, test = 100 }\n"
          "[model]\nkind = \"mlp\"\nlayers = 2\nhidden = 16\n",
          {"1;2;3", invalid, "7;\"services\";\"mar\"ried\"", "58;\"services"}};
}

Sets news_sets(const std::string& name) {
  return {
      name,
      "ag_news",
      "train.csv",
      "[task]\ndataset = \"ag_news\"\ntokens = 12\nvocabulary = 200\n"
      "split = { train = 500, validation = 100, seed = 7 }\n"
      "[model]\nkind = \"text_encoder\"\nlayers = 2\nhidden = 16\nheads = 2\n",
      {"\"1\",\"a title alone\"", "\"2\",\"\xc3\x28\",\"no letter\"", "\"3\",\"open, and no more"}};
}

json summary_of(const std::string& run) {
  std::ifstream file(run + "/summary.json");
  return json::parse(file);
}

}  // namespace

TEST_CASE("by default a faulty row ends the run, with its place") {
  for (const Sets& sets : {bank_sets("faulty-refuse"), news_sets("faulty-refuse-news")}) {
    const ProcessResult result = run_weft(sets.train(sets.faulty, "run"));
    INFO(result.text);
    CHECK(result.exit_code == 5);
    CHECK(holds(result.text, sets.file + ", line 2, byte "));
    CHECK(result.out.empty());
    CHECK_FALSE(fs::exists(sets.folder + "/run"));
  }
}

TEST_CASE("rows that are left out leave the bits of the file without them, on every layout") {
  struct Kinds {
    Sets sets;
    json rows;
    int left_out;
  };
  const std::vector<Kinds> all = {
      {bank_sets("faulty-skip"),
       {{"wrong number of fields", 1},
        {"unclosed quote", 1},
        {"text after a closing quote", 1},
        {"invalid UTF-8", 1}},
       4},
      {news_sets("faulty-skip-news"),
       {{"wrong number of fields", 1}, {"unclosed quote", 1}, {"invalid UTF-8", 1}},
       3}};
  for (const auto& [sets, rows, left_out] : all) {
    const std::string count = std::to_string(left_out);
    const json clean = require_done(run_weft(sets.train(sets.clean, "clean"))).json();
    CHECK_FALSE(clean.contains("faulty_rows"));
    int number = 0;
    for (const char* layout :
         {"", " --set layout.tp=2", " --set layout.dp=2", " --set layout.tp=2 --set layout.pp=2"}) {
      INFO(sets.file << layout);
      const std::string run = "run-" + std::to_string(number);
      const int ranks[] = {1, 2, 2, 4};
      const ProcessResult result = require_done(weft::test::run_weft_ranks(
          ranks[number++], sets.train(sets.faulty, run) + skip + layout));
      const json summary = result.json();
      CHECK(summary.at("state_hash") == clean.at("state_hash"));
      CHECK(summary.at("loss_hash") == clean.at("loss_hash"));
      // At the start with places, before the first figures; at the end by number.
      const std::string words = "faulty rows, left out (task.faulty_rows): " + count + "\n";
      const auto begin = result.text.find(words + "  " + sets.file + ", line 2, byte 1, column ");
      REQUIRE(begin != std::string::npos);
      CHECK(begin < result.text.find("validation loss"));
      CHECK(result.text.find("  " + words, begin + 1) != std::string::npos);
      const json& told = summary.at("faulty_rows");
      CHECK(told.at("left_out") == left_out);
      CHECK(told.at("files").size() == 1);
      CHECK(told.at("files").at(0).at("file") == sets.file);
      CHECK(told.at("files").at(0).at("rows") == rows);
      CHECK(told.at("files").at(0).at("first").at(0).at("line") == 2);
      CHECK(summary_of(sets.folder + "/" + run).at("faulty_rows") == told);
      CHECK(json::parse(lines_of(sets.folder + "/" + run + "/events.jsonl").at(0))
                .at("faulty_rows") == told);
    }
    const std::string plan = sets.plan + " --data " + sets.faulty + skip + " --json";
    const std::string run = sets.folder + "/run-0";
    for (const std::string& command :
         {"eval " + plan + " --split test --checkpoint " + run, "check " + plan + " --run " + run,
          "layouts " + plan + " --steps 2 --warmup 0 --grid tp=1"}) {
      INFO(command);
      const ProcessResult result = require_done(run_weft(command));
      CHECK(result.json().at("faulty_rows").at("left_out") == left_out);
      CHECK(holds(result.text, "left out (task.faulty_rows): " + count + "\n"));
    }
    CHECK(holds(require_done(run_weft("report " + run + " --markdown")).out,
                "run-0: faulty rows, left out (task.faulty_rows): " + count + "."));
    // The file without them is another file, to a check of the run, too.
    const ProcessResult other =
        run_weft("check " + sets.plan + " --data " + sets.clean + skip + " --run " + run);
    CHECK(other.exit_code == 1);
    CHECK(holds(other.text, count + "  DIFFERS: the plan says faulty rows, left out "
                                    "(task.faulty_rows): none"));
  }
}

TEST_CASE("where a plan leaves rows out it is told that there were none") {
  const Sets sets = bank_sets("faulty-none");
  const ProcessResult result = require_done(run_weft(sets.train(sets.clean, "run") + skip));
  CHECK(holds(result.text, "faulty rows, left out (task.faulty_rows): none\n"));
  CHECK(result.json().at("faulty_rows") == json{{"left_out", 0}, {"files", json::array()}});
  // Another plan than the one that refuses.
  const ProcessResult resumed = run_weft(sets.train(sets.clean, "run") + " --resume auto");
  INFO(resumed.text);
  CHECK(resumed.exit_code == 2);
  CHECK(holds(resumed.text, "task.faulty_rows: \"skip\" when it was saved, \"refuse\" now"));
  require_done(run_weft(sets.train(sets.clean, "run") + skip + " --resume auto"));
}

TEST_CASE("a split that fits no more once rows are left out") {
  const Sets bank = bank_sets("faulty-split");
  // 600 sound rows; with the faulty ones there seem to be 604.
  const ProcessResult result =
      run_weft(bank.train(bank.faulty, "run") + skip + " --set task.split.train=402");
  INFO(result.text);
  CHECK(result.exit_code == 2);
  CHECK(holds(result.text,
              "task.split asks for 602 rows of bank-additional-full.csv, which has 600 sound ones; "
              "4 that break its form are left out, the first in line 2 (wrong number of fields): "
              "mend the file, or ask for at most 600 rows"));
  CHECK_FALSE(fs::exists(bank.folder + "/run"));
  const Sets news = news_sets("faulty-split-news");
  const ProcessResult of_news =
      run_weft(news.train(news.faulty, "run") + skip + " --set task.split.train=501");
  CHECK(of_news.exit_code == 2);
  CHECK(holds(of_news.text, "asks for 601 rows of train.csv, which has 600 sound ones; 3 that"));
}

TEST_CASE("what a sound row says is refused in any case, and data check lists all faults") {
  const Sets sets = bank_sets("faulty-check");
  const ProcessResult check = run_weft("data check " + sets.faulty + " --plan " + sets.plan);
  INFO(check.text);
  CHECK(check.exit_code == 5);
  CHECK(holds(check.text, "damaged rows, left out: 4\n  bank-additional-full.csv, line 2, "));
  std::vector<std::string> lines = lines_of(sets.clean + "/" + sets.file);
  lines[5].replace(0, lines[5].find(';'), "old");
  std::ofstream out(sets.clean + "/" + sets.file, std::ios::binary);
  for (const std::string& line : lines) out << line << '\n';
  out.close();
  const ProcessResult result = run_weft(sets.train(sets.clean, "run") + skip);
  CHECK(result.exit_code == 5);
  CHECK(holds(result.text, "line 6, column 1 (age): expected a number, found \"old\""));
}

TEST_CASE("ranks that read other files are refused") {
  const Sets sets = bank_sets("faulty-ranks");
  fs::rename(sets.clean, sets.folder + "/data0");
  fs::rename(sets.faulty, sets.folder + "/data1");
  const ProcessResult result = weft::test::run_shell(
      WEFT_LAUNCHER " 2 sh -c 'exec " WEFT_PROGRAM " " +
      sets.train(sets.folder + "/data$OMPI_COMM_WORLD_RANK", "run") + skip + " --set layout.dp=2'");
  INFO(result.text);
  CHECK(result.exit_code == 2);
  CHECK(holds(result.text, "the data differs between ranks: rank 0 has \""));
  CHECK(holds(result.text, ", 4 of its rows left out, 600 samples\""));
  CHECK_FALSE(fs::exists(sets.folder + "/run"));
}
