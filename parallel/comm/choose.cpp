#include "parallel/comm/choose.hpp"

#include <array>
#include <cstring>

#include "parallel/comm/add.hpp"
#include "parallel/comm/algorithms.hpp"

namespace weft {

namespace {

// Up to here a vector is short: a second round costs more than sending everything to everyone.
constexpr index_t longest_small_bytes = 4 * 1024;
// From here on fewer and larger messages win over fewer rounds.
constexpr index_t shortest_halving_bytes = 256 * 1024;
constexpr index_t shortest_ring_bytes = 512 * 1024;

void copy_alone(const void* input, void* output, index_t num_bytes) {
  if (input != output && num_bytes > 0)
    std::memmove(output, input, static_cast<std::size_t>(num_bytes));
}

// A group of one holds one node, the root.
TaskPointer run_alone(const CollectiveRecord& what) {
  if (const auto* reduce = std::get_if<AllReduce>(&what)) {
    copy_alone(reduce->inputs.front(), reduce->output, reduce->count * bytes_of(reduce->precision));
  } else if (const auto* scatter = std::get_if<ReduceScatter>(&what)) {
    copy_alone(scatter->inputs.front(), scatter->output,
               scatter->count * bytes_of(scatter->precision));
  } else if (const auto* gather = std::get_if<AllGather>(&what)) {
    if (gather->input) copy_alone(gather->input, gather->output, gather->cuts.back());
  }
  return std::make_unique<NoTask>();
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  static constexpr std::array<std::string_view, 7> names = {
      "automatic", "tree_direct", "tree_small", "tree_halving", "ring", "direct", "binomial"};
  return names[static_cast<std::size_t>(algorithm)];
}

Algorithm choose(const AllReduce& what, int num_ranks) {
  const index_t num_bytes = what.count * bytes_of(what.precision);
  if (num_bytes <= longest_small_bytes) return Algorithm::tree_small;
  if (num_bytes < shortest_halving_bytes) return Algorithm::tree_direct;
  if (num_ranks > 2 && tree_halving_fits(num_ranks, what.num_leaves))
    return Algorithm::tree_halving;
  return what.order == Order::any && num_ranks > 2 ? Algorithm::ring : Algorithm::tree_direct;
}

Algorithm choose(const ReduceScatter& what, int num_ranks) {
  const index_t num_bytes = what.count * bytes_of(what.precision);
  const bool is_long = num_bytes >= shortest_ring_bytes && num_ranks > 2;
  return what.order == Order::any && is_long ? Algorithm::ring : Algorithm::tree_direct;
}

Algorithm choose(const AllGather& what, int num_ranks) {
  return what.cuts.back() >= shortest_ring_bytes && num_ranks > 2 ? Algorithm::ring
                                                                  : Algorithm::direct;
}

Algorithm choose(const Broadcast&, int) { return Algorithm::binomial; }
Algorithm choose(const Send&, int) { return Algorithm::direct; }
Algorithm choose(const Receive&, int) { return Algorithm::direct; }

TaskPointer make_all_gather(Channel& channel, const AllGather& what) {
  return choose(what, channel.size()) == Algorithm::ring ? make_ring(channel, what)
                                                         : make_direct(channel, what);
}

bool can_run(Algorithm algorithm, const CollectiveRecord& what, int num_ranks) {
  if (algorithm == Algorithm::automatic) return true;
  if (const auto* reduce = std::get_if<AllReduce>(&what)) {
    if (algorithm == Algorithm::ring) return reduce->order == Order::any;
    if (algorithm == Algorithm::tree_halving)
      return tree_halving_fits(num_ranks, reduce->num_leaves);
    return algorithm == Algorithm::tree_direct || algorithm == Algorithm::tree_small;
  }
  if (const auto* scatter = std::get_if<ReduceScatter>(&what)) {
    if (algorithm == Algorithm::ring) return scatter->order == Order::any;
    return algorithm == Algorithm::tree_direct;
  }
  if (std::holds_alternative<AllGather>(what))
    return algorithm == Algorithm::direct || algorithm == Algorithm::ring;
  if (peer_of(what) >= 0) return algorithm == Algorithm::direct;
  return algorithm == Algorithm::binomial;
}

TaskPointer make_task(Channel& channel, const CollectiveRecord& what, Algorithm algorithm) {
  if (channel.size() == 1) return run_alone(what);
  if (algorithm == Algorithm::automatic) {
    algorithm =
        std::visit([&](const auto& record) { return choose(record, channel.size()); }, what);
  }
  if (const auto* reduce = std::get_if<AllReduce>(&what)) {
    if (algorithm == Algorithm::tree_small) return make_tree_small(channel, *reduce);
    if (algorithm == Algorithm::tree_halving) return make_tree_halving(channel, *reduce);
    if (algorithm == Algorithm::ring) return make_ring(channel, *reduce);
    return make_tree_direct(channel, *reduce);
  }
  if (const auto* scatter = std::get_if<ReduceScatter>(&what)) {
    if (algorithm == Algorithm::ring) return make_ring(channel, *scatter);
    return make_tree_direct(channel, *scatter);
  }
  if (const auto* gather = std::get_if<AllGather>(&what)) {
    return algorithm == Algorithm::ring ? make_ring(channel, *gather)
                                        : make_direct(channel, *gather);
  }
  if (const auto* send = std::get_if<Send>(&what)) return make_message(channel, *send);
  if (const auto* receive = std::get_if<Receive>(&what)) return make_message(channel, *receive);
  return make_binomial(channel, std::get<Broadcast>(what));
}

}  // namespace weft
