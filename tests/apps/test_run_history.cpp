// Time over the parts of a run, and when its target was reached, against times by hand.
#include <catch2/catch.hpp>

#include "apps/run_history.hpp"

using namespace weft;
using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

namespace {

const TargetPlan accuracy{.metric = "accuracy", .at_least = 0.6, .at_most = {}};
const TargetPlan loss{.metric = "loss", .at_least = {}, .at_most = 1.5};

// Evaluations of steps 10, 20, ... at 1 s of steps each.
RunHistory with(const std::vector<double>& accuracies) {
  RunHistory history;
  double at = 0.0;
  for (const double value : accuracies) {
    at += 1.0;
    history.add_evaluation({{"step", static_cast<index_t>(10 * at)},
                            {"split", "validation"},
                            {"accuracy", value},
                            {"epochs", at / 2},
                            {"training_s", at},
                            {"elapsed_s", 2 * at}});
  }
  return history;
}

}  // namespace

TEST_CASE("the target is reached where two evaluations in a row reach it") {
  // Once at 20, for good from 40 on; that it falls again at 60 takes nothing back.
  const Json target = with({0.5, 0.7, 0.5, 0.6, 0.61, 0.5}).target_json(accuracy);
  CHECK(target.at("reached") == true);
  CHECK(target.at("step") == 40);
  CHECK(target.at("epochs") == 2.0);
  CHECK(target.at("value") == 0.6);
  CHECK(target.at("training_s") == 4.0);
  CHECK(target.at("elapsed_s") == 8.0);
  CHECK(target.at("best") == 0.7);
  CHECK(target_text(target) ==
        "target accuracy at least 0.6: reached at step 40 after 2 epochs, 4 s of steps, 8 s with "
        "evaluation and saving");
}

TEST_CASE("a target that is met once, last or never is not reached") {
  for (const auto& values :
       std::vector<std::vector<double>>{{}, {0.7}, {0.5, 0.9}, {0.7, 0.5, 0.7}, {0.59, 0.59}}) {
    const Json target = with(values).target_json(accuracy);
    CHECK(target.at("reached") == false);
    CHECK(target.at("step").is_null());
    CHECK(target.at("best").is_null() == values.empty());
  }
  CHECK(target_text(with({0.5, 0.55}).target_json(accuracy)) ==
        "target accuracy at least 0.6: not reached at two evaluations one after the other; best "
        "0.55");
  CHECK(with({0.9, 0.9}).target_json({}).is_null());
}

TEST_CASE("a step that is evaluated twice counts once") {
  RunHistory history = with({0.5, 0.9});
  history.add_evaluation({{"step", 20}, {"split", "validation"}, {"accuracy", 0.9}});
  CHECK(history.target_json(accuracy).at("reached") == false);
}

TEST_CASE("a loss is to fall; what is not defined or not there reaches nothing") {
  RunHistory history;
  const auto add = [&](index_t step, const Json& value) {
    history.add_evaluation({{"step", step}, {"split", "validation"}, {"loss", value}});
  };
  add(1, 1.4);
  add(2, nullptr);
  add(3, 1.5);
  CHECK(history.target_json(loss).at("reached") == false);
  add(4, 1.3);
  CHECK(history.target_json(loss).at("step") == 3);
  CHECK(history.target_json(loss).at("best") == 1.3);
  CHECK(history.target_json(accuracy).at("best").is_null());
}

TEST_CASE("the best step is told by the target's metric, or else by accuracy") {
  using Steps = std::vector<index_t>;
  CHECK(with({}).steps_by_worth({}).empty());
  // 0.9 twice: the earlier one first.
  CHECK(with({0.5, 0.9, 0.7, 0.9}).steps_by_worth({}) == Steps{20, 40, 30, 10});
  RunHistory history;
  const auto add = [&](index_t step, const Json& loss_of, double accuracy_of, double f1) {
    history.add_evaluation({{"step", step},
                            {"split", "validation"},
                            {"loss", loss_of},
                            {"accuracy", accuracy_of},
                            {"macro_f1", f1}});
  };
  add(5, 1.5, 0.4, 0.1);
  add(10, 1.2, 0.3, 0.4);
  add(15, nullptr, 0.2, 0.3);
  add(20, 1.2, 0.6, 0.2);
  add(20, 1.2, 0.1, 0.2);  // the end once more
  history.add_evaluation({{"step", 10}, {"split", "test"}, {"accuracy", 1.0}});
  CHECK(history.steps_by_worth({}) == Steps{20, 5, 10, 15});
  CHECK(history.steps_by_worth(accuracy) == Steps{20, 5, 10, 15});
  CHECK(history.steps_by_worth(loss) == Steps{10, 20, 5});  // not where it is not defined
  CHECK(history.steps_by_worth({.metric = "macro_f1", .at_least = 0.9, .at_most = {}}) ==
        Steps{10, 15, 20, 5});
}

TEST_CASE("times go on over a resume") {
  const RunHistory::Clock::time_point begin{100s};
  RunHistory history;
  history.read(
      "{\"step\":1,\"step_ms\":500.0,\"elapsed_s\":0.75}\n"
      "{\"step\":2,\"step_ms\":1000.0,\"elapsed_s\":2.0}\n",
      "{\"step\":2,\"split\":\"validation\",\"accuracy\":0.7,\"training_s\":1.5,"
      "\"elapsed_s\":2.25}\n");
  CHECK(history.training_s() == 1.5);
  CHECK(history.elapsed_s(begin) == 2.25);  // the evaluation came last
  history.begin(begin);
  history.add_step(250.0);
  CHECK(history.training_s() == 1.75);
  CHECK(history.elapsed_s(begin + 500ms) == 2.75);
  Json line = {{"step", 3}, {"split", "validation"}, {"accuracy", 0.7}};
  line.update(history.stamp(begin + 500ms));
  history.add_evaluation(line);
  CHECK(history.target_json(accuracy).at("step") == 2);
  CHECK(history.target_json(accuracy).at("training_s") == 1.5);
}

TEST_CASE("a log of before there was a clock counts its steps") {
  RunHistory history;
  history.read("{\"step\":1,\"step_ms\":500.0}\n{\"step\":2,\"step_ms\":250.0}\n", "");
  CHECK(history.elapsed_s() == 0.75);
}
