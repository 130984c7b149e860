// Ranks as threads on a grid tp x dp x pp, each with a small set of parameters and a GradSync: what
// tests of data parallelism run on. Gradients are made from global indices, so that what they sum
// up to is known without any layout.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/grad_sync.hpp"
#include "parallel/mesh.hpp"
#include "tests/core/float_data.hpp"

namespace weft::testing {

// Which of many cases are tried: all, or each fifth where a sanitizer makes each one ten times as
// slow (inner loops have two to four rounds, so all their values come up).
class CaseFilter {
 public:
  bool takes_next() { return number_++ % every == 0; }

 private:
#ifdef WEFT_SANITIZED
  static constexpr int every = 5;
#else
  static constexpr int every = 1;
#endif
  int number_ = 0;
};

// What decides the result, and what does not.
struct GridRun {
  index_t shards = 4;  // pieces and token blocks
  index_t lanes = 4;
  index_t per_lane = 1;
  Order order = Order::tree;
  bool hostile = true;  // gradients that show any other order of additions
  int tp = 1, dp = 1, pp = 1;
  index_t zero = 0;
  index_t bucket_bytes = 5000;
  bool sequence_parallel = false;  // token blocks divided over tp
  bool tied = false;               // "table" of the first stage is used on the last, too
  std::uint64_t shuffle = 0;       // pieces become ready in other orders; 0: last one first

  int num_ranks() const { return tp * dp * pp; }
  std::string text() const;
};

// Whole tensors by name.
using NamedFloats = std::map<std::string, Floats>;

// The gradient of a step by its definition (EXACT 3.2, 3.4): microbatches in sequence, token blocks
// and lanes by the tree. No pads. Of what is tied, those of both uses added.
NamedFloats expected_gradients(const GridRun& run, index_t step);

class GridRank {
 public:
  GridRank(const GridRun& run, Transport& transport);

  Communicator& tp() { return mesh.axis("tp"); }
  Communicator& dp() { return mesh.axis("dp"); }
  Communicator& pp() { return mesh.axis("pp"); }

  // All lanes of a step, up to finish(). `after_piece` is called after each ready().
  void sum_gradients(index_t step, const std::function<void()>& after_piece = {});

  const GridRun run;
  Context context;
  Mesh mesh;
  ParameterSet parameters;  // of this stage
  ParameterSet copies;      // of what is tied, on the last stage
  std::unique_ptr<TiedParameter> tied;
  std::unique_ptr<GradSync> sync;

 private:
  void add_microbatch(index_t step, index_t lane, index_t m, const std::function<void()>& after);
};

// "" where the bound gradients, as far as the rank owns them, are `expected`; pads and gaps are 0.
std::string gradient_difference(GridRank& rank, const NamedFloats& expected);

// body(rank) on every rank, which throws, or leaves what is to be looked at in a place of its own:
// a result for each world rank. A grid of one runs on the calling thread.
void run_grid(const GridRun& run, const std::function<void(GridRank&)>& body);

template <class Result>
std::vector<Result> results_of_grid(const GridRun& run,
                                    const std::function<Result(GridRank&)>& body) {
  std::vector<Result> results(static_cast<std::size_t>(run.num_ranks()));
  run_grid(run, [&](GridRank& rank) {
    results[static_cast<std::size_t>(rank.mesh.world_rank())] = body(rank);
  });
  return results;
}

}  // namespace weft::testing
