#include "parallel/comm/communicator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "parallel/comm/operation.hpp"

namespace weft {

std::vector<int> all_ranks(const Transport& transport) {
  std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Communicator::Communicator(Transport& transport, Trace* trace, std::string name,
                           std::uint16_t group, std::vector<int> members,
                           std::shared_ptr<Progress> progress)
    : transport_(transport),
      trace_(trace),
      name_(std::move(name)),
      group_(group),
      members_(std::move(members)),
      progress_(progress ? std::move(progress) : std::make_shared<Progress>()),
      num_sent_(members_.size()),
      num_received_(members_.size()) {
  const auto me = std::find(members_.begin(), members_.end(), transport.rank());
  require(
      me != members_.end(), ExitCode::failed,
      "group '" + name_ + "' does not contain its own rank " + std::to_string(transport.rank()));
  rank_ = static_cast<int>(me - members_.begin());
}

Request Communicator::start(const Collective& collective) {
  const Collective record{collective.name, checked(collective, rank_, size()), collective.waiting};
  const bool is_message = peer_of(record.what) >= 0;
  const Algorithm algorithm = is_message ? Algorithm::automatic : forced_;
  require(size() == 1 || can_run(algorithm, record.what, size()), ExitCode::usage,
          "collective '" + collective.name + "' cannot be run by the algorithm " +
              std::string(name_of(forced_)));
  if (verifies_calls_ && !is_message) verify(record);
  const Tag tag = next_tag(record.what);
  const Operation::Group group{name_, members_, rank_, bytes_sent_};
  auto operation =
      std::make_unique<Operation>(transport_, progress_, trace_, group, tag, record, algorithm);
  return Request(std::move(operation));
}

// Even numbers for collectives, odd ones for messages: transports may cut a sequence's high bits
// off, never its low ones. Source and target are part of what a message is matched by, so that one
// count for each peer and direction is enough.
Tag Communicator::next_tag(const CollectiveRecord& what) {
  if (peer_of(what) < 0) return {group_, 2 * num_collectives_++};
  auto& counts = std::holds_alternative<Send>(what) ? num_sent_ : num_received_;
  return {group_, 2 * counts[static_cast<std::size_t>(peer_of(what))]++ + 1};
}

void Communicator::verify(const Collective& collective) {
  verifies_calls_ = false;  // not the comparison itself
  const std::string mine = fingerprint(collective);
  const std::vector<std::string> all = all_gather_strings("verify", mine);
  verifies_calls_ = true;
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    require(all[peer] == mine, ExitCode::failed,
            "group '" + name_ + "': rank " + std::to_string(rank_) + " starts " + mine +
                ", but rank " + std::to_string(peer) + " starts " + all[peer]);
  }
}

std::vector<std::uint64_t> Communicator::all_gather_lengths(std::string_view name,
                                                            std::size_t mine) {
  std::vector<std::uint64_t> lengths(members_.size());
  lengths[static_cast<std::size_t>(rank_)] = mine;
  AllGather gather{{}, nullptr, lengths.data()};
  for (std::size_t r = 0; r <= members_.size(); ++r)
    gather.cuts.push_back(static_cast<index_t>(r * sizeof(lengths[0])));
  start({std::string(name) + ".lengths", gather}).wait();
  return lengths;
}

std::vector<std::string> Communicator::all_gather_strings(std::string_view name,
                                                          std::string_view mine) {
  const std::vector<std::uint64_t> lengths = all_gather_lengths(name, mine.size());
  AllGather gather{{0}, mine.data(), nullptr};
  for (const std::uint64_t length : lengths)
    gather.cuts.push_back(gather.cuts.back() + static_cast<index_t>(length));
  std::string all(static_cast<std::size_t>(gather.cuts.back()), '\0');
  gather.output = all.data();
  start({std::string(name), gather}).wait();

  std::vector<std::string> strings;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    strings.push_back(all.substr(static_cast<std::size_t>(gather.cuts[r]), lengths[r]));
  }
  return strings;
}

std::vector<std::string> Communicator::gather_strings(std::string_view name, int root,
                                                      std::string_view mine) {
  const std::vector<std::uint64_t> lengths = all_gather_lengths(name, mine.size());
  if (rank_ != root) {
    if (!mine.empty())
      start({std::string(name), Send{root, static_cast<index_t>(mine.size()), mine.data()}}).wait();
    return {};
  }
  std::vector<std::string> strings(members_.size());
  for (int peer = 0; peer < size(); ++peer) {
    std::string& text = strings[static_cast<std::size_t>(peer)];
    text.resize(lengths[static_cast<std::size_t>(peer)]);
    if (peer == root) text = mine;
    if (peer == root || text.empty()) continue;
    start({std::string(name), Receive{peer, static_cast<index_t>(text.size()), text.data()}})
        .wait();
  }
  return strings;
}

std::string Communicator::broadcast_string(std::string_view name, int root, std::string_view text) {
  std::uint64_t length = text.size();
  start({std::string(name) + ".length", Broadcast{root, index_t{sizeof(length)}, &length}}).wait();
  std::string all = rank_ == root ? std::string(text) : std::string(length, '\0');
  if (length > 0)
    start({std::string(name), Broadcast{root, static_cast<index_t>(length), all.data()}}).wait();
  return all;
}

void Communicator::barrier() {
  // One byte from everyone: nobody has them all before the last has come.
  std::vector<char> bytes(members_.size());
  AllGather gather{{}, nullptr, bytes.data()};
  for (int r = 0; r <= size(); ++r) gather.cuts.push_back(r);
  start({"barrier", gather}).wait();
}

}  // namespace weft
