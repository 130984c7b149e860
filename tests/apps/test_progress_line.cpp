// What a waiting person sees: one line in place on a terminal, plain lines elsewhere.
#include <catch2/catch.hpp>
#include <chrono>
#include <sstream>
#include <thread>

#include "apps/progress_line.hpp"

using weft::ProgressLine;

TEST_CASE("a terminal's line is rewritten, and cleared before a line that stays", "[progress]") {
  std::ostringstream text;
  ProgressLine progress(text, true);
  int made = 0;
  const auto line = [&] { return "step " + std::to_string(++made); };
  progress.show(line);  // too soon after the start: not even made
  CHECK(made == 0);
  CHECK(text.str().empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  progress.show(line);
  progress.show(line);
  CHECK(made == 1);
  CHECK(text.str() == "\rstep 1\033[K");
  progress.keep("done");
  CHECK(text.str() == "\rstep 1\033[K\r\033[Kdone\n");
}

TEST_CASE("a log gets whole lines only", "[progress]") {
  std::ostringstream text;
  ProgressLine progress(text, false);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  progress.show([] { return std::string("step 1"); });  // lines come seconds apart
  progress.keep("done");
  CHECK(text.str() == "done\n");
}
