// Ranks (threads) that hold the state of a made-up model on any layout: what tests save, load, and
// compare with the numbers that they know every element by.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "core/optimizer.hpp"
#include "io/checkpoint/checkpoint_writer.hpp"
#include "io/checkpoint/local_state.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "io/checkpoint/state_loader.hpp"
#include "parallel/mesh.hpp"
#include "tests/core/logical_elements.hpp"

namespace weft::testing {

struct NamedParameter {
  std::string name;
  GlobalParameter global;
};
using SomeModel = std::vector<NamedParameter>;
inline GlobalParameter cut(const Shape& global, int dim, const Turns& turns = {}) {
  return {global, dim, turns};
}
inline GlobalParameter whole(const Shape& global) { return {global, -1, {}}; }

struct StateLayout {
  index_t shards = 1;
  int tp = 1, dp = 1;
  bool zero = false;
  index_t bucket_bytes = 4096;  // of slices
  index_t pads = 0;             // more rounds of them, where parameters may have some
  std::string order = "tp,dp";

  int num_ranks() const { return tp * dp; }
  std::string text() const;
};

// Tensors of all shapes and cuts: pads, turns, replicas, fewer rows than pieces.
SomeModel random_model(RandomParameters& random, index_t num_parameters);
StateLayout random_layout(RandomParameters& random);

// Bits of one element of one kind: any, those of NaNs with payloads, zeros of both signs and
// denormal numbers among them. Every `salt` is another state.
std::uint32_t bits_of(const std::string& tensor, const std::string& kind,
                      const LogicalElement& element, std::uint64_t salt);
// What pads, gaps and a fresh state hold.
inline constexpr std::uint32_t untouched = 0x7f812345u;

struct StateRank {
  StateRank(const SomeModel& model, const StateLayout& layout, Transport& transport);

  // All bits of all kinds: untouched where there is no element.
  void fill(std::uint64_t salt);
  void clear();
  // Empty, or the first bits that are not as fill() makes them.
  std::string difference(std::uint64_t salt);

  LocalState state() { return local_state(parameters, *optimizer); }
  FlatRanges share();
  SaveResult save(const std::string& folder, index_t step, index_t keep = 100,
                  bool read_back = true);
  // Collective. One of several saves; its thread and its memory with it.
  std::unique_ptr<CheckpointWriter> make_async_writer(const std::string& folder,
                                                      index_t keep = 100);
  // As a resume does it: compares the tensors, loads, compares fingerprints. The fault's text.
  std::string load(const std::string& path, LoadResult& result) {
    return load(path, state(), result);
  }
  std::string load(const std::string& path, const LocalState& into, LoadResult& result);
  std::vector<Communicator*> axes() { return {&mesh.axis("dp"), &mesh.axis("tp")}; }

  Context context;
  Mesh mesh;
  ParameterSet parameters;
  std::unique_ptr<Optimizer> optimizer;

 private:
  using Words = std::vector<std::uint32_t>;
  Words expected(const StateKind& kind, std::uint64_t salt) const;

  bool zero_;
  FlatRanges slice_;
};

// body(rank) on every rank; throws the first fault.
void on_state_ranks(const SomeModel& model, const StateLayout& layout,
                    const std::function<void(StateRank&)>& body);

RunIdentity some_identity();
RunProgress progress_at(index_t step);

// A checkpoint of the state `salt` at `step`; returns its path. Throws where it was not saved.
std::string save_state(const SomeModel& model, const StateLayout& layout, const std::string& folder,
                       index_t step, std::uint64_t salt);

}  // namespace weft::testing
