// Cutting a log back to a step: which lines stay, whatever lies between them.
#include <catch2/catch.hpp>
#include <chrono>

#include "io/run_log.hpp"
#include "io/step_lines.hpp"

using namespace weft;

namespace {

std::string line(index_t step, const std::string& more = "") {
  return "{\"step\":" + std::to_string(step) + more + "}\n";
}

std::string steps_until(const std::string& text, index_t last) {
  return lines_until(text, last, LinesPerStep::one);
}

}  // namespace

TEST_CASE("lines after the step go") {
  const std::string text = line(1) + line(2) + line(3);
  CHECK(steps_until(text, 3) == text);
  CHECK(steps_until(text, 9) == text);
  CHECK(steps_until(text, 2) == line(1) + line(2));
  CHECK(steps_until(text, 0).empty());
  CHECK(steps_until("", 3).empty());
}

TEST_CASE("a line that was cut anywhere goes, and the others stay") {
  const std::string last = R"({"step":2,"loss":0.25,"text":"a}b"})";
  for (std::size_t size = 0; size < last.size(); ++size) {
    INFO(size);
    CHECK(steps_until(line(1) + last.substr(0, size), 2) == line(1));
    CHECK(steps_until(line(1) + last.substr(0, size) + "\n" + line(3), 3) == line(1) + line(3));
  }
  // Whole but for its line feed.
  CHECK(steps_until(line(1) + last, 2) == line(1) + last + "\n");
}

TEST_CASE("what is no line of a step goes") {
  for (const std::string garbage :
       {"\r\n", "\n", "\r\n\r\n", "hello\r\n", "[1,2]\n", "7\n", "null\n", "{}\n",
        "{\"step\":null}\n", "{\"step\":\"1\"}\n", "{\"step\":1.5}\n", "{\"step\":0}\n",
        "{\"step\":-1}\n", "{\"step\":18446744073709551615}\n", "{\"step\":1e400}\n",
        "{\"step\":1}{\"step\":1}\n", "{\"step\":1}}\n", "\xff\xfe\n",
        "{\"step\":1,\"a\":\"\xff\"}\n"}) {
    INFO(garbage);
    CHECK(steps_until(line(1, ",\"n\":1") + garbage + line(2), 2) == line(1, ",\"n\":1") + line(2));
  }
  const std::string zeros(4096, '\0');  // what a power cut leaves
  CHECK(steps_until(line(1) + zeros, 5) == line(1));
  CHECK(steps_until(line(1) + zeros + "\n" + line(2), 5) == line(1) + line(2));
  CHECK(steps_until("{\"step\":1}\r\n{\"step\":2}\r\n", 1) == "{\"step\":1}\r\n");
  CHECK(steps_until(std::string(100000, '[') + "\n" + line(1), 1) == line(1));
}

TEST_CASE("a repeated step replaces what came before") {
  const std::string first = line(1) + line(2) + line(3) + line(4);
  const std::string again = line(3, ",\"try\":2") + line(4, ",\"try\":2");
  CHECK(steps_until(first + again, 4) == line(1) + line(2) + again);
  CHECK(steps_until(first + again, 3) == line(1) + line(2) + line(3, ",\"try\":2"));
  // The second try is not there yet at the step that is asked for.
  CHECK(steps_until(first + line(2, ",\"try\":2"), 4) == line(1) + line(2, ",\"try\":2"));
}

TEST_CASE("several lines a step") {
  const std::string both = line(2, ",\"split\":\"a\"") + line(2, ",\"split\":\"b\"");
  CHECK(lines_until(both + line(4), 2, LinesPerStep::several) == both);
  CHECK(lines_until(line(4) + both, 4, LinesPerStep::several) == both);
  CHECK(lines_until(both, 2, LinesPerStep::one) == line(2, ",\"split\":\"b\""));
}

TEST_CASE("long logs are cut fast") {
  StepRecord record;
  record.loss = 2.302585092994046;
  record.lr = 1e-3;
  record.more = {{"forward_ms", 12.25}, {"backward_ms", 24.5}, {"accuracy", 0.5}};
  std::string text, half;
  for (record.step = 1; record.step <= 20000; ++record.step) {
    text += json_line(record) + "\n";
    if (record.step == 10000) half = text;
  }
  const auto begin = std::chrono::steady_clock::now();
  CHECK(steps_until(text, 10000) == half);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() < 5.0);  // 0.05 s in a quiet release build; sanitizers are slow
}
