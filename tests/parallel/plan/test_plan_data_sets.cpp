// Plans of data sets other than images: what is legal, and what their samples are to a model.
#include <catch2/catch.hpp>

#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

TEST_CASE("plans of tables and texts are legal, and their samples have the model's shape") {
  Plan bank = sample_plan();
  bank.task.dataset = "bank";
  bank.task.train = 30000;
  bank.task.test = 5000;
  CHECK(validate(bank, std::nullopt).empty());
  CHECK(bank.features_per_token() == 75);  // 8 numbers, 2 of pdays, 65 places of categories
  bank.task.table = "bank-full";
  bank.task.allow_leak = true;
  CHECK(bank.features_per_token() == 61);
  bank.task.accept = {.metric = "pr_auc", .split = "test", .at_least = 0.4, .at_most = {}};
  CHECK(validate(bank, std::nullopt).empty());
  bank.numerics.shards = 64;
  bank.numerics.lanes = 4;
  bank.model.hidden = 64;
  REQUIRE(validate(bank, std::nullopt).size() == 1);
  CHECK(validate(bank, std::nullopt)[0].message.find("at most one piece per input feature: 61") !=
        std::string::npos);

  Plan news = sample_vit();
  news.task.dataset = "ag_news";
  news.task.tokens = 40;
  news.task.vocabulary = 1001;
  news.model.kind = "text_encoder";
  news.model.patch = 4;
  CHECK(validate(news, std::nullopt).empty());
  CHECK(news.tokens_per_sample() == 40);
  CHECK(news.padded_vocabulary() == 1004);  // of 4 shards
  CHECK(sample_shape(news.task).labels == 1);

  Plan text = sample_vit();
  text.task.dataset = "text";
  text.task.tokens = 32;
  text.task.test = 10;
  text.model.kind = "gpt";
  CHECK(validate(text, std::nullopt).empty());
  CHECK(sample_shape(text.task).labels == 32);
  CHECK(sample_shape(text.task).classes == 256);
}

TEST_CASE("length buckets rise to the tokens of a sample") {
  Plan plan = sample_vit();
  plan.task.dataset = "ag_news";
  plan.task.tokens = 64;
  plan.model.kind = "text_encoder";
  plan.model.patch = 4;
  const auto faults_of = [&](const std::vector<index_t>& buckets) {
    plan.task.length_buckets = buckets;
    std::string text;
    for (const PlanFault& fault : validate(plan, std::nullopt))
      text += fault.key + ": " + fault.message + "\n";
    return text;
  };
  CHECK(faults_of({}) == "");
  CHECK(faults_of({64}) == "");
  CHECK(faults_of({1, 2, 63, 64}) == "");
  CHECK(faults_of({32, 48}) ==
        "task.length_buckets: expected lengths that rise and end with task.tokens 64; found [32, "
        "48]; "
        "nearest legal: task.length_buckets = [32, 48, 64], or task.tokens = 48\n");
  // Nothing else mends these: they fall, repeat, or go on behind the tokens.
  CHECK(faults_of({64, 32}) ==
        "task.length_buckets: expected lengths that rise and end with task.tokens 64; found [64, "
        "32]; "
        "nearest legal: task.length_buckets = [32, 64]\n");
  CHECK(
      faults_of({32, 32, 64}) ==
      "task.length_buckets: expected lengths that rise and end with task.tokens 64; found [32, 32, "
      "64]; nearest legal: task.length_buckets = [32, 64]\n");
  CHECK(faults_of({16, 128}) ==
        "task.length_buckets: expected lengths that rise and end with task.tokens 64; found [16, "
        "128]; "
        "nearest legal: task.length_buckets = [16, 64], or task.tokens = 128\n");
  CHECK(faults_of({0, 64}) ==
        "task.length_buckets: expected \"none\" or a list of integers from 1 to 65536; found [0, "
        "64]; "
        "nearest legal: task.length_buckets = \"none\"\n");
  plan.task.dataset = "text";
  plan.task.test = 1;
  plan.model.kind = "gpt";
  CHECK(faults_of({32, 64}).starts_with(
      "task.length_buckets: task.dataset = \"text\" does not use it"));
}

TEST_CASE("faulty rows are refused unless the plan says otherwise, in files that have a form") {
  Plan plan = sample_plan();
  CHECK_FALSE(plan.task.skips_faulty_rows());
  plan.task.faulty_rows = "skip";
  REQUIRE(validate(plan, std::nullopt).size() == 1);
  CHECK(validate(plan, std::nullopt)[0].message ==
        "task.dataset = \"cifar10\" does not use it; remove it, or set task.dataset = \"bank\" or "
        "\"ag_news\"");
  plan.task.dataset = "bank";
  plan.task.train = 30000;
  plan.task.test = 5000;
  CHECK(validate(plan, std::nullopt).empty());
  CHECK(plan.task.skips_faulty_rows());
  plan.task.faulty_rows = "skp";
  REQUIRE(validate(plan, std::nullopt).size() == 1);
  CHECK(validate(plan, std::nullopt)[0].key == "task.faulty_rows");
  CHECK(
      validate(plan, std::nullopt)[0].message ==
      "expected \"refuse\" or \"skip\"; found \"skp\"; nearest legal: task.faulty_rows = \"skip\"");
}
