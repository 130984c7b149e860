// Buckets of gradients leave while backward goes on: what the statistics say, and the trace's own
// events.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "tests/apps/training_run.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// When things happened on one rank in one step, by its trace.
struct Seen {
  TransferStatistics statistics;
  std::vector<std::int64_t> launches_ns = {};  // of buckets
  std::int64_t backward_end_ns = 0;   // of the last microbatch's layers: token blocks come then
  std::int64_t last_backward_ns = 0;  // where the last microbatch's backward begins
};

Seen step_of(Trainer& trainer) {
  Trace& trace = trainer.context().trace;
  trace.record_events(true);
  const std::size_t before = trace.events().size();
  trainer.step();
  Seen seen{.statistics = trainer.grad_sync().statistics()};
  std::map<std::string, std::int64_t> launches;
  for (std::size_t i = before; i < trace.events().size(); ++i) {
    const Trace::Event& event = trace.events()[i];
    const std::string& name = trace.names()[event.name];
    if (name == "grad_sync.token_blocks")
      seen.backward_end_ns = std::max(seen.backward_end_ns, event.begin_ns);
    if (name == "backward") seen.last_backward_ns = std::max(seen.last_backward_ns, event.begin_ns);
    if (!name.starts_with("grad_sync.bucket.")) continue;
    const auto first = launches.try_emplace(name, event.begin_ns).first;
    first->second = std::min(first->second, event.begin_ns);
  }
  for (const auto& [name, begin_ns] : launches) seen.launches_ns.push_back(begin_ns);
  return seen;
}

}  // namespace

TEST_CASE("buckets are launched before the last backward ends", "[trainer][overlap]") {
  const SmallData data;
  for (Plan plan : {small_plan(4), small_vit(4)}) {
    for (const index_t zero : {0, 1}) {
      for (const index_t pp : {1, 2}) {
        INFO(plan.model.kind << ", ZeRO " << zero << ", pp = " << pp);
        plan.layout.dp = 2;
        plan.layout.pp = pp;
        // With sequence parallel a message of its own marks the end of a lane's layers.
        plan.layout.tp = 2;
        plan.layout.sequence_parallel = true;
        plan.layout.zero = zero;
        plan.comm.bucket_bytes = 4096;
        plan.batch.micro = 2;  // two lanes a rank, of two microbatches
        std::mutex mutex;
        std::vector<Seen> ranks;
        on_ranks(plan, data, [&](Trainer& trainer) {
          for (int step = 0; step < 2; ++step) {
            const Seen seen = step_of(trainer);
            const std::lock_guard lock(mutex);
            ranks.push_back(seen);
          }
        });
        for (const Seen& seen : ranks) {
          const index_t early = std::count_if(
              seen.launches_ns.begin(), seen.launches_ns.end(),
              [&](std::int64_t launch_ns) { return launch_ns < seen.backward_end_ns; });
          CHECK(static_cast<index_t>(seen.launches_ns.size()) == seen.statistics.num_buckets);
          CHECK(early == seen.statistics.launched_early);
          CHECK(early > 0);
          CHECK(early < seen.statistics.num_buckets);  // vectors of token blocks come after
          // Never before the last microbatch of the rank's last lane.
          CHECK(*std::min_element(seen.launches_ns.begin(), seen.launches_ns.end()) >
                seen.last_backward_ns);
          CHECK(seen.statistics.finished_early <= seen.statistics.num_buckets);
          CHECK(seen.statistics.under_way_ns >= seen.statistics.exposed_ns);
          CHECK(seen.statistics.bytes_sent > 0);
        }
      }
    }
  }
}
