// Lengths of time in a plan: what is read, what is refused, and that text reads back.
#include "parallel/plan/time_span.hpp"

#include <catch2/catch.hpp>

using namespace weft;

TEST_CASE("lengths of time are read", "[time_span]") {
  const auto seconds = [](const char* text) { return parse_time_span(text).value().seconds; };
  CHECK(seconds("3h55m") == 14100);
  CHECK(seconds("2s") == 2);
  CHECK(seconds("90m") == 5400);
  CHECK(seconds("1d2h3m4s") == 93784);
  CHECK(seconds("1d4s") == 86404);
  CHECK(seconds("0s") == 0);
  CHECK(seconds("366d") == longest_time_span_s);
}

TEST_CASE("what is no length of time is refused", "[time_span]") {
  for (const char* text : {"", "3", "h", "3x", "3h55", "55m3h", "3h3h", "-3h", "+3h", "3 h", " 3h",
                           "3h ", "3.5h", "3:55", "3H", "366d1s", "99999999999999999999s",
                           "9223372036854775807d", "9000000000000000000s1h"}) {
    INFO(text);
    CHECK(!parse_time_span(text));
  }
}

TEST_CASE("a length of time is written as it is read", "[time_span]") {
  CHECK(text_of({14100}) == "3h55m");
  CHECK(text_of({86404}) == "1d4s");
  CHECK(text_of({0}) == "0s");
  for (index_t seconds = 0; seconds <= longest_time_span_s; seconds += 997)
    REQUIRE(parse_time_span(text_of({seconds})) == TimeSpan{seconds});
}
