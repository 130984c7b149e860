// Delays that are put into a run on purpose: what is asked for, and that nothing else changes.
#include <catch2/catch.hpp>
#include <chrono>

#include "apps/injected_delay.hpp"
#include "core/error.hpp"

using namespace weft;
using namespace std::chrono_literals;

TEST_CASE("delays as they are written") {
  using Place = InjectedDelay::Place;
  const std::vector<InjectedDelay> delays = parse_delays("3:compute=25,0:data=10.5,3:compute=1", 4);
  CHECK(delay_of(delays, 3, Place::compute) == 26ms);
  CHECK(delay_of(delays, 0, Place::data) == 10500us);
  CHECK(delay_of(delays, 0, Place::compute) == 0ms);
  CHECK(delay_of(delays, 1, Place::link) == 0ms);
  CHECK(parse_delays("", 1).empty());
}

TEST_CASE("delays that are none: one message that says what was expected") {
  const struct {
    const char* text;
    const char* found;
  } wrong[] = {{"4:compute=1", "ranks 0 to 3"},
               {"-1:compute=1", "ranks 0 to 3"},
               {"0:compte=1", "did you mean compute?"},
               {"0:compute=", "milliseconds \"\""},
               {"0:compute=1x", "\"1x\""},
               {"0:compute=0", "above 0"},
               {"0:compute=-3", "above 0"},
               {"0:compute=nan", "above 0"},
               {"compute=1", "a part is missing"},
               {"0:compute", "a part is missing"},
               {"0:compute=1,,1:data=2", "a part is missing"}};
  for (const auto& one : wrong) {
    INFO(one.text);
    try {
      parse_delays(one.text, 4);
      FAIL("was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::usage);
      CHECK_THAT(error.what(), Catch::Contains("--delay") && Catch::Contains(one.found));
    }
  }
}
