// `weft data` with each data set, without the command line: which one a folder holds, what is said
// of it, exit codes.
#include <catch2/catch.hpp>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/data_command.hpp"
#include "tests/io/small_cifar10.hpp"
#include "tests/io/tables/small_bank.hpp"

using namespace weft;
using namespace weft::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Said {
  int code;
  std::string text, out;
};

Said make(const std::string& dataset, const std::string& folder, DataMakeOptions options = {}) {
  std::ostringstream text, out;
  options.dataset = dataset;
  options.folder = folder;
  options.json = true;
  const int code = data_make(options, text, out);
  return {code, text.str(), out.str()};
}

Said info(const std::string& path, bool as_json, const std::string& dataset = "") {
  std::ostringstream text, out;
  const int code = data_info(path, dataset, as_json, text, out);
  return {code, text.str(), out.str()};
}

Said check(const std::string& path, bool as_json, const std::optional<TaskPlan>& task = {},
           const std::string& dataset = "", const std::vector<std::string>& slices = {}) {
  std::ostringstream text, out;
  const int code =
      data_check(path, dataset, {.task = task, .slices = slices, .json = as_json}, text, out);
  return {code, text.str(), out.str()};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each set that is made is recognized, described and sound", "[data_sets]") {
  const TemporaryFolder folder;
  const std::string name = GENERATE("cifar10", "bank", "ag_news", "text");
  DataMakeOptions options;
  if (name == "text")
    options.bytes = 50'000;
  else
    options.rows = 40;
  CHECK(make(name, folder / "a", options).code == 0);
  // In the folder itself and in a subfolder of the set's name.
  CHECK(make(name, folder / "b/" + name, options).code == 0);
  for (const std::string& path : {folder / "a", folder / "b"}) {
    INFO(path);
    const Said programs = info(path, true);
    CHECK(programs.code == 0);
    CHECK(programs.text.empty());
    CHECK(programs.out.find('\n') == programs.out.size() - 1);
    CHECK(json::parse(programs.out)["dataset"] == name);
    const Said people = info(path, false);
    CHECK(people.out.empty());
    CHECK(people.text.size() > 40);
    CHECK(check(path, false).code == 0);
    const Said found = check(path, true);
    CHECK(found.code == 0);
    CHECK(json::parse(found.out)["dataset"] == name);
  }
  CHECK(error_of([&] { make(name, folder / "a", options); })->code() == ExitCode::usage);
}

TEST_CASE("options that a set does not have are refused", "[data_sets]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  for (const char* name : {"cifar10", "bank", "ag_news"})
    CHECK(says(error_of([&] { make(name, path, {.bytes = 5}); }), "--bytes is no option"));
  CHECK(says(error_of([&] { make("text", path, {.rows = 5}); }), "--rows is no option"));
  CHECK(says(error_of([&] { make("ag_news", path, {.table = "bank-full"}); }), "--table"));
  CHECK(says(error_of([&] { make("bank", path, {.table = "bank"}); }),
             "expected bank-full or bank-additional-full"));
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a folder of several sets asks which one, and texts beside a set are none",
          "[data_sets]") {
  const TemporaryFolder folder;
  CHECK(says(error_of([&] { info(folder.path(), true); }), "holds no data set"));
  make("bank", folder / "bank", {.rows = 30});
  write_all(folder / "bank/bank-names.txt", "words about columns");
  CHECK(json::parse(info(folder.path(), true).out)["dataset"] == "bank");
  CHECK(json::parse(info(folder / "bank", true).out)["dataset"] == "bank");
  make("text", folder / "text", {.bytes = 40'000});
  const auto several = error_of([&] { check(folder.path(), true); });
  REQUIRE(several);
  CHECK(several->code() == ExitCode::usage);
  CHECK(says(several, "bank, text; choose one by --dataset"));
  CHECK(json::parse(info(folder.path(), true, "text").out)["dataset"] == "text");
  TaskPlan task;
  task.dataset = "text";
  task.train = 8;
  task.validation = task.test = 1;
  task.tokens = 64;
  const Said by_plan = check(folder.path(), true, task);
  CHECK(json::parse(by_plan.out)["texts"][0]["window"] == 64);
  CHECK(says(error_of([&] { check(folder.path(), true, task, "bank"); }),
             "--dataset bank, but the plan's task.dataset is text"));
  // A lone file tells its set by its name.
  CHECK(json::parse(info(folder / "text/synthetic.txt", true).out)["dataset"] == "text");
  CHECK(json::parse(info(folder / "bank/bank-additional-full.csv", true).out)["dataset"] == "bank");
  write_all(folder / "some.bin", "x");
  CHECK(says(error_of([&] { info(folder / "some.bin", true); }), "--dataset"));
}

TEST_CASE("data info counts a table's columns, all tables of a folder", "[data_sets]") {
  const TemporaryFolder folder;
  write_all(folder / "bank-full.csv", bank_text({{.age = "30", .job = "student"},
                                                 {.age = "50", .job = "pilot", .y = "yes"},
                                                 {.age = "40", .job = "student"}}));
  make("bank", folder.path(), {.rows = 30});
  const json found = json::parse(info(folder.path(), true).out)["tables"];
  REQUIRE(found.size() == 2);
  const json& columns = found[0]["columns"];
  CHECK(columns["age"] == json{{"min", 30}, {"max", 50}, {"mean", 40}});
  CHECK(columns["job"]["counts"]["student"] == 2);
  CHECK(columns["job"]["counts"]["(not documented)"] == 1);
  CHECK(columns["y"]["counts"] == json{{"no", 2}, {"yes", 1}});
  CHECK(columns["duration"]["known_after_the_call"] == true);
  CHECK(found[1]["rows"] == 30);
  const std::string text = info(folder.path(), false).text;
  CHECK(holds(text, "3 rows, 1 of them yes (33.33 %)\n"));
  CHECK(holds(text, "30 to 50, mean 40\n"));
}

TEST_CASE("data check of a table: leaks by the plan's split, damaged rows", "[data_sets]") {
  const TemporaryFolder folder;
  std::vector<FullRow> rows;
  for (int i = 0; i < 20; ++i) rows.push_back({.age = std::to_string(20 + i)});
  rows[9].age = rows[17].age = "25";  // as row 5
  rows[17].y = "yes";
  rows[19] = rows[18];
  rows[19].duration = "61";
  write_all(folder / "bank-full.csv", bank_text(rows));
  const Said people = check(folder.path(), false);
  CHECK(people.code == 1);
  CHECK(holds(people.text,
              "bank-full.csv row 5 (train, no) = bank-full.csv row 9 (train, no) = "
              "bank-full.csv row 17 (validation, yes); LABELS DIFFER; A LEAK"));
  CHECK(holds(people.text, "leaks between splits: 1\n"));
  CHECK(holds(people.text, "duration, up to white space: 2 of 5 rows; 1 in two splits, 1 with"));
  TaskPlan task;
  task.dataset = "bank";
  task.table = "bank-full";
  task.split_kind = "time";
  task.train = 10;
  task.validation = 5;
  task.test = 2;
  const Said sound = check(folder.path(), true, task);
  CHECK(sound.code == 0);
  const json found = json::parse(sound.out)["tables"][0];
  CHECK(found["split"]["train"] == 10);
  CHECK(found["class_counts"]["unused"] == std::vector<int>{2, 1});
  CHECK(found["leaks"] == 0);
  CHECK(found["equal_rows"][0]["num_groups"] == 1);
  CHECK(found["equal_rows"][0]["groups"][0]["labels_differ"] == true);
  CHECK(found["equal_rows"][0]["groups"][0]["rows"][2]["split"] == "unused");
  CHECK(found["equal_rows"][2]["num_groups"] == 2);
  task.table = "bank-additional-full";
  CHECK(says(error_of([&] { check(folder.path(), true, task); }), "bank-additional-full.csv"));

  write_all(folder / "bank-full.csv", bank_text(rows) + "1;2;3\n");
  const Said damaged = check(folder.path(), true);
  CHECK(damaged.code == 5);
  const json place = json::parse(damaged.out)["tables"][0]["damaged_rows"][0];
  CHECK(place["first"][0]["line"] == 22);
  CHECK(holds(check(folder.path(), false).text,
              "damaged rows, left out: 1\n  bank-full.csv, line 22"));
}

TEST_CASE("data check counts classes in slices of each split", "[data_sets]") {
  const TemporaryFolder folder;
  std::vector<FullRow> rows;
  for (int i = 0; i < 20; ++i) {
    rows.push_back({.age = std::to_string(20 + i),
                    .job = i < 15 ? "student" : "services",
                    .y = i % 4 == 3 ? "yes" : "no"});
  }
  write_all(folder / "bank-full.csv", bank_text(rows));
  TaskPlan task;
  task.dataset = "bank";
  task.table = "bank-full";
  task.split_kind = "time";
  task.train = 12;
  task.validation = task.test = 4;
  // Rows 3, 7, 11, 15 and 19 are yes.
  const json by_time =
      json::parse(check(folder.path(), true, task).out)["tables"][0]["slices"];
  REQUIRE(by_time.size() == 1);
  CHECK(by_time[0]["by"] == "time=4");
  REQUIRE(by_time[0]["slices"].size() == 12);
  CHECK(by_time[0]["slices"][1] == json{{"split", "train"},
                                        {"name", "2 of 4: samples 3 to 5"},
                                        {"samples", 3},
                                        {"class_counts", {2, 1}}});
  CHECK(by_time[0]["slices"][11] == json{{"split", "test"},
                                         {"name", "4 of 4: samples 19 to 19"},
                                         {"samples", 1},
                                         {"class_counts", {0, 1}}});
  const Said both = check(folder.path(), true, task, "", {"column:job", "time=2"});
  const json named = json::parse(both.out)["tables"][0]["slices"];
  REQUIRE(named.size() == 2);
  CHECK(named[0]["slices"].size() == 4);  // students in two splits, services in two
  CHECK(named[1]["by"] == "time=2");
  const std::string text = check(folder.path(), false, task, "", {"column:job"}).text;
  INFO(text);
  CHECK(holds(text,
              "by column:job               no       yes       all\n"
              "train, student               9         3        12  25.00 % yes\n"
              "validation, student          3         0         3  0.00 % yes\n"
              "validation, services         0         1         1  100.00 % yes\n"
              "test, services               3         1         4  25.00 % yes\n"));
  const auto wrong = error_of([&] { check(folder.path(), true, task, "", {"column:jb"}); });
  REQUIRE(wrong);
  CHECK(wrong->code() == ExitCode::usage);
  CHECK(says(wrong, "did you mean job?"));

  make("ag_news", folder / "news", {.rows = 40});
  const json news = json::parse(check(folder / "news", true).out)["slices"];
  REQUIRE(news.size() == 1);
  CHECK(news[0]["by"] == "column:tokens");
  index_t samples = 0;
  for (const json& slice : news[0]["slices"]) samples += slice["samples"].get<index_t>();
  CHECK(samples == 44);  // and a tenth for the test

  make("cifar10", folder / "images", {.rows = 20});
  const json images = json::parse(check(folder / "images", true).out)["slices"];
  CHECK(images[0]["by"] == "column:file");
  CHECK(images[0]["slices"].back()["name"] == "test_batch.bin");
  CHECK(images[0]["slices"].back()["samples"] == 20);

  make("text", folder / "text", {.bytes = 40'000});
  CHECK(says(error_of([&] { check(folder / "text", true, {}, "", {"position"}); }),
             "a text has a label for each of its tokens"));
}

TEST_CASE("data check of news and texts finds what two splits share", "[data_sets]") {
  const TemporaryFolder folder;
  make("ag_news", folder / "news", {.rows = 40});
  const std::string test = read_all(folder / "news/test.csv");
  write_all(folder / "news/train.csv",
            read_all(folder / "news/train.csv") + test.substr(0, test.find('\n') + 1));
  TaskPlan task;
  task.dataset = "ag_news";
  task.train = 41;
  task.validation = 0;
  const Said news = check(folder / "news", true, task);
  CHECK(news.code == 1);
  const json found = json::parse(news.out);
  CHECK(found["leaks"] == 1);
  const json rows = found["equal_rows"][0]["groups"][0]["rows"];
  CHECK(rows[0]["file"] == "train.csv");
  CHECK(rows[0]["row"] == 40);
  CHECK(rows[1]["file"] == "test.csv");
  CHECK(rows[1]["row"] == 0);
  CHECK(holds(check(folder / "news", false, task).text, "train.csv row 40 (train, "));

  make("text", folder / "text", {.bytes = 40'000});
  std::string text = read_all(folder / "text/synthetic.txt");
  // The first window of the test part, which begins at 38000, put into the training part.
  text.replace(777, 128, text.substr(38000, 128));
  write_all(folder / "text/synthetic.txt", text);
  CHECK(check(folder / "text", true).code == 1);
  CHECK(holds(check(folder / "text", false).text,
              "window 0 of test stands in train from byte 777 on; A LEAK between splits\n"));
}
