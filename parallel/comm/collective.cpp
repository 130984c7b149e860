#include "parallel/comm/collective.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/reduce_tree.hpp"

namespace weft {

namespace {

// Collects what is wrong with one record under one name.
class Check {
 public:
  explicit Check(const std::string& name) : name_(name) {}

  void that(bool condition, const std::string& message) const {
    require(condition, ExitCode::failed, "collective '" + name_ + "': " + message);
  }

  void cuts(const std::vector<index_t>& cuts, index_t length, int group_size) const {
    that(static_cast<int>(cuts.size()) == group_size + 1,
         "cuts need " + std::to_string(group_size + 1) + " positions, have " +
             std::to_string(cuts.size()));
    that(std::is_sorted(cuts.begin(), cuts.end()), "cuts must not decrease");
    that(cuts.front() == 0 && cuts.back() == length,
         "cuts run from " + std::to_string(cuts.front()) + " to " + std::to_string(cuts.back()) +
             ", not from 0 to " + std::to_string(length));
  }

  template <class Reduction>
  void reduction(const Reduction& what, int rank, int group_size) const {
    that(what.count >= 0, "a count of " + std::to_string(what.count));
    that(what.num_leaves >= 1, "a tree of " + std::to_string(what.num_leaves) + " leaves");
    const Range leaves = part_of(rank, group_size, what.num_leaves);
    const auto expected = reduce_tree::maximal_nodes(leaves, what.num_leaves).size();
    that(what.inputs.size() == expected,
         "rank " + std::to_string(rank) + " of " + std::to_string(group_size) + " holds leaves " +
             std::to_string(leaves.begin) + " to " + std::to_string(leaves.end) + " of " +
             std::to_string(what.num_leaves) + ", that is " + std::to_string(expected) +
             " nodes, but gives " + std::to_string(what.inputs.size()) + " inputs");
    const bool has_null = std::count(what.inputs.begin(), what.inputs.end(), nullptr) > 0;
    that(what.count == 0 || !has_null, "an input is null");
  }

 private:
  const std::string& name_;
};

std::string text_of(const std::vector<index_t>& cuts) {
  std::string text = "cuts";
  for (const index_t cut : cuts) text.append(" ").append(std::to_string(cut));
  return text;
}

template <class Reduction>
std::string text_of(const Reduction& what) {
  const std::string order =
      what.order == Order::any ? "any order" : std::to_string(what.num_leaves) + " leaves";
  return (what.precision == Precision::f32 ? "f32, " : "f64, ") + order + ", " +
         std::to_string(what.count) + " elements";
}

void check_message(const Check& check, int peer, index_t bytes, bool has_buffer, int rank,
                   int group_size) {
  check.that(peer >= 0 && peer < group_size && peer != rank,
             "a message between rank " + std::to_string(rank) + " and rank " +
                 std::to_string(peer) + " of a group of " + std::to_string(group_size));
  check.that(bytes >= 0, "a message of " + std::to_string(bytes) + " bytes");
  check.that(bytes == 0 || has_buffer, "the buffer is null");
}

std::string message_text(const char* direction, int peer, index_t bytes) {
  return std::string(direction) + std::to_string(peer) + ", " + std::to_string(bytes) + " bytes";
}

}  // namespace

int peer_of(const CollectiveRecord& what) {
  if (const auto* send = std::get_if<Send>(&what)) return send->peer;
  if (const auto* receive = std::get_if<Receive>(&what)) return receive->peer;
  return -1;
}

std::string fingerprint(const Collective& collective) {
  const std::string name = std::string("'").append(collective.name).append("' ");
  if (const auto* reduce = std::get_if<AllReduce>(&collective.what)) {
    return name + "all-reduce " + text_of(*reduce);
  }
  if (const auto* scatter = std::get_if<ReduceScatter>(&collective.what)) {
    return name + "reduce-scatter " + text_of(*scatter) + ", " + text_of(scatter->cuts);
  }
  if (const auto* gather = std::get_if<AllGather>(&collective.what)) {
    return name + "all-gather " + text_of(gather->cuts);
  }
  if (const auto* send = std::get_if<Send>(&collective.what)) {
    return name + message_text("send to rank ", send->peer, send->bytes);
  }
  if (const auto* receive = std::get_if<Receive>(&collective.what)) {
    return name + message_text("receive from rank ", receive->peer, receive->bytes);
  }
  const auto& broadcast = std::get<Broadcast>(collective.what);
  return name + "broadcast root " + std::to_string(broadcast.root) + ", " +
         std::to_string(broadcast.bytes) + " bytes";
}

CollectiveRecord checked(const Collective& collective, int rank, int group_size) {
  const Check check(collective.name);
  CollectiveRecord record = collective.what;
  if (auto* reduce = std::get_if<AllReduce>(&record)) {
    if (reduce->order == Order::any) reduce->num_leaves = group_size;
    check.reduction(*reduce, rank, group_size);
    check.that(reduce->count == 0 || reduce->output, "the output is null");
  } else if (auto* scatter = std::get_if<ReduceScatter>(&record)) {
    if (scatter->order == Order::any) scatter->num_leaves = group_size;
    check.reduction(*scatter, rank, group_size);
    check.cuts(scatter->cuts, scatter->count, group_size);
    const auto r = static_cast<std::size_t>(rank);
    check.that(scatter->cuts[r] == scatter->cuts[r + 1] || scatter->output, "the output is null");
  } else if (auto* gather = std::get_if<AllGather>(&record)) {
    check.that(!gather->cuts.empty(), "cuts are empty");
    check.cuts(gather->cuts, gather->cuts.back(), group_size);
    check.that(gather->cuts.back() == 0 || gather->output, "the output is null");
  } else if (const auto* send = std::get_if<Send>(&record)) {
    check_message(check, send->peer, send->bytes, send->buffer != nullptr, rank, group_size);
  } else if (const auto* receive = std::get_if<Receive>(&record)) {
    check_message(check, receive->peer, receive->bytes, receive->buffer != nullptr, rank,
                  group_size);
  } else {
    const auto& broadcast = std::get<Broadcast>(record);
    check.that(
        broadcast.root >= 0 && broadcast.root < group_size,
        "root " + std::to_string(broadcast.root) + " of a group of " + std::to_string(group_size));
    check.that(broadcast.bytes == 0 || (broadcast.bytes > 0 && broadcast.buffer),
               "the buffer is null");
  }
  return record;
}

}  // namespace weft
