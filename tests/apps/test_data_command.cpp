// `weft data make` and `weft data info` without the command line.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/data_command.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;
using nlohmann::json;

TEST_CASE("data make writes a set that data info describes", "[data_command]") {
  const TemporaryFolder folder;
  std::ostringstream text, out;
  DataMakeOptions options;
  options.folder = folder / "set";
  options.rows = 50;
  options.json = true;
  CHECK(data_make(options, text, out) == 0);
  CHECK(json::parse(out.str())["rows_per_file"] == 50);
  CHECK(text.str().find("6 files of 50 rows, seed 1\n") != std::string::npos);
  CHECK(text.str().find('\r') == std::string::npos);  // no terminal, no line that rewrites itself

  std::ostringstream info_text, info_out;
  CHECK(data_info(folder / "set", "", true, info_text, info_out) == 0);
  CHECK(info_text.str().empty());
  const std::string line = info_out.str();
  CHECK(line.find('\n') == line.size() - 1);
  const json info = json::parse(line);
  CHECK(info["training"] == 250);
  CHECK(info["test"] == 50);
  CHECK(info["official"] == false);

  std::ostringstream people, none;
  CHECK(data_info(folder / "set", "", false, people, none) == 0);
  CHECK(none.str().empty());
  CHECK(people.str().find("250 training and 50 test images") != std::string::npos);

  const auto again = error_of([&] { data_make(options, text, out); });
  REQUIRE(again.has_value());
  CHECK(again->code() == ExitCode::usage);
}

TEST_CASE("data info counts classes and pixels", "[data_command]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  std::ostringstream text, out;
  data_info(folder.path(), "", true, text, out);
  const json info = json::parse(out.str());
  CHECK(info["training_class_counts"] == std::vector<int>(10, 10));
  CHECK(info["files"]["data_batch_2.bin"]["class_counts"] == std::vector<int>(10, 2));
  CHECK(info["files"]["test_batch.bin"]["first_labels"] ==
        std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (int c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 100; ++i) {
      for (int p = 0; p < 1024; ++p) {
        const double value = small_pixel(i, c * 1024 + p) / 255.0;
        sum += value;
        squares += value * value;
      }
    }
    const double mean = sum / 102400;
    CHECK(info["training_pixels"]["mean"][c].get<double>() == Approx(mean).epsilon(1e-12));
    CHECK(info["training_pixels"]["std"][c].get<double>() ==
          Approx(std::sqrt(squares / 102400 - mean * mean)).epsilon(1e-10));
  }
}

TEST_CASE("data commands name what is wrong", "[data_command]") {
  std::ostringstream text, out;
  DataMakeOptions options;
  CHECK(says(error_of([&] { data_make(options, text, out); }), "expected a folder"));
  options.folder = "/nowhere";
  options.dataset = "mnist";
  CHECK(says(error_of([&] { data_make(options, text, out); }),
             "the data set mnist: expected one of cifar10, bank, ag_news, text"));
  CHECK(error_of([&] { data_info("/nowhere", "", true, text, out); })->code() == ExitCode::data);
  CHECK(out.str().empty());
}
