// The runner on ranks that are threads: every microbatch's way and order against a computation on
// one rank, memory, trace, and how a pipeline ends when a stage fails.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "parallel/comm/local_transport.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"
#include "parallel/pipeline/runner.hpp"
#include "parallel/pipeline/schedule_check.hpp"
#include "tests/parallel/pipeline/hash_stage.hpp"

namespace weft::pipeline {

namespace {

using testing::boundary;
using testing::HashStage;
using testing::Outcome;

using Disturb = std::function<void(int stage, char kind, index_t microbatch)>;

// One stage's rank: as a trainer would set it up.
struct StageRank {
  Context context{1, {}};
  Communicator pp;
  Runner runner;
  HashStage work;

  StageRank(Transport& transport, const Schedule& schedule, const Disturb& disturb = {})
      : pp(transport, &context.trace, "pp", 3, all_ranks(transport)),
        runner(context, pp, lower(schedule)),
        work(context, pp.rank(), pp.size(), schedule.training, disturbed(disturb)) {}

 private:
  std::function<void(char, index_t)> disturbed(const Disturb& disturb) {
    if (!disturb) return {};
    return [disturb, stage = pp.rank()](char kind, index_t k) { disturb(stage, kind, k); };
  }
};

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

// `num_steps` steps of one runner; each one's outcome against the serial one.
void check_steps(const Schedule& schedule, int num_steps, const Disturb& disturb = {}) {
  const int p = schedule.num_stages();
  const std::vector<index_t> forecast = check(lower(schedule)).peak_activations;
  run_ranks(p, [&](Transport& transport) {
    StageRank rank(transport, schedule, disturb);
    const auto s = static_cast<std::size_t>(transport.rank());
    for (int step = 0; step < num_steps; ++step) {
      const Outcome expected =
          testing::serial(p, schedule.num_microbatches, schedule.training, step);
      rank.work.begin_step(step);
      rank.runner.run(rank.work, boundary);
      const std::string place = "step " + std::to_string(step) + ", stage " + std::to_string(s);
      const bool is_last = transport.rank() == p - 1;
      expect(rank.work.losses() == (is_last ? expected.losses : std::vector<testing::Words>()),
             place + ": losses");
      expect(transport.rank() > 0 || rank.work.gradients() == expected.gradients,
             place + ": gradients of the input");
      expect(rank.work.gradient_of_weights() == expected.gradients_of_weights[s],
             place + ": order of the microbatches' gradients");
      expect(rank.work.is_empty(), place + ": an activation is left");
      expect(rank.context.arena.in_use() == 0, place + ": a tensor is left");
    }
    expect(static_cast<index_t>(rank.work.peak_activations()) == forecast[s],
           "stage " + std::to_string(s) + " kept " + std::to_string(rank.work.peak_activations()) +
               " activations, not " + std::to_string(forecast[s]));
  });
}

}  // namespace

TEST_CASE("every schedule gives every microbatch the serial computation's path and order") {
  const int p = GENERATE(range(1, 7));
  for (index_t m = 1; m <= 9; ++m) {
    CAPTURE(p, m);
    REQUIRE_NOTHROW(check_steps(gpipe(p, m), 2));
    REQUIRE_NOTHROW(check_steps(one_f_one_b(p, m), 2));
    REQUIRE_NOTHROW(check_steps(forward_only(p, m), 2));
  }
}

TEST_CASE("one runner serves many steps") {
  REQUIRE_NOTHROW(check_steps(one_f_one_b(3, 5), 200));
  REQUIRE_NOTHROW(check_steps(gpipe(4, 3), 200));
}

TEST_CASE("stages whose speed varies change no order") {
  const Disturb uneven = [](int stage, char kind, index_t k) {
    const auto noise = static_cast<unsigned>(stage * 7 + kind * 5 + static_cast<int>(k) * 3) % 5;
    std::this_thread::sleep_for(std::chrono::microseconds(noise * 300));
  };
  for (int p = 2; p <= 5; ++p) {
    CAPTURE(p);
    REQUIRE_NOTHROW(check_steps(one_f_one_b(p, 6), 3, uneven));
    REQUIRE_NOTHROW(check_steps(gpipe(p, 6), 3, uneven));
  }
}

TEST_CASE("a list that no generator made runs all the same") {
  // Stage 0 fills the pipeline with one microbatch more than it must; messages are late or early.
  const Schedule schedule = parse(
      "2 stages, 3 microbatches, training\n"
      "stage 0: F0 SA0 F1 F2 SA1 SA2 RG0 RG1 B0 B1 RG2 B2\n"
      "stage 1: RA0 F0 B0 RA1 RA2 SG0 F1 B1 F2 SG1 B2 SG2\n");
  REQUIRE(check(schedule).faults.empty());
  run_ranks(2, [&](Transport& transport) {
    Context context(1, {});
    Communicator pp(transport, &context.trace, "pp", 3, {0, 1});
    Runner runner(context, pp, schedule);
    HashStage work(context, pp.rank(), 2, true);
    work.begin_step(5);
    runner.run(work, boundary);
    const Outcome expected = testing::serial(2, 3, true, 5);
    const auto s = static_cast<std::size_t>(pp.rank());
    expect(work.gradient_of_weights() == expected.gradients_of_weights[s], "order");
    expect(pp.rank() == 1 || work.gradients() == expected.gradients, "gradients");
  });
}

TEST_CASE("an exception on one stage ends them all, and its own comes out") {
  const int failing_stage = GENERATE(0, 1, 2, 3);
  const char failing_kind = GENERATE('F', 'B');
  const index_t failing_microbatch = GENERATE(0, 2, 4);
  CAPTURE(failing_stage, failing_kind, failing_microbatch);
  for (const Schedule& schedule : {gpipe(4, 5), one_f_one_b(4, 5)}) {
    std::atomic<int> num_ended{0};
    std::string message;
    try {
      run_ranks(4, [&](Transport& transport) {
        StageRank rank(transport, schedule, [&](int stage, char kind, index_t k) {
          if (stage == failing_stage && kind == failing_kind && k == failing_microbatch)
            throw Error(ExitCode::data, "a sample is broken");
        });
        rank.work.begin_step(0);
        try {
          rank.runner.run(rank.work, boundary);
          rank.pp.barrier();
        } catch (...) {
          ++num_ended;
          throw;
        }
      });
    } catch (const Error& error) {
      message = error.what();
    }
    REQUIRE(message == "a sample is broken");
    REQUIRE(num_ended == 4);
  }
}

TEST_CASE("nothing is under way once an exception has left the runner") {
  run_ranks(2, [](Transport& transport) {
    StageRank rank(transport, gpipe(2, 3), [](int stage, char kind, index_t) {
      if (stage == 1 && kind == 'F') throw std::out_of_range("stage 1");
    });
    if (transport.rank() == 0) {
      // The neighbour of a stage that fails: it gets no gradient, until the run is ended.
      try {
        rank.runner.run(rank.work, boundary);
      } catch (const Error& error) {
        expect(error.code() == ExitCode::peer, "the peer's end");
        return;
      }
      throw std::runtime_error("a gradient came from nowhere");
    }
    try {
      rank.runner.run(rank.work, boundary);
    } catch (const std::out_of_range&) {
      // Caught and gone: requests that were still alive would now end the program.
      expect(rank.context.arena.in_use() == 0, "a tensor is left");
      transport.abort(ExitCode::failed, "stage 1");
      return;
    }
    throw std::runtime_error("the exception is lost");
  });
}

TEST_CASE("tensors of another shape or at the wrong end are refused by name") {
  struct Wrong final : StageWork {
    Tensor forward(index_t, Tensor) override { return output; }
    Tensor backward(index_t, Tensor) override { return {}; }
    Tensor output;
  };
  Context context(1, {});
  Wrong work;
  const auto message_of = [&](int rank, const std::string& part) {
    LocalWorld world(2);
    const auto transport = world.make_transport(rank);
    Communicator pp(*transport, nullptr, "pp", 3, {0, 1});
    // Stage 1's input comes from a stage 0 that only sends.
    const std::vector<std::byte> sent(sizeof(testing::Words));
    const auto stage_0 = world.make_transport(0);
    const auto send = rank == 1 ? stage_0->start_send(1, {3, 1}, sent) : nullptr;
    Runner runner(context, pp, lower(forward_only(2, 1)));
    CHECK_THROWS_WITH(runner.run(work, boundary), Catch::Contains(part));
  };
  work.output = Tensor(context.arena, MemoryKind::activations, {3, 4});
  message_of(
      0, "pipeline stage 0, F0 returns a tensor [3, 4]; between stages goes an f32 tensor [4, 3]");
  message_of(1, "pipeline stage 1, F0 returns a tensor [3, 4]; there is no stage");
  work.output = Tensor();
  message_of(0, "F0 returns no tensor");
}

TEST_CASE("a schedule that may not run is refused before any message") {
  run_ranks(2, [](Transport& transport) {
    Context context(1, {});
    Communicator pp(transport, nullptr, "pp", 3, {0, 1});
    const auto refused = [&](const Schedule& schedule, const std::string& part) {
      try {
        Runner(context, pp, schedule);
      } catch (const Error& error) {
        expect(std::string(error.what()).find(part) != std::string::npos, error.what());
        return;
      }
      throw std::runtime_error("made");
    };
    refused(lower(gpipe(3, 2)), "3 stages on 2 ranks of group 'pp'");
    Schedule swapped = gpipe(2, 3);
    std::swap(swapped.stages[1][3], swapped.stages[1][4]);
    refused(lower(swapped), "stage 1: B1 comes where B0 is due");
    refused(gpipe(2, 3), "stage 0: B0 comes before its gradient is received");
  });
}

TEST_CASE("the next input is under way while a stage computes, and waiting is a bubble") {
  using std::chrono::milliseconds;
  std::vector<std::string> stage_1;
  std::int64_t bubble_ns = 0, communication_ns = 0;
  run_ranks(2, [&](Transport& transport) {
    Trace* trace = nullptr;
    StageRank rank(transport, gpipe(2, 3), [&](int stage, char kind, index_t k) {
      if (stage == 0 && kind == 'F' && k == 0) std::this_thread::sleep_for(milliseconds(60));
      const Trace::Span span(trace, Activity::forward, std::string(1, kind) + std::to_string(k));
    });
    trace = &rank.context.trace;
    trace->record_events(true);
    rank.work.begin_step(0);
    rank.runner.run(rank.work, boundary);
    if (transport.rank() != 1) return;
    for (const Trace::Event& event : trace->events()) {
      const std::string activity = event.activity == Activity::bubble ? "wait for " : std::string();
      stage_1.push_back(activity + trace->names()[event.name]);
    }
    bubble_ns = trace->own_ns(Activity::bubble);
    communication_ns = trace->own_ns(Activity::communication);
  });
  std::vector<std::string> until_backward;
  for (const std::string& event : stage_1) {
    if (event == "B0") break;
    until_backward.push_back(event);
  }
  const std::string receive = "pipeline.receive_activation";
  CHECK(until_backward == std::vector<std::string>{receive, "wait for " + receive, receive, "F0",
                                                   "wait for " + receive, receive, "F1",
                                                   "wait for " + receive, "F2"});
  CHECK(bubble_ns > 20'000'000);
  CHECK(bubble_ns > communication_ns);
}

}  // namespace weft::pipeline
