// The hash of a run's state over tp x dp x pp: one value for every layout, another one for any
// changed element, and an error where copies are not equal.
#include <catch2/catch.hpp>

#include <bit>
#include <functional>

#include "core/error.hpp"
#include "core/optimizer.hpp"
#include "parallel/data/run_hash.hpp"
#include "tests/parallel/data/data_grid.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

using Change = std::function<void(GridRank&, Optimizer&)>;

// After one step and `change`; what an Error says instead, where there is one.
std::vector<std::string> hashes(const GridRun& run, const Change& change = {}) {
  return results_of_grid<std::string>(run, [&](GridRank& rank) {
    const auto optimizer = make_adamw(rank.context, {}, rank.sync->owned());
    rank.sum_gradients(0);
    optimizer->update(rank.context, rank.parameters, {.step = 0, .learning_rate = 0.01});
    rank.sync->publish(rank.context);
    rank.sync->release();
    if (change) change(rank, *optimizer);
    try {
      return run_hash(rank.parameters, *optimizer, rank.tp(), rank.dp(), rank.pp()).text();
    } catch (const Error& error) {
      return std::string("error: ") + error.what();
    }
  });
}

void flip(float& x) { x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ 1u); }

bool is(GridRank& rank, int tp, int dp, int pp) {
  return rank.tp().rank() == tp && rank.dp().rank() == dp && rank.pp().rank() == pp;
}

const Parameter& find(const GridRank& rank, const std::string& name) {
  for (const auto& p : rank.parameters.all()) {
    if (p->name == name) return *p;
  }
  throw std::runtime_error("no " + name);
}

}  // namespace

TEST_CASE("one hash for every layout and ZeRO stage", "[run_hash]") {
  const std::string expected = hashes({}).front();
  CHECK(expected.size() == 32);
  for (const int tp : {1, 2, 3, 4}) {
    for (const int dp : {1, 2, 4}) {
      for (const int pp : {1, 2, 3}) {
        for (const index_t zero : {0, 1}) {
          if (tp * dp * pp > 16) continue;
          const GridRun run{.tp = tp,
                            .dp = dp,
                            .pp = pp,
                            .zero = zero,
                            .bucket_bytes = dp == 2 ? 1 : 5000,
                            .sequence_parallel = tp == 2};
          INFO(run.text());
          for (const std::string& hash : hashes(run)) CHECK(hash == expected);
        }
      }
    }
  }
  CHECK(hashes({.shards = 2}).front() != expected);
}

TEST_CASE("one changed moment on one dp rank changes the hash", "[run_hash]") {
  const GridRun run{.tp = 2, .dp = 3, .pp = 2, .zero = 1};
  const auto before = hashes(run);
  for (const int dp : {0, 1, 2}) {
    for (const std::size_t state : {0u, 1u}) {
      // Of up.weight, cut over tp, on stage 0: an element that no pad or gap is.
      const auto after = hashes(run, [&](GridRank& rank, Optimizer& optimizer) {
        if (!is(rank, 0, dp, 0)) return;
        const Parameter& p = find(rank, "up.weight");
        bool is_first = true;
        optimizer.owned().for_each_in({p.offset, p.offset + 1200}, [&](Range, index_t offset) {
          if (std::exchange(is_first, false)) flip(optimizer.states()[state].data[offset]);
        });
        if (is_first) flip(*p.value);  // it owns none of it: a value, which must show as a fault
      });
      for (const std::string& hash : after) CHECK(hash != before.front());
      for (const std::string& hash : after) CHECK(hash == after.front());
    }
  }
}

TEST_CASE("copies that differ are reported on every rank", "[run_hash]") {
  struct Case {
    GridRun run;
    const char* parameter;
    bool is_moment;
    int tp, dp, pp;
    const char* expected;
  };
  const Case cases[] = {
      {{.dp = 2}, "up.weight", false, 0, 1, 0, "copies of the parameters differ"},
      {{.dp = 3, .zero = 1}, "norm.bias", false, 0, 2, 0, "between world ranks 0 and 2"},
      {{.tp = 2, .dp = 2, .pp = 2}, "down.weight", false, 1, 1, 1, "parameters differ"},
      {{.dp = 2}, "up.weight", true, 0, 1, 0, "copies of the optimizer's state differ"},
      {{.tp = 2, .dp = 2, .pp = 2}, "head.bias", true, 0, 0, 1, "optimizer's state differ"},
      {{.tp = 3}, "position", false, 2, 0, 0, "between world ranks 0 and 2"},
      {{.tp = 2, .pp = 2}, "norm.bias", true, 1, 0, 1, "replicated parameters"},
  };
  for (const Case& one : cases) {
    INFO(one.run.text() << one.parameter);
    const auto texts = hashes(one.run, [&](GridRank& rank, Optimizer& optimizer) {
      if (!is(rank, one.tp, one.dp, one.pp)) return;
      const Parameter& p = find(rank, one.parameter);
      flip(one.is_moment ? optimizer.states()[0].data[p.offset] : *p.value);
    });
    for (const std::string& text : texts) {
      INFO(text);
      CHECK(text.starts_with("error: "));
      CHECK(text.find(one.expected) != std::string::npos);
      CHECK(text.find("differ") != std::string::npos);
    }
  }
}

TEST_CASE("state that is neither whole nor divided is reported", "[run_hash]") {
  const auto texts = results_of_grid<std::string>({.dp = 2, .zero = 1}, [](GridRank& rank) {
    // Both hold the first slice.
    const auto optimizer = make_adamw(rank.context, {}, rank.sync->shares()[0]);
    try {
      return run_hash(rank.parameters, *optimizer, rank.tp(), rank.dp(), rank.pp()).text();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  });
  for (const std::string& text : texts) CHECK(text.find("neither") != std::string::npos);
}
