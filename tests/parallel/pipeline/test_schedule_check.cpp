// The checker accepts what the generators make, with the activations that theory gives, and rejects
// every schedule that differs from them in one place.
#include <catch2/catch.hpp>

#include <algorithm>

#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"
#include "parallel/pipeline/schedule_check.hpp"

namespace weft::pipeline {

namespace {

std::string faults_of(const Schedule& lowered) {
  std::string text;
  for (const std::string& fault : check(lowered).faults) text += fault + "\n";
  return text;
}

std::string faults_of(const std::string& text) { return faults_of(parse(text)); }

std::vector<Schedule> training_schedules(int p, index_t m) {
  return {gpipe(p, m), one_f_one_b(p, m)};
}

void reject(const Schedule& lowered) {
  INFO(print(lowered));
  REQUIRE(!check(lowered).faults.empty());
}

// Calls visit(copy of the schedule, its list of one stage) for each stage.
template <class Visit>
void for_each_list(const Schedule& schedule, Visit visit) {
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    Schedule copy = schedule;
    visit(copy, copy.stages[stage]);
  }
}

}  // namespace

TEST_CASE("what the generators make is accepted, with the activations that theory gives") {
  for (int p = 1; p <= 8; ++p) {
    for (index_t m = 1; m <= 12; ++m) {
      CAPTURE(p, m);
      const ScheduleCheck of_gpipe = check(lower(gpipe(p, m)));
      const ScheduleCheck of_1f1b = check(lower(one_f_one_b(p, m)));
      const ScheduleCheck of_evaluation = check(lower(forward_only(p, m)));
      REQUIRE(of_gpipe.faults.empty());
      REQUIRE(of_1f1b.faults.empty());
      REQUIRE(of_evaluation.faults.empty());
      for (int stage = 0; stage < p; ++stage) {
        const auto s = static_cast<std::size_t>(stage);
        REQUIRE(of_gpipe.peak_activations[s] == m);
        REQUIRE(of_1f1b.peak_activations[s] == std::min<index_t>(p - stage, m));
        REQUIRE(of_evaluation.peak_activations[s] == 1);
      }
    }
  }
}

TEST_CASE("two backwards of a stage that change places are rejected, alone and with messages") {
  for (int p = 1; p <= 5; ++p) {
    for (index_t m = 2; m <= 7; ++m) {
      for (const Schedule& schedule : training_schedules(p, m)) {
        const auto mutate = [](const Schedule& original, bool lowers) {
          for_each_list(original, [&](Schedule& copy, std::vector<Action>& list) {
            for (std::size_t i = 0; i < list.size(); ++i) {
              for (std::size_t j = i + 1; j < list.size(); ++j) {
                if (list[i].kind != ActionKind::backward || list[j].kind != ActionKind::backward)
                  continue;
                std::swap(list[i], list[j]);
                reject(lowers ? lower(copy) : copy);
                std::swap(list[i], list[j]);
              }
            }
          });
        };
        mutate(schedule, true);
        mutate(lower(schedule), false);
      }
    }
  }
}

TEST_CASE("the same two backwards swapped on all stages are rejected: GPipe as it was published") {
  for (int p = 1; p <= 4; ++p) {
    Schedule lifo = gpipe(p, 4);
    for (auto& list : lifo.stages) std::reverse(list.begin() + 4, list.end());
    reject(lower(lifo));
    CHECK(faults_of(lower(lifo)).find("stage 0: B3 comes where B0 is due") != std::string::npos);
  }
}

TEST_CASE("a backward moved before its forward is rejected") {
  for (int p = 1; p <= 5; ++p) {
    for (index_t m = 1; m <= 7; ++m) {
      for (const Schedule& schedule : training_schedules(p, m)) {
        for_each_list(schedule, [&](Schedule& copy, std::vector<Action>& list) {
          const std::vector<Action> original = list;
          for (std::size_t i = 0; i < original.size(); ++i) {
            if (original[i].kind != ActionKind::backward) continue;
            Action forward = original[i];
            forward.kind = ActionKind::forward;
            const auto before = std::find(original.begin(), original.end(), forward);
            for (auto place = original.begin(); place <= before; ++place) {
              list = original;
              list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
              list.insert(list.begin() + (place - original.begin()), original[i]);
              reject(lower(copy));
            }
          }
        });
      }
    }
  }
}

TEST_CASE("an action that is dropped, doubled or of another microbatch is rejected") {
  for (int p = 1; p <= 5; ++p) {
    for (index_t m = 1; m <= 6; ++m) {
      std::vector<Schedule> all = training_schedules(p, m);
      all.push_back(forward_only(p, m));
      for (const Schedule& schedule : all) {
        for (const bool lowers : {false, true}) {
          const auto judge = [&](const Schedule& s) { reject(lowers ? lower(s) : s); };
          const Schedule start = lowers ? schedule : lower(schedule);
          for_each_list(start, [&](Schedule& copy, std::vector<Action>& list) {
            const std::vector<Action> original = list;
            for (std::size_t i = 0; i < original.size(); ++i) {
              const auto at = static_cast<std::ptrdiff_t>(i);
              list.erase(list.begin() + at);
              judge(copy);
              list = original;
              list.insert(list.begin() + at, original[i]);
              judge(copy);
              list = original;
              ++list[i].microbatch;
              judge(copy);
              list = original;
            }
          });
        }
      }
    }
  }
}

TEST_CASE("lists that are right one by one may still deadlock; the faults say who waits for whom") {
  const std::string faults = faults_of(lower(
      parse("2 stages, 2 microbatches, training\nstage 0: F0 B0 F1 B1\nstage 1: F0 F1 B0 B1\n")));
  CAPTURE(faults);
  for (const char* sends : {"buffered", "rendezvous"}) {
    const std::string start = std::string("deadlock with ") + sends + " sends: ";
    CHECK(faults.find(start + "stage 0 waits at RG0 for stage 1, which waits at RA1") !=
          std::string::npos);
    CHECK(faults.find(start + "stage 1 waits at RA1 for stage 0, which waits at RG0") !=
          std::string::npos);
  }
}

TEST_CASE("each kind of fault has its words") {
  const auto fault = [](const std::string& lists, const std::string& part) {
    const std::string faults = faults_of("2 stages, 1 microbatches, training\n" + lists);
    CAPTURE(lists, faults);
    CHECK(faults.find(part) != std::string::npos);
  };
  const std::string first = "stage 0: F0 SA0 RG0 B0\n", second = "stage 1: RA0 F0 B0 SG0\n";
  CHECK(faults_of("2 stages, 1 microbatches, training\n" + first + second).empty());
  fault(first + "stage 1: RA0 F0 B0\n", "stage 1: SG0 is missing");
  fault(first + "stage 1: RA0 F0 B0\n", "stage 0 waits at RG0 for stage 1, which has come to its");
  fault(first + "stage 1: RA0 F0\n", "stage 1: B0 is missing");
  fault(first + "stage 1: F0 B0 SG0\n", "stage 1: F0 comes before its input is received");
  fault(first + "stage 1: F0 B0 SG0\n", "SA0 of stage 0 is never received by stage 1");
  fault(first + "stage 1: F0 B0 SG0\n", "stage 0 waits at its end for stage 1 to receive SA0");
  fault(first + "stage 1: RA0 F0 F0 B0 SG0\n", "F0 comes when all of its kind are done");
  fault(first + "stage 1: RA0 F0 B0 SG0 SG0\n", "SG0 comes twice");
  fault(first + "stage 1: RA0 F0 SG0 B0\n", "SG0 comes before its backward");
  fault("stage 0: SA0 F0 RG0 B0\n" + second, "SA0 comes before its forward");
  fault("stage 0: F0 SA0 B0 RG0\n" + second, "B0 comes before its gradient is received");
  fault("stage 0: RG0 B0 F0 SA0\n" + second, "B0 comes before its forward");
  fault(first + "stage 1: RA0 F0 SA0 B0 SG0\n", "SA0 is a message beyond the pipeline's end");
  fault(first + "stage 1: RA0 F0 B0 SG0 F1\n", "F1 is none of the 1 microbatches");
  fault(first + "stage 1: RA0 F0.1 B0 SG0\n", "F0.1 is of a chunk");
  CHECK(faults_of("1 stages, 1 microbatches, evaluation\nstage 0: F0 B0\n")
            .find("B0 is a backward in an evaluation") != std::string::npos);
  CHECK(faults_of("0 stages, 1 microbatches, training\n") == "a schedule without stages\n");
  CHECK(faults_of("1 stages, 0 microbatches, training\nstage 0:\n") ==
        "a schedule without microbatches\n");
}

TEST_CASE("messages meet in order: one sent in another order than received is a fault") {
  const std::string faults = faults_of(
      "2 stages, 2 microbatches, evaluation\nstage 0: F0 F1 SA1 SA0\nstage 1: RA0 F0 RA1 F1\n");
  CHECK(faults.find("stage 1 receives RA0, but stage 0 sends SA1") != std::string::npos);
}

TEST_CASE("an action in another stage's list is a fault") {
  Schedule schedule = lower(gpipe(2, 1));
  schedule.stages[0][0].stage = 1;
  CHECK(faults_of(schedule).find("stage 0: F0 belongs to stage 1") != std::string::npos);
}

}  // namespace weft::pipeline
