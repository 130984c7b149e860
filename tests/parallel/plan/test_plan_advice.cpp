// The property that following any advice repairs what it was given for, on random plans; and the
// searches behind it.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "parallel/plan/nearest.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::with_fix;

namespace {

#ifdef WEFT_SANITIZED
constexpr int num_trials = 2000;
#else
constexpr int num_trials = 20000;
#endif

// Plans that break many rules at once, and now and then a key by itself.
class RandomPlans {
 public:
  index_t pick(std::initializer_list<index_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(generator_() % values.size()));
  }
  bool flip() { return pick({0, 1}) == 1; }

  Plan next() {
    Plan plan = sample_plan();
    plan.numerics.mode = pick({0, 0, 1}) == 1 ? NumericsMode::fast : NumericsMode::exact;
    plan.batch.global = pick({1, 7, 96, 128, 1000, 45000, 45001, 2000000000});
    plan.batch.micro = pick({-1, 1, 3, 16, 1000, 1 << 20});
    plan.batch.last = flip() ? LastBatch::pad : LastBatch::drop;
    plan.task.train = pick({30, 1000, 45000});
    plan.numerics.shards = pick({1, 4, 5, 12, 3072, 4000});
    plan.numerics.lanes = pick({1, 4, 7, 12, 4096});
    set_model(plan.model);
    set_layout(plan.layout);
    if (pick({0, 0, 0, 1}) == 1) set_news(plan);
    plan.comm.bucket_bytes = pick({1, 1, 1, 1 << 20, 1 << 20, -5});
    plan.comm.timeout_s = static_cast<double>(pick({1, 1, 1, 600, 600, 0}));
    return plan;
  }

 private:
  void set_model(ModelPlan& model) {
    model.layers = pick({1, 2, 3, 6, 6, 12, 1024, 0});
    model.hidden = pick({0, 1, 5, 48, 50, 65536, 70000});
    model.mlp_ratio = pick({1, 3, 4, 64});
    if (pick({0, 1, 1}) == 1) {
      model.kind = "vit";
      model.heads = pick({1, 4, 5, 6, 12, 24, 7, 60000, 0});
      model.patch = pick({1, 2, 4, 4, 5, 16, 32, 33});
    } else {
      model.heads = pick({0, 0, 0, 0, 8});
    }
    // Made for other data than the sample plan's.
    if (pick({0, 0, 0, 0, 0, 0, 0, 1}) == 1) model.kind = "gpt";
  }

  void set_news(Plan& plan) {
    plan.task.dataset = "ag_news";
    plan.task.tokens = pick({8, 64, 64, 0});
    if (plan.model.kind == "vit") plan.model.kind = "text_encoder";
    plan.model.patch = ModelPlan{}.patch;
    for (index_t i = pick({0, 1, 2, 3}); i > 0; --i)
      plan.task.length_buckets.push_back(pick({8, 64, 64, 65, i == 1 ? 64 : 0}));
  }

  void set_layout(LayoutPlan& layout) {
    layout.tp = pick({0, 1, 2, 3, 8, 24});
    layout.dp = pick({1, 2, 5, 8, 24});
    layout.pp = pick({1, 1, 2, 3, 4, 6, 7, 1000, 0});
    for (index_t i = pick({0, 0, 0, 1, 2, 3, 6}); i > 0; --i) {
      layout.stages.push_back(pick({1, 1, 2, 2, 3, 4, 6, 1024, i == 1 ? 0 : 1}));
    }
    layout.zero = pick({0, 0, 0, 1, 1, 1, 1, 2});
    layout.sequence_parallel = flip();
    const char* schedules[] = {"1f1b", "1f1b", "gpipe", "gpipe", "interleaved"};
    layout.schedule = schedules[pick({0, 1, 2, 3, 4})];
    layout.order = pick({0, 0, 0, 0, 0, 1}) == 1 ? "tp,dp" : "pp,dp,tp";
  }

  std::mt19937 generator_{20240501};
};

}  // namespace

TEST_CASE("following the advice repairs the plan") {
  RandomPlans plans;
  std::map<std::string, int> num_advised;  // faults with advice, by key, where all rules were asked
  for (int trial = 0; trial < num_trials; ++trial) {
    const Plan plan = plans.next();
    std::optional<index_t> num_ranks;
    if (plans.flip()) num_ranks = plans.pick({1, 2, 6, 8, 16, 17});

    const std::vector<PlanFault> before = validate(plan, num_ranks);
    // One step: each advice on a rule over several keys removes that fault and adds none. (Where a
    // key is broken by itself, or given to a kind that does not use it, rules could not be asked
    // yet.)
    const bool all_rules_asked = check_keys(plan).empty();
    for (const PlanFault& fault : before) {
      INFO(fault.key << ": " << fault.message);
      // Where the number of ranks is given, a fault of one axis may have no advice of its own.
      // So may one of the kind of model, where no other kind uses the same keys.
      if (fault.key != "layout" && fault.key != "model.kind" && !num_ranks)
        CHECK(!fault.fixes.empty());
      if (all_rules_asked && !fault.fixes.empty()) ++num_advised[fault.key];
      for (const PlanFix& fix : fault.fixes) {
        const std::vector<PlanFault> after = validate(with_fix(plan, fix), num_ranks);
        if (all_rules_asked) CHECK(after.size() < before.size());
        for (const PlanFault& other : after) CHECK(other.message != fault.message);
      }
    }
  }
  for (const char* key : {"batch.global", "numerics.shards", "model.heads", "model.patch",
                          "layout.tp", "layout.dp", "layout.pp", "layout.stages", "layout"}) {
    INFO(key);
    CHECK(num_advised[key] > num_trials / 1000);
  }
}

TEST_CASE("edit distance") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("globl", "global") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("form", "from") == 1);
}

TEST_CASE("the nearest name looks at whole names and at last parts") {
  const std::vector<std::string> names = {"name", "batch.global", "optimizer.lr"};
  CHECK(nearest_name("batch.globl", names) == 1);
  CHECK(nearest_name("lr", names) == 2);
  CHECK(nearest_name("training.global", names) == 1);
}

TEST_CASE("nearest legal values") {
  const auto even = [](index_t i) { return i % 2 == 0; };
  CHECK(nearest_legal(7, 1, 9, 1, even) == std::vector<index_t>{6, 8});
  CHECK(nearest_legal(100, 1, 9, 1, even) == std::vector<index_t>{8});
  CHECK(nearest_legal(-5, 1, 9, 1, even) == std::vector<index_t>{2});
  CHECK(nearest_legal(5, 3, 9, 4, even) == std::vector<index_t>{4, 8});
  CHECK(nearest_legal(5, 1, 9, 1, [](index_t) { return false; }).empty());
}
