// What a collective is: a record that names its kind, its order of sums and its buffers. Messages
// between two members are records, too.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "core/range.hpp"
#include "core/trace.hpp"

namespace weft {

enum class Precision { f32, f64 };

// How the floats of a reduction are added.
//   tree  exact mode: the tree over `num_leaves` leaves; rank r of N holds the maximal nodes of
//         part_of(r, N, num_leaves), which are its inputs.
//   any   fast mode: one input per rank, any algorithm, any order.
enum class Order { tree, any };

// Sum over all leaves, to every rank. `inputs`: this rank's nodes in index order, `count` elements
// each. `output` may be one of the inputs. Inputs are overwritten.
struct AllReduce {
  Precision precision = Precision::f32;
  Order order = Order::tree;
  index_t num_leaves = 0;  // Order::tree only
  index_t count = 0;
  std::vector<void*> inputs;
  void* output = nullptr;
};

// Sum over all leaves; rank r keeps elements cuts[r]..cuts[r+1] of it. `cuts`: size() + 1 positions
// from 0 to count. `output`: this rank's slice alone; it may lie in an input, but only where that
// slice lies there. Inputs are overwritten.
struct ReduceScatter {
  Precision precision = Precision::f32;
  Order order = Order::tree;
  index_t num_leaves = 0;
  index_t count = 0;
  std::vector<index_t> cuts;
  std::vector<void*> inputs;
  void* output = nullptr;
};

// Rank r's bytes land at [cuts[r], cuts[r+1]) of `output` on every rank. `input` may lie there
// already; null says that it does.
struct AllGather {
  std::vector<index_t> cuts;  // bytes
  const void* input = nullptr;
  void* output = nullptr;
};

// The root's bytes, to every rank.
struct Broadcast {
  int root = 0;
  index_t bytes = 0;
  void* buffer = nullptr;
};

// A message to one other member, who starts the Receive that belongs to it; the rest of the group
// has no part in it. The k-th Send of a member to another meets that one's k-th Receive from it:
// both start theirs in the same order, and messages of different length are an error on one side.
struct Send {
  int peer = 0;  // rank in the group
  index_t bytes = 0;
  const void* buffer = nullptr;
};

struct Receive {
  int peer = 0;
  index_t bytes = 0;
  void* buffer = nullptr;
};

using CollectiveRecord =
    std::variant<AllReduce, ReduceScatter, AllGather, Broadcast, Send, Receive>;

// The other end of a Send or Receive; -1: all members take part.
int peer_of(const CollectiveRecord& what);

struct Collective {
  std::string name;  // as in trace and errors: "row_linear.forward.reduce"
  CollectiveRecord what;
  Activity waiting = Activity::communication;  // what the time in wait() counts as
};

// The record as it runs in a group of `group_size` (Order::any: one leaf per rank). Throws
// Error(failed) where it contradicts itself or the group.
CollectiveRecord checked(const Collective& collective, int rank, int group_size);

// Everything in which the members' records must agree, in one line: "'publish' broadcast root 0
// ..".
std::string fingerprint(const Collective& collective);

}  // namespace weft
