// Asynchronous updates: the bound on staleness against all orders tried one by one, and a server
// with its workers, whose result must be that of its own record, repeated by one loop.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/update_server.hpp"

using namespace weft;

namespace {

// Whether some order applies all of `based_on` from version `version` on, none staler than `limit`.
bool some_order_fits(std::vector<index_t> based_on, index_t version, index_t limit) {
  std::sort(based_on.begin(), based_on.end());
  do {
    bool fits = true;
    for (std::size_t i = 0; i < based_on.size(); ++i)
      fits = fits && version + static_cast<index_t>(i) - based_on[i] <= limit;
    if (fits) return true;
  } while (std::next_permutation(based_on.begin(), based_on.end()));
  return false;
}

// What a worker computes: any function that does not commute, so that order shows.
float gradient_of(float value, index_t batch) {
  return 0.75f * value + 1.0f / static_cast<float>(batch + 3);
}
float updated(float value, float gradient) { return 0.9f * value - 0.1f * gradient * gradient; }

struct Record {
  int worker;
  index_t batch, based_on, staleness;
};

struct Outcome {
  std::vector<Record> updates;
  std::vector<float> values;
};

constexpr index_t count = 5;

// Workers of which `slow` needs much longer than the others; -1: none.
Outcome run_workers(int num_workers, index_t num_batches, index_t limit, int slow) {
  Outcome outcome;
  outcome.values.assign(count, 1.0f);
  run_ranks(num_workers, [&](Transport& transport) {
    Communicator group(transport, nullptr, "workers", 0, all_ranks(transport));
    const int rank = group.rank();
    std::vector<float> values(count, 1.0f), gradient(count);
    const auto compute = [&](const WorkerTask& task, const std::function<void()>& between) {
      std::this_thread::sleep_for(std::chrono::microseconds(rank == slow ? 3000 : 200));
      for (index_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        gradient[at] = gradient_of(values[at], task.batch + i);
        between();
      }
      return GradientNote{.task = task};
    };
    const auto work = [&](const auto& exchange, const std::function<void()>& between) {
      WorkerTask task = first_task(rank, num_batches);
      while (task.batch != WorkerTask::none) {
        const GradientNote note = compute(task, between);
        task = exchange(note, gradient.data(), values.data());
      }
    };
    if (rank != 0) {
      UpdateClient client(group, count);
      return work([&](auto&&... all) { return client.exchange(all...); }, [] {});
    }
    UpdateServer server(
        group, count, num_batches, limit,
        [&](const UpdateServer::Update& update, float* of) {
          outcome.updates.push_back(
              {update.worker, update.note.task.batch, update.note.task.version, update.staleness});
          for (std::size_t i = 0; i < count; ++i)
            outcome.values[i] = updated(outcome.values[i], of[i]);
        },
        [&](float* to) { std::copy_n(outcome.values.data(), count, to); });
    work([&](auto&&... all) { return server.exchange(all...); }, [&] { server.poll(); });
    server.finish();
  });
  return outcome;
}

// The same by one loop, from nothing but the record's order.
std::vector<float> repeated(const std::vector<Record>& updates) {
  std::vector<std::vector<float>> versions{std::vector<float>(count, 1.0f)};
  for (const Record& update : updates) {
    std::vector<float> next = versions.back();
    const std::vector<float>& base = versions[static_cast<std::size_t>(update.based_on)];
    for (index_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      next[at] = updated(next[at], gradient_of(base[at], update.batch + i));
    }
    versions.push_back(next);
  }
  return versions.back();
}

}  // namespace

TEST_CASE("a gradient may be applied exactly where the others can still be in time", "[async]") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = std::uniform_int_distribution<int>(1, 5)(random);
    const index_t limit = trial % 10 == 0
                              ? std::numeric_limits<index_t>::max()
                              : n - 1 + std::uniform_int_distribution<index_t>(0, 4)(random);
    StalenessBound bound(n, limit);
    std::map<int, index_t> based_on;  // of those that have not retired
    for (int worker = 0; worker < n; ++worker) based_on[worker] = 0;
    for (index_t version = 0; version < 40 && !based_on.empty(); ++version) {
      std::vector<int> may;
      for (const auto& [worker, base] : based_on) {
        std::vector<index_t> rest;
        for (const auto& [other, of_other] : based_on)
          if (other != worker) rest.push_back(of_other);
        const bool fits = version - base <= limit && some_order_fits(rest, version + 1, limit);
        CHECK(bound.may_apply(worker) == fits);
        if (fits) may.push_back(worker);
      }
      REQUIRE(!may.empty());  // nobody waits for ever
      const int chosen = may[std::uniform_int_distribution<std::size_t>(0, may.size() - 1)(random)];
      CHECK(bound.apply(chosen) == version - based_on[chosen]);
      based_on[chosen] = version + 1;
      if (std::uniform_int_distribution<int>(0, 19)(random) == 0) {
        bound.retire(chosen);
        based_on.erase(chosen);
      }
    }
  }
}

TEST_CASE("a bound that all workers' first gradients cannot meet is refused", "[async]") {
  CHECK_NOTHROW(StalenessBound(1, 0));
  CHECK_NOTHROW(StalenessBound(4, 3));
  CHECK_THROWS_WITH(StalenessBound(4, 2), Catch::Contains("expected 3 or more with 4 workers") &&
                                              Catch::Contains("found 2"));
}

TEST_CASE("each batch is applied once, none too late, and the record repeats the bits", "[async]") {
  struct Case {
    int workers;
    index_t batches, limit;
    int slow;
  };
  for (const Case& one :
       {Case{1, 7, 0, -1}, Case{2, 40, 1, 1}, Case{2, 40, 8, 1}, Case{4, 60, 3, 2},
        Case{4, 60, 9, 2}, Case{4, 60, 6, 0}, Case{4, 2, 3, -1}, Case{3, 50, 5, -1}}) {
    const Outcome outcome = run_workers(one.workers, one.batches, one.limit, one.slow);
    INFO(one.workers << " workers, limit " << one.limit << ", slow " << one.slow);
    REQUIRE(std::ssize(outcome.updates) == one.batches);
    std::set<index_t> batches;
    for (std::size_t version = 0; version < outcome.updates.size(); ++version) {
      const Record& update = outcome.updates[version];
      batches.insert(update.batch);
      CHECK(update.staleness == static_cast<index_t>(version) - update.based_on);
      CHECK(update.staleness >= 0);
      CHECK(update.staleness <= one.limit);
    }
    CHECK(std::ssize(batches) == one.batches);
    CHECK(*batches.rbegin() == one.batches - 1);
    CHECK(outcome.values == repeated(outcome.updates));
  }
}

TEST_CASE("the others do not wait for a slow worker as long as the bound lets them", "[async]") {
  const Outcome outcome = run_workers(3, 90, 20, 2);
  const auto by_slow = std::count_if(outcome.updates.begin(), outcome.updates.end(),
                                     [](const Record& update) { return update.worker == 2; });
  CHECK(by_slow >= 1);
  CHECK(by_slow < 30);  // a third of them, were they to take turns
}

TEST_CASE("a worker that never comes is named after the deadline", "[async]") {
  const auto run = [] {
    run_ranks(3, [](Transport& transport) {
      WaitOptions wait;
      wait.deadline = std::chrono::milliseconds(transport.rank() == 0 ? 300 : 60'000);
      Communicator group(transport, nullptr, "workers", 0, all_ranks(transport),
                         std::make_shared<Progress>(wait));
      if (group.rank() == 1) return;
      // By the bound both others wait for worker 1 from their second gradient on.
      std::vector<float> values(count, 0.0f), gradient(count, 1.0f);
      const auto work = [&](auto& end) {
        WorkerTask task = first_task(group.rank(), 100);
        while (task.batch != WorkerTask::none)
          task = end.exchange({.task = task}, gradient.data(), values.data());
      };
      if (group.rank() == 2) {
        UpdateClient client(group, count);
        return work(client);
      }
      UpdateServer server(
          group, count, 100, 2, [](const UpdateServer::Update&, float*) {}, [](float*) {});
      work(server);
    });
  };
  CHECK_THROWS_WITH(run(), Catch::Contains("no gradient came from worker 1 in") &&
                               Catch::Contains("2 others wait for theirs by --max-staleness 2"));
}

TEST_CASE("a worker that dies ends the wait of the server", "[async]") {
  const auto run = [] {
    run_ranks(2, [](Transport& transport) {
      Communicator group(transport, nullptr, "workers", 0, all_ranks(transport));
      if (group.rank() == 1) throw Error(ExitCode::failed, "worker 1 fell over");
      std::vector<float> values(count, 0.0f);
      UpdateServer server(
          group, count, 10, 1, [](const UpdateServer::Update&, float*) {}, [](float*) {});
      server.finish();
    });
  };
  CHECK_THROWS_WITH(run(), Catch::Contains("worker 1 fell over"));
}
