#include "tests/parallel/data/data_grid.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "core/hash.hpp"
#include "tests/core/shard_values.hpp"
#include "tests/oracle/tree_sum.hpp"

namespace weft::testing {

namespace {

struct Entry {
  std::string name;
  Shape shape;
  int dim;  // -1: replicated
  GradientRows rows = GradientRows::all;
  bool decays = true;

  std::size_t size() const { return static_cast<std::size_t>(shape.num_elements()); }
  ShardSpec spec(index_t shards, Range owned) const {
    if (dim < 0) return ShardSpec::replicated(shape);
    return ShardSpec::cut(shape, dim, round_up(shape[dim], shards), shards, owned);
  }
};

constexpr const char* table = "table";

// Shards of several norm blocks, of one, of a few elements; pads, a shard of pads alone (of
// up.weight, in 4), and parameters of both kinds of rows in turn.
const std::vector<Entry>& entries(const GridRun& run) {
  static const std::vector<Entry> plain{
      {"position", {16, 70}, -1, GradientRows::all, false},
      {"norm.gain", {1100}, -1, GradientRows::token_blocks, false},
      {"up.weight", {9, 400}, 0},
      {"head.bias", {10}, 0, GradientRows::all, false},
      {"norm.bias", {70}, -1, GradientRows::token_blocks, false},
      {"down.weight", {20, 60}, 1},
  };
  static const std::vector<Entry> with_table = [] {
    std::vector<Entry> all = plain;
    all.insert(all.begin(), {table, {13, 300}, 0});
    return all;
  }();
  return run.tied ? with_table : plain;
}

// Gradients of the table's second use.
Entry second_use(const GridRun& run) {
  Entry entry = entries(run).front();
  entry.name = "second use";
  return entry;
}

Entry entry_of(const GridRun& run, const std::string& name) {
  return *std::find_if(entries(run).begin(), entries(run).end(),
                       [&](const Entry& e) { return e.name == name; });
}

Floats numbers(const GridRun& run, std::size_t n, std::uint64_t seed) {
  return run.hostile ? hostile_floats(n, seed) : random_floats(n, seed);
}

std::uint64_t seed_of(const Entry& entry, index_t step, index_t lane, index_t m) {
  return hash64(entry.name) + static_cast<std::uint64_t>(1000 * step + 10 * lane + m);
}

index_t num_token_blocks(const GridRun& run) {
  return run.order == Order::tree ? run.shards : (run.sequence_parallel ? run.tp : 1);
}

// What microbatch m of a lane adds: whole, or [token blocks, n].
Floats microbatch_gradient(const GridRun& run, const Entry& entry, index_t step, index_t lane,
                           index_t m) {
  const auto rows = entry.rows == GradientRows::all ? 1 : num_token_blocks(run);
  return numbers(run, entry.size() * static_cast<std::size_t>(rows), seed_of(entry, step, lane, m));
}

Floats lane_gradient(const GridRun& run, const Entry& entry, index_t step, index_t lane) {
  Floats sum = microbatch_gradient(run, entry, step, lane, 0);
  for (index_t m = 1; m < run.per_lane; ++m) {
    const Floats next = microbatch_gradient(run, entry, step, lane, m);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  if (entry.rows == GradientRows::all) return sum;
  Floats folded;
  for (std::size_t j = 0; j < entry.size(); ++j) {
    Floats leaves;
    for (std::size_t at = j; at < sum.size(); at += entry.size()) leaves.push_back(sum[at]);
    folded.push_back(oracle::tree_sum(leaves));
  }
  return folded;
}

Numerics numerics_of(const GridRun& run, int tp_rank) {
  const index_t blocks = num_token_blocks(run);
  return {
      .num_pieces = run.shards,
      .num_token_blocks = blocks,
      .token_blocks = run.sequence_parallel ? part_of(tp_rank, run.tp, blocks) : Range{0, blocks}};
}

}  // namespace

std::string GridRun::text() const {
  const auto item = [](const char* name, auto value) {
    return std::string(name) + " " + std::to_string(value) + ", ";
  };
  return item("S", shards) + item("R", lanes) + item("m", per_lane) + item("tp", tp) +
         item("dp", dp) + item("pp", pp) + item("zero", zero) + item("bucket bytes", bucket_bytes) +
         item("sequence parallel", sequence_parallel ? 1 : 0) + item("tied", tied ? 1 : 0) +
         item("shuffle", shuffle);
}

namespace {

Floats step_gradient(const GridRun& run, const Entry& entry, index_t step) {
  std::vector<Floats> lanes;
  for (index_t lane = 0; lane < run.lanes; ++lane)
    lanes.push_back(lane_gradient(run, entry, step, lane));
  Floats sum;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    Floats leaves;
    for (const Floats& lane : lanes) leaves.push_back(lane[i]);
    sum.push_back(oracle::tree_sum(leaves));
  }
  return sum;
}

}  // namespace

NamedFloats expected_gradients(const GridRun& run, index_t step) {
  NamedFloats all;
  for (const Entry& entry : entries(run)) all[entry.name] = step_gradient(run, entry, step);
  if (!run.tied) return all;
  const Floats second = step_gradient(run, second_use(run), step);
  for (std::size_t i = 0; i < second.size(); ++i) all.at(table)[i] += second[i];
  return all;
}

GridRank::GridRank(const GridRun& grid, Transport& transport)
    : run(grid),
      context(1, {}),
      mesh(transport, &context.trace, {{"tp", run.tp}, {"dp", run.dp}, {"pp", run.pp}},
           "tp,dp,pp") {
  context.numerics = numerics_of(run, tp().rank());
  const Range pieces = part_of(tp().rank(), run.tp, run.shards);
  const Range stage = part_of(pp().rank(), run.pp, static_cast<index_t>(entries(run).size()));
  for (index_t i = stage.begin; i < stage.end; ++i) {
    const Entry& entry = entries(run)[static_cast<std::size_t>(i)];
    parameters.add(entry.name, entry.spec(run.shards, pieces), {.uniform_bound = 1.0f}, entry.rows)
        .decays = entry.decays;
  }
  parameters.allocate(context);
  sync = std::make_unique<GradSync>(context, parameters, tp(), dp(),
                                    GradSyncOptions{.num_lanes = run.lanes,
                                                    .microbatches_per_lane = run.per_lane,
                                                    .order = run.order,
                                                    .zero = run.zero,
                                                    .bucket_bytes = run.bucket_bytes});
  if (!run.tied) return;
  if (pp().rank() == run.pp - 1)
    copies.add(table, entry_of(run, table).spec(run.shards, pieces), {.uniform_bound = 1.0f},
               GradientRows::all);
  tied = std::make_unique<TiedParameter>(
      context, parameters, copies, dp(), pp(),
      TiedParameter::Options{table, run.lanes, run.order, run.bucket_bytes});
  sync->tie(*tied);
}

// What layers do with one microbatch: begin or go on, and say at once what is ready, since its
// memory may serve the next piece. Pads are 0, gaps are not theirs.
void GridRank::add_microbatch(index_t step, index_t lane, index_t m,
                              const std::function<void()>& after) {
  struct Piece {
    const Parameter* parameter;
    index_t shard;
  };
  std::vector<Piece> pieces;
  std::map<const Parameter*, Floats> values;  // in local storage
  std::vector<std::pair<const Parameter*, Entry>> used;
  for (const auto& p : parameters.all()) used.emplace_back(p.get(), entry_of(run, p->name));
  for (const auto& p : copies.all()) used.emplace_back(p.get(), second_use(run));
  for (const auto& [p, entry] : used) {
    const Floats global = microbatch_gradient(run, entry, step, lane, m);
    if (p->rows == GradientRows::token_blocks) {
      const Range blocks = context.numerics.token_blocks;
      for (index_t b = blocks.begin; b < blocks.end; ++b) {
        for (index_t j = 0; j < p->spec.local_elements() && j < entry.shape.num_elements(); ++j) {
          const float x = global[static_cast<std::size_t>(b * entry.shape.num_elements() + j)];
          float& sum = p->partials[(b - blocks.begin) * p->partial_stride + j];
          sum = m == 0 ? x : sum + x;
        }
      }
      continue;
    }
    Floats& local = values[p];
    local.resize(static_cast<std::size_t>(p->spec.local_elements()), 0.0f);
    scatter(p->spec, global, local.data());
    for (index_t s = p->spec.owned().begin; s < p->spec.owned().end; ++s) pieces.push_back({p, s});
  }
  std::reverse(pieces.begin(), pieces.end());
  if (run.shuffle != 0) {
    std::mt19937_64 generator(run.shuffle + static_cast<std::uint64_t>(mesh.world_rank()) * 31 +
                              static_cast<std::uint64_t>(step * 7 + m));
    std::shuffle(pieces.begin(), pieces.end(), generator);
  }
  for (const Piece& piece : pieces) {
    const Parameter& p = *piece.parameter;
    const float* from = values[piece.parameter].data() + p.spec.offset(piece.shard);
    float* to = p.gradient_of(piece.shard);
    for (index_t i = 0; i < p.spec.block(piece.shard).num_elements(); ++i)
      to[i] = m == 0 ? from[i] : to[i] + from[i];
    if (m + 1 < run.per_lane) continue;
    sync->ready(context, p, piece.shard);
    if (after) after();
  }
}

void GridRank::sum_gradients(index_t step, const std::function<void()>& after_piece) {
  for (index_t lane = sync->lanes().begin; lane < sync->lanes().end; ++lane) {
    sync->begin_lane(context, lane);
    for (index_t m = 0; m < run.per_lane; ++m) add_microbatch(step, lane, m, after_piece);
    sync->end_lane(context);
  }
  sync->finish(context);
}

std::string gradient_difference(GridRank& rank, const NamedFloats& expected) {
  const ParameterSet& parameters = rank.parameters;
  Floats flat(static_cast<std::size_t>(parameters.flat_elements()), 0.0f);
  for (const auto& p : parameters.all())
    scatter(p->spec, expected.at(p->name), flat.data() + p->offset);
  const Parameter& any = *parameters.all().front();
  const float* got = any.gradient - any.offset;
  for (const auto& part : rank.sync->owned().parts()) {
    const std::string difference =
        bit_difference(got + part.flat.begin, flat.data() + part.flat.begin,
                       static_cast<std::size_t>(part.flat.size()));
    if (!difference.empty()) return "from " + std::to_string(part.flat.begin) + ": " + difference;
  }
  return "";
}

void run_grid(const GridRun& run, const std::function<void(GridRank&)>& body) {
  const auto on_rank = [&](Transport& transport) {
    GridRank rank(run, transport);
    body(rank);
  };
  if (run.num_ranks() > 1) {
    run_ranks(run.num_ranks(), on_rank);
  } else {
    const LocalWorld world(1);
    on_rank(*world.make_transport(0));
  }
}

}  // namespace weft::testing
