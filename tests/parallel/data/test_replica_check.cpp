// One flipped bit in one copy of anything that several ranks hold alike: found, named, and laid at
// the door of the rank that stands alone; and no alarm where nothing is wrong.
#include <catch2/catch.hpp>

#include <atomic>
#include <bit>
#include <functional>

#include "core/host_name.hpp"
#include "core/optimizer.hpp"
#include "core/state_hash.hpp"
#include "parallel/data/replica_check.hpp"
#include "tests/parallel/data/data_grid.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

using Change = std::function<void(GridRank&, Optimizer&)>;

// What each rank says after two steps and `change`; a check may change nothing.
std::vector<std::string> faults(const GridRun& run, const Change& change = {}) {
  return results_of_grid<std::string>(run, [&](GridRank& rank) {
    const auto optimizer = make_adamw(rank.context, {}, rank.sync->owned());
    for (index_t step = 0; step < 2; ++step) {
      rank.sum_gradients(step);
      optimizer->update(rank.context, rank.parameters, {.step = step, .learning_rate = 0.01});
      rank.sync->publish(rank.context);
      rank.sync->release();
    }
    if (change) change(rank, *optimizer);
    const StateHash before = hash_state(rank.parameters, optimizer.get());
    const std::string fault =
        replica_fault(rank.context.device, rank.parameters, *optimizer, rank.mesh, rank.tied.get());
    const StateHash after = hash_state(rank.parameters, optimizer.get());
    const bool is_same = before.values == after.values && before.states == after.states;
    return is_same ? fault : "the check has changed the state";
  });
}

const Parameter* find(const GridRank& rank, const std::string& name) {
  for (const auto& p : rank.parameters.all()) {
    if (p->name == name) return p.get();
  }
  return nullptr;  // on another stage
}

void flip(float* x, int bit) {
  *x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(*x) ^ (std::uint32_t{1} << bit));
}

// Where bit `bit` of an element is flipped, on one rank.
struct Flip {
  int tp, dp;
  const char* parameter;
  int moment;     // -1: the value
  index_t local;  // element of local storage
  int bit = 0;
};

Change one_flip(const Flip& at) {
  return [=](GridRank& rank, Optimizer& optimizer) {
    const Parameter* p = find(rank, at.parameter);
    if (p == nullptr || rank.tp().rank() != at.tp || rank.dp().rank() != at.dp) return;
    const index_t flat = p->offset + at.local;
    if (at.moment < 0) {
      flip(rank.parameters.values() + flat, at.bit);
      return;
    }
    bool is_here = false;
    optimizer.owned().for_each_in({flat, flat + 1}, [&](Range, index_t offset) {
      flip(optimizer.states()[static_cast<std::size_t>(at.moment)].data + offset, at.bit);
      is_here = true;
    });
    if (!is_here) throw std::runtime_error("the rank owns no such moment");
  };
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("no alarm on any layout", "[replica_check]") {
  CaseFilter filter;
  for (const int tp : {1, 2, 3, 4}) {
    for (const int dp : {1, 2, 3, 4}) {
      for (const int pp : {1, 2, 3}) {
        for (const index_t zero : {0, 1}) {
          for (const index_t shards : {4, 5}) {
            if (tp * dp * pp > 16 || !filter.takes_next()) continue;
            const GridRun run{.shards = shards,
                              .tp = tp,
                              .dp = dp,
                              .pp = pp,
                              .zero = zero,
                              .bucket_bytes = dp == 2 ? 1 : 5000,
                              .sequence_parallel = tp == 2};
            INFO(run.text());
            for (const std::string& fault : faults(run)) CHECK(fault == "");
          }
        }
      }
    }
  }
}

TEST_CASE("one flipped bit is found and named", "[replica_check]") {
  struct Case {
    GridRun run;
    Flip flip;
    std::string place;  // by hand: from shapes, cuts and the range rule
    std::string blame;  // in the text after the values
  };
  const std::string two = "No majority among 2 copies";
  const Case cases[] = {
      // Parameters and moments of replicas, dp 2, 3, 4.
      {{.dp = 2}, {0, 1, "up.weight", -1, 0}, "up.weight [0, 0]", two},
      // Shards of up.weight [9, 400] in 4: rows 0-2, 3-5, 6-8 and none; 1200 elements, then 1216.
      {{.dp = 3},
       {0, 2, "up.weight", -1, 1216 + 401, 31},
       "up.weight [4, 1]",
       "1 of 3 copies: rank 2"},
      {{.dp = 4},
       {0, 0, "down.weight", -1, 14, 22},
       "down.weight [0, 14]",
       "1 of 4 copies: rank 0"},
      {{.dp = 3},
       {0, 1, "up.weight", 0, 2, 7},
       "exp_avg of up.weight [0, 2]",
       "1 of 3 copies: rank 1"},
      {{.dp = 2}, {0, 0, "head.bias", 1, 0, 30}, "exp_avg_sq of head.bias [0]", two},
      // ZeRO: values are copies still.
      {{.dp = 4, .zero = 1},
       {0, 3, "position", -1, 71, 5},
       "position [1, 1]",
       "1 of 4 copies: rank 3"},
      // What is held by all of tp, alone and with dp: four copies; with pp, on the second stage.
      {{.tp = 2}, {1, 0, "norm.gain", -1, 1099, 3}, "norm.gain [1099]", two},
      {{.tp = 2, .dp = 2},
       {1, 0, "norm.bias", -1, 69, 9},
       "norm.bias [69]",
       "1 of 4 copies: rank 1"},
      {{.tp = 2, .dp = 2},
       {0, 1, "norm.gain", 1, 1024, 9},
       "exp_avg_sq of norm.gain [1024]",
       "1 of 4 copies: rank 2"},
      {{.tp = 3},
       {2, 0, "position", 0, 0, 1},
       "exp_avg of position [0, 0]",
       "1 of 3 copies: rank 2"},
      // Ranks of stage 1 are 4 to 7.
      {{.tp = 2, .dp = 2, .pp = 2},
       {1, 1, "norm.bias", -1, 5, 9},
       "norm.bias [5]",
       "1 of 4 copies: rank 7"},
      // Cut over tp: the tp ranks' pieces have copies on dp alone. tp 1 of 2 has shards 2 and 3 of
      // down.weight [20, 60], columns 30-44 and 45-59.
      {{.tp = 2, .dp = 3},
       {1, 2, "down.weight", -1, 15, 9},
       "down.weight [1, 30]",
       "1 of 3 copies: rank 5"},
      {{.tp = 2, .dp = 2, .pp = 2},
       {1, 0, "down.weight", 0, 0, 9},
       "exp_avg of down.weight [0, 30]",
       two},
  };
  for (const Case& one : cases) {
    INFO(one.run.text() << one.flip.parameter);
    for (const std::string& fault : faults(one.run, one_flip(one.flip))) {
      INFO(fault);
      CHECK(contains(fault, "first in " + one.place + ":"));
      CHECK(contains(fault, one.blame));
      CHECK(contains(fault, "memory of host " + host_name()));
      CHECK(!contains(fault, "more tensor"));
    }
  }
}

TEST_CASE("a divided moment that all of tp hold is compared over tp", "[replica_check]") {
  // Which dp rank owns element 0 of norm.gain is the buckets' business.
  for (const int tp : {2, 3}) {
    const GridRun run{.tp = tp, .dp = 2, .zero = 1};
    std::atomic<int> owner = -1;
    const auto texts = faults(run, [&](GridRank& rank, Optimizer& optimizer) {
      const Parameter& p = *find(rank, "norm.gain");
      if (rank.tp().rank() != 1) return;
      optimizer.owned().for_each_in({p.offset, p.offset + 1}, [&](Range, index_t offset) {
        owner = rank.mesh.world_rank();
        flip(optimizer.states()[0].data + offset, 4);
      });
    });
    REQUIRE(owner >= 0);
    for (const std::string& text : texts) {
      INFO(text);
      CHECK(contains(text, "exp_avg of norm.gain differ, first in exp_avg of norm.gain [0]:"));
      // Of the two dp ranks that hold the copy together, the one that has the element.
      CHECK(contains(text, "on rank " + std::to_string(owner)));
      CHECK(contains(text, tp == 3 ? "1 of 3 copies: rank " + std::to_string(owner) + "."
                                   : "No majority among 2 copies"));
    }
  }
}

TEST_CASE("copies of a tied parameter on two stages", "[replica_check]") {
  for (const int pp : {1, 2, 3}) {
    for (const int tp : {1, 2}) {
      for (const int dp : {1, 2}) {
        const GridRun run{
            .tp = tp, .dp = dp, .pp = pp, .zero = dp - 1, .bucket_bytes = 3000, .tied = true};
        INFO(run.text());
        for (const std::string& text : faults(run)) CHECK(text == "");
        if (pp == 1) continue;
        // Row 11 of 13, padded to 16: of the last tp rank. The last stage's last dp rank is alone.
        const int alone = run.num_ranks() - 1;
        const auto texts = faults(run, [&](GridRank& rank, Optimizer&) {
          if (rank.mesh.world_rank() != alone) return;
          const Parameter& copy = *rank.tied->copy();
          const ShardSpec& spec = copy.spec;
          flip(copy.value + spec.offset(2) + (11 - spec.piece(2).begin) * 300 + 7, 3);
        });
        for (const std::string& text : texts) {
          INFO(text);
          CHECK(contains(text, "copies of table differ, first in table [11, 7]: "));
          CHECK(contains(text, dp == 2 ? "1 of 4 copies: rank " + std::to_string(alone) + ". "
                                       : "No majority among 2 copies"));
        }
      }
    }
  }
}

TEST_CASE("both values are told, bit for bit", "[replica_check]") {
  const auto texts = faults({.dp = 3}, [](GridRank& rank, Optimizer&) {
    float& x = rank.parameters.values()[find(rank, "head.bias")->offset];
    x = rank.dp().rank() == 1 ? -1.5f : 1.0f;
    if (rank.dp().rank() == 1) flip(find(rank, "norm.gain")->value, 0);
  });
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(contains(text,
                   "copies of norm.gain differ (and of 1 more tensor on this stage), first in"));
  }
  const auto bits = faults({.dp = 3}, [](GridRank& rank, Optimizer&) {
    rank.parameters.values()[find(rank, "head.bias")->offset] =
        rank.dp().rank() == 1 ? -1.5f : 1.0f;
  });
  for (const std::string& text : bits) {
    CHECK(text ==
          "copies of head.bias differ, first in head.bias [0]: 1 (bits 3f800000) on ranks "
          "0, 2, -1.5 (bits bfc00000) on rank 1. In the minority, 1 of 3 copies: rank 1. "
          "Suspect the memory of host " +
              host_name());
  }
}

TEST_CASE("every bit of every element counts", "[replica_check]") {
  // A sweep over a whole parameter: one flip each, a different bit.
  const auto missed = results_of_grid<std::string>({.dp = 2}, [](GridRank& rank) {
    const auto optimizer = make_sgd(rank.context, {}, rank.sync->owned());
    const Parameter& p = *find(rank, "position");
    std::string all;
    for (index_t i = 0; i < p.spec.held_elements(); i += 7) {
      const int bit = static_cast<int>(i % 32);
      if (rank.dp().rank() == 1) flip(p.value + i, bit);
      const std::string fault =
          replica_fault(rank.context.device, rank.parameters, *optimizer, rank.mesh);
      const std::string place =
          "position [" + std::to_string(i / 70) + ", " + std::to_string(i % 70) + "]:";
      if (!contains(fault, place)) all += place + " " + fault + "\n";
      if (rank.dp().rank() == 1) flip(p.value + i, bit);
    }
    return all;
  });
  for (const std::string& text : missed) CHECK(text == "");
}
