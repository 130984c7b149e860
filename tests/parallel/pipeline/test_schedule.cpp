// Schedules as records: what the generators list, their messages, and their text.
#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"

namespace weft::pipeline {

TEST_CASE("the lists of three stages and four microbatches") {
  CHECK(print(gpipe(3, 4)) ==
        "3 stages, 4 microbatches, training\n"
        "stage 0: F0 F1 F2 F3 B0 B1 B2 B3\n"
        "stage 1: F0 F1 F2 F3 B0 B1 B2 B3\n"
        "stage 2: F0 F1 F2 F3 B0 B1 B2 B3\n");
  CHECK(print(one_f_one_b(3, 4)) ==
        "3 stages, 4 microbatches, training\n"
        "stage 0: F0 F1 F2 B0 F3 B1 B2 B3\n"
        "stage 1: F0 F1 B0 F2 B1 F3 B2 B3\n"
        "stage 2: F0 B0 F1 B1 F2 B2 F3 B3\n");
  CHECK(print(forward_only(2, 3)) ==
        "2 stages, 3 microbatches, evaluation\n"
        "stage 0: F0 F1 F2\n"
        "stage 1: F0 F1 F2\n");
}

TEST_CASE("fewer microbatches than stages: the warm-up is all of them") {
  CHECK(print(one_f_one_b(4, 2)) ==
        "4 stages, 2 microbatches, training\n"
        "stage 0: F0 F1 B0 B1\n"
        "stage 1: F0 F1 B0 B1\n"
        "stage 2: F0 F1 B0 B1\n"
        "stage 3: F0 B0 F1 B1\n");
}

TEST_CASE("lowering puts each computation between its messages") {
  CHECK(print(lower(one_f_one_b(3, 2))) ==
        "3 stages, 2 microbatches, training\n"
        "stage 0: F0 SA0 F1 SA1 RG0 B0 RG1 B1\n"
        "stage 1: RA0 F0 SA0 RA1 F1 SA1 RG0 B0 SG0 RG1 B1 SG1\n"
        "stage 2: RA0 F0 B0 SG0 RA1 F1 B1 SG1\n");
  CHECK(print(lower(forward_only(3, 1))) ==
        "3 stages, 1 microbatches, evaluation\n"
        "stage 0: F0 SA0\n"
        "stage 1: RA0 F0 SA0\n"
        "stage 2: RA0 F0\n");
  CHECK(lower(gpipe(1, 5)) == gpipe(1, 5));
  CHECK_THROWS_AS(lower(lower(gpipe(2, 1))), Error);
}

TEST_CASE("schedules are chosen by a plan's name") {
  CHECK(make_schedule("gpipe", 3, 5) == gpipe(3, 5));
  CHECK(make_schedule("1f1b", 3, 5) == one_f_one_b(3, 5));
  CHECK_THROWS_WITH(make_schedule("2f2b", 3, 5),
                    Catch::Contains("2f2b") && Catch::Contains("1f1b"));
  CHECK_THROWS_AS(gpipe(0, 1), Error);
  CHECK_THROWS_AS(one_f_one_b(1, 0), Error);
}

TEST_CASE("what is printed can be parsed") {
  for (int p = 1; p <= 5; ++p) {
    for (index_t m = 1; m <= 12; ++m) {
      for (const Schedule& schedule : {gpipe(p, m), one_f_one_b(p, m), forward_only(p, m)}) {
        REQUIRE(parse(print(schedule)) == schedule);
        REQUIRE(parse(print(lower(schedule))) == lower(schedule));
      }
    }
  }
  Schedule chunks = gpipe(2, 2);
  chunks.stages[1][3].chunk = 1;
  CHECK(print(chunks).find("stage 1: F0 F1 B0 B1.1\n") != std::string::npos);
  CHECK(parse(print(chunks)) == chunks);
}

TEST_CASE("text that is no schedule is refused with its line") {
  const auto refused = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse(text), Catch::Contains(part));
  };
  refused("", "0 lines");
  refused("two stages, 1 microbatches, training\n", "line 1");
  refused("1 stages, 1 microbatches, resting\nstage 0: F0\n", "resting");
  refused("1 stages, 1 microbatches, training\nstage 1: F0\n", "line 2");
  for (const char* word : {"G0", "F", "0", "F-1", "F1x", "F1.", "F1.x", "SA", "sa1"})
    refused(std::string("1 stages, 1 microbatches, training\nstage 0: ") + word + "\n", word);
  refused("2 stages, 1 microbatches, training\nstage 0: F0\n", "1 lines");
  refused("1 stages, 1 microbatches, training\nstage 0: F0\nstage 1: F0\n", "line 3");
}

}  // namespace weft::pipeline
