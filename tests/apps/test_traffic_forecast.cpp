// What `weft check` says of bytes sent, held against what the ranks of a step send.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>

#include "apps/check_report.hpp"
#include "parallel/plan/traffic_model.hpp"
#include "tests/apps/training_run.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

struct Bytes {
  double tp = 0, dp = 0, pp = 0;
  int stage = 0;       // of whom
  double records = 0;  // of the norm and the loss, on any axis: not counted by the model
};

// What a step sends, by the trace. Its bytes must be all that the axes say they have sent.
Bytes bytes_of_step(Trainer& trainer) {
  const Trace& trace = trainer.context().trace;
  const std::uint64_t axes_before = trainer.bytes_sent();
  const std::size_t before = trace.events().size();
  trainer.step();
  Bytes sent{.stage = trainer.mesh().rank("pp")};
  double sum = 0;
  for (std::size_t i = before; i < trace.events().size(); ++i) {
    const Trace::Event& event = trace.events()[i];
    const std::string& name = trace.names()[event.name];
    const auto bytes = static_cast<double>(event.bytes);
    sum += bytes;
    const bool is_record = name.starts_with("global_norm") ||
                           (name.starts_with("loss") && name != "loss.forward.gather");
    const bool is_of_pp = name.starts_with("pipeline.") || name == "grad_sync.tied.gradient" ||
                          name == "grad_sync.tied.values";
    if (is_record) {
      sent.records += bytes;
    } else if (name.starts_with("grad_sync.bucket.") || name == "grad_sync.publish" ||
               name == "grad_sync.tied.reduce") {
      sent.dp += bytes;
    } else if (is_of_pp) {
      sent.pp += bytes;
    } else {
      sent.tp += bytes;
    }
  }
  if (sum != static_cast<double>(trainer.bytes_sent() - axes_before))
    throw std::runtime_error("the trace gives other bytes than the axes");
  return sent;
}

struct Layout {
  index_t tp, dp, pp;
  bool sequence_parallel;
  index_t zero = 0;
  index_t shards = 4;
};

// Rows and vectors of more than 4 KiB, which go slice by slice, and of multiples of 3 x 16
// elements, so that slices on two and three ranks are even: the model is exact.
Plan with_layout(Plan plan, const Layout& layout) {
  plan.model.hidden = 96;
  plan.batch.micro = 12;
  plan.batch.global = 48;
  plan.numerics.lanes = 4;
  plan.layout.tp = layout.tp;
  plan.layout.dp = layout.dp;
  plan.layout.pp = layout.pp;
  plan.layout.sequence_parallel = layout.sequence_parallel;
  plan.layout.zero = layout.zero;
  return plan;
}

Plan plan_of(bool is_vit, const Layout& layout) {
  return with_layout(is_vit ? small_vit(layout.shards) : small_plan(layout.shards), layout);
}

using PerRank = std::function<void(const Bytes& sent, const RankTraffic& forecast)>;

// A step on every rank, and what was forecast for it.
void compare(const Plan& plan, const TrainingData& data, const PerRank& body) {
  std::mutex mutex;
  on_ranks(plan, data, [&](Trainer& trainer) {
    trainer.context().trace.record_events(true);
    const Bytes sent = bytes_of_step(trainer);
    const std::scoped_lock lock(mutex);  // Catch2's checks are one thread's business
    Mesh& mesh = trainer.mesh();
    INFO(plan.model.kind << ", S " << plan.numerics.shards << ", tp " << mesh.rank("tp") << " of "
                         << plan.layout.tp << ", dp " << mesh.rank("dp") << " of " << plan.layout.dp
                         << ", pp " << mesh.rank("pp") << " of " << plan.layout.pp
                         << ", sequence parallel " << plan.layout.sequence_parallel << ", zero "
                         << plan.layout.zero);
    body(sent, rank_traffic(plan, mesh.rank("tp"), mesh.rank("dp"), mesh.rank("pp")));
  });
}

}  // namespace

TEST_CASE("a step sends the bytes that were forecast", "[forecast]") {
  const SmallData data;
  for (const bool is_vit : {false, true}) {
    for (const Layout& layout : {Layout{2, 1, 1, false},
                                 {2, 1, 1, true},
                                 {3, 1, 1, false},
                                 {3, 1, 1, true},
                                 {1, 2, 1, false, 0},
                                 {1, 2, 1, false, 1},
                                 {1, 1, 2, false},
                                 {2, 2, 2, true, 1},
                                 {3, 2, 2, false, 0},
                                 // Two nodes a rank.
                                 {2, 1, 1, false, 0, 12},
                                 {2, 1, 1, true, 0, 12}}) {
      compare(plan_of(is_vit, layout), data, [](const Bytes& sent, const RankTraffic& forecast) {
        CHECK(sent.tp == forecast.tp_bytes);
        CHECK(sent.dp == forecast.dp_bytes);
        CHECK(sent.pp == forecast.pp_bytes);
        CHECK(sent.records < 64 * 1024);
      });
    }
  }
}

TEST_CASE("over a cut goes what was told of it", "[forecast]") {
  const SmallData data;
  for (const bool is_vit : {false, true}) {
    for (const Layout& layout :
         {Layout{1, 1, 2, false}, {2, 2, 2, true, 1}, {3, 2, 2, false}, {3, 1, 2, true}}) {
      const Plan plan = plan_of(is_vit, layout);
      double forward = 0, back = 0;
      compare(plan, data, [&](const Bytes& sent, const RankTraffic&) {
        (sent.stage == 0 ? forward : back) += sent.pp;
      });
      CHECK(forward == cut_bytes(plan) * 4);  // microbatches of all replicas: 48 samples, 12 each
      CHECK(back == forward);
    }
  }
}

TEST_CASE("a step of a model of text sends the bytes that were forecast", "[forecast]") {
  Plan untied = small_gpt(4);
  untied.model.tied = false;
  for (const Plan& model : {small_gpt(4), untied, small_text_encoder(4)}) {
    for (const Layout& layout : {Layout{2, 1, 1, false},
                                 {2, 1, 1, true},
                                 {3, 1, 1, false},
                                 {1, 2, 1, false, 0},
                                 {1, 2, 1, false, 1},
                                 {1, 1, 2, false},
                                 {2, 2, 2, true, 1},
                                 {3, 2, 2, false, 0}}) {
      const Plan plan = with_layout(model, layout);
      compare(plan, data_of(plan), [](const Bytes& sent, const RankTraffic& forecast) {
        CHECK(sent.tp == forecast.tp_bytes);
        CHECK(sent.dp == forecast.dp_bytes);
        CHECK(sent.pp == forecast.pp_bytes);
      });
    }
  }
}

TEST_CASE("where slices are not even, each bucket is off by less than its slice is", "[forecast]") {
  const SmallData data;
  for (const index_t zero : {0, 1}) {
    for (const index_t bucket_bytes : {20'000, 4 << 20}) {
      Plan plan = plan_of(true, {1, 3, 1, false, zero});
      plan.comm.bucket_bytes = bucket_bytes;
      compare(plan, data, [&](const Bytes& sent, const RankTraffic& forecast) {
        // One node a rank: O is sent N - 1 - P = 1 times more than it is kept. Over all buckets
        // ZeRO-1 has shares even to a norm block of 1024 elements; else each bucket is even to 16.
        const double num_buckets = 2 + std::ceil(forecast.dp_bytes / (4.0 / 3) / bucket_bytes);
        const double bound = zero == 1 ? 4 * 1024 : 64 * 2 * num_buckets;
        CHECK(std::abs(sent.dp - forecast.dp_bytes) <= bound);
        CHECK(sent.tp + sent.pp == 0);
      });
    }
  }
}

TEST_CASE("all-reduces of up to 4 KiB go whole to every other rank", "[forecast]") {
  const SmallData data;
  // In place of the 4/3 B of slices on three ranks of one node each.
  constexpr double more = 2 - 4.0 / 3;
  Plan plan = plan_of(false, {3, 1, 1, false});
  plan.batch.micro = 4;
  plan.batch.global = 16;
  const double stream = 4.0 * 4 * 96;
  compare(plan, data, [&](const Bytes& sent, const RankTraffic& forecast) {
    // 4 microbatches of 6 crossings.
    CHECK(sent.tp - forecast.tp_bytes == Approx(4 * 6 * more * stream));
  });

  // Half a model's vectors, once a lane: stem bias and a block's 3, or a block's 3 and 2, of 512
  // bytes each. Rows are cut, and exact.
  compare(plan_of(false, {3, 1, 2, true}), data,
          [&](const Bytes& sent, const RankTraffic& forecast) {
            const double vectors = sent.stage == 0 ? 4 : 5;
            CHECK(sent.tp - forecast.tp_bytes == Approx(4 * more * vectors * 512));
          });
}

TEST_CASE("a report of a large grid finds the rank that needs most", "[forecast]") {
  Plan plan = sample_plan();
  plan.numerics.lanes = 2048;
  plan.batch.global = plan.batch.micro * plan.numerics.lanes;
  plan.layout.tp = 4;
  plan.layout.zero = 1;
  for (const index_t dp : {1023, 1025, 1500}) {
    plan.layout.dp = dp;
    const CheckReport report(plan);
    index_t most = 0;
    Extremes<double> sent{1e300, 0};
    for (index_t tp_rank = 0; tp_rank < 4; ++tp_rank) {
      const PlaceMemory memory(plan, tp_rank, 0);
      const PlaceTraffic traffic(plan, tp_rank, 0);
      for (index_t rank = 0; rank < dp; ++rank) {
        most = std::max(most, memory.of(rank).total_bytes());
        sent.min = std::min(sent.min, traffic.of(rank).total_bytes());
        sent.max = std::max(sent.max, traffic.of(rank).total_bytes());
      }
    }
    INFO(dp);
    CHECK(report.memory.total_bytes() == most);
    CHECK(report.sent.min == sent.min);
    CHECK(report.sent.max == sent.max);
  }
}
