// Bytes between two ranks of a run, and how to bring all of them down. A transport knows nothing of
// groups, collectives, tensors or order of sums: those live in Communicator and algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace weft {

// Which message: two messages between the same ranks match when their tags are equal, in the order
// in which they were started.
struct Tag {
  std::uint16_t group = 0;     // id of the communicator
  std::uint32_t sequence = 0;  // even: a collective's, odd: a message's (Communicator::next_tag)
};

// One message under way. Destroying it before done() is a broken invariant of the caller: the
// buffer must outlive the message.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Local; drives progress; never blocks. Throws Error(peer) when the run was aborted or a
  // rank has died, and Error(failed) when sender and receiver disagree about the size.
  virtual bool done() = 0;
};

// All calls come from the rank's main thread. Ranks are 0..size()-1 ("world ranks").
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;

  // The buffer must stay until done(). Zero bytes are legal. Host memory only. A message to
  // oneself is a caller's fault.
  virtual std::unique_ptr<Transfer> start_send(int peer, Tag tag,
                                               std::span<const std::byte> bytes) = 0;
  virtual std::unique_ptr<Transfer> start_receive(int peer, Tag tag,
                                                  std::span<std::byte> bytes) = 0;

  // Counts what moves, parts of long messages included, as far as the transport knows: a rank whose
  // message is on its way must not sleep as one whose message has not begun.
  virtual std::uint64_t num_events() const { return 0; }

  // Ends every rank of the run. Local; with MPI it does not return.
  virtual void abort(ExitCode code, const std::string& reason) noexcept = 0;
};

}  // namespace weft
