// A group of ranks that run collectives together. start() is the only way to launch one: it checks,
// names, numbers, traces and chooses the algorithm. Buffers are host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "core/trace.hpp"
#include "parallel/comm/choose.hpp"
#include "parallel/comm/collective.hpp"
#include "parallel/comm/progress.hpp"
#include "parallel/comm/request.hpp"
#include "parallel/comm/transport.hpp"

namespace weft {

// The members of a group of all ranks: 0, 1, .., size-1.
std::vector<int> all_ranks(const Transport& transport);

class Communicator {
 public:
  // `members` are world ranks in group order and contain transport.rank(). `group` numbers the
  // communicator: equal on all members, distinct among those a rank belongs to. `trace` may be
  // null. `progress` is shared by all communicators of a rank; null: one of its own. Local. The
  // communicator, the transport and the trace must outlive all requests.
  Communicator(Transport& transport, Trace* trace, std::string name, std::uint16_t group,
               std::vector<int> members, std::shared_ptr<Progress> progress = nullptr);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::string& name() const { return name_; }
  const std::vector<int>& members() const { return members_; }
  const std::shared_ptr<Progress>& progress() const { return progress_; }

  // Collective over the group. Every member starts the same collectives in the same order, equal
  // but for their buffers. Buffers must stay until the request is done. Throws Error(failed) where
  // the record contradicts itself or the group. A Send and its Receive concern the two alone: they
  // may stand anywhere between the collectives, and count by themselves.
  Request start(const Collective& collective);

  // Collective: each member's bytes, in group order. Lengths may differ. For set-up and small
  // records (errors, hashes, norms), not for tensors.
  std::vector<std::string> all_gather_strings(std::string_view name, std::string_view mine);

  // Collective: the same at `root` alone; the others get nothing. For records that would be too
  // large to have everywhere: memory and traffic grow with the sum at one member.
  std::vector<std::string> gather_strings(std::string_view name, int root, std::string_view mine);

  // Collective: the root's text, to every member; the others' is not looked at.
  std::string broadcast_string(std::string_view name, int root, std::string_view text);

  // Collective.
  void barrier();

  // Payload bytes this rank has sent through this communicator, in collectives and messages that
  // are done.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

  // For tests and benchmarks: all later collectives use `algorithm`, alike on all members; where it
  // cannot run one, start() throws Error(usage). `automatic` ends that. Messages are as they are.
  void force(Algorithm algorithm) { forced_ = algorithm; }

  // For tests and for hunting a hang: from now on start() first compares what the members start, at
  // the price of two small collectives each, and throws Error(failed) that names both. Alike on all
  // members. Messages are not compared: the others know nothing of them.
  void verify_calls(bool on) { verifies_calls_ = on; }

 private:
  void verify(const Collective& collective);
  std::vector<std::uint64_t> all_gather_lengths(std::string_view name, std::size_t mine);
  Tag next_tag(const CollectiveRecord& what);

  Transport& transport_;
  Trace* trace_;
  std::string name_;
  std::uint16_t group_;
  std::vector<int> members_;
  std::shared_ptr<Progress> progress_;
  int rank_;
  std::uint32_t num_collectives_ = 0;
  std::vector<std::uint32_t> num_sent_;      // messages, by peer
  std::vector<std::uint32_t> num_received_;  // those started, by peer
  std::uint64_t bytes_sent_ = 0;
  Algorithm forced_ = Algorithm::automatic;
  bool verifies_calls_ = false;
};

}  // namespace weft
