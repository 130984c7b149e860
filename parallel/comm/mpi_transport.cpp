#include "parallel/comm/mpi_transport.hpp"

#include <bit>
#include <exception>
#include <limits>
#include <string>

#include "parallel/comm/mpi_calls.hpp"

namespace weft {

namespace {

// MPI-3 counts in int. A longer message is one element of a type that is as long as the message, so
// that it stays one message and a wrong size is still noticed.
constexpr std::size_t longest_plain_bytes = std::numeric_limits<int>::max();
constexpr std::size_t big_block_bytes = std::size_t{1} << 24;

// An MPI type and count for some bytes.
class Layout {
 public:
  explicit Layout(std::size_t num_bytes) {
    if (num_bytes <= longest_plain_bytes) {
      count_ = static_cast<int>(num_bytes);
      return;
    }
    const std::size_t num_blocks = num_bytes / big_block_bytes;
    int lengths[2] = {static_cast<int>(num_blocks), static_cast<int>(num_bytes % big_block_bytes)};
    MPI_Aint offsets[2] = {0, static_cast<MPI_Aint>(num_blocks * big_block_bytes)};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    check_mpi(MPI_Type_contiguous(static_cast<int>(big_block_bytes), MPI_BYTE, &types[0]),
              "MPI_Type_contiguous");
    const int status = MPI_Type_create_struct(2, lengths, offsets, types, &type_);
    MPI_Type_free(&types[0]);
    check_mpi(status, "MPI_Type_create_struct");
    check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    count_ = 1;
  }
  ~Layout() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  MPI_Datatype type() const { return type_; }
  int count() const { return count_; }

 private:
  MPI_Datatype type_ = MPI_BYTE;
  int count_ = 0;
};

// Group and sequence in the bits that MPI leaves for a tag. The sequence wraps; messages of equal
// tag match in order of start, so that is harmless unless a whole turn is under way at once.
class TagBits {
 public:
  explicit TagBits(MPI_Comm comm) {
    int* upper_bound = nullptr;
    int is_set = 0;
    check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &upper_bound, &is_set), "MPI_Comm_get_attr");
    const int largest = is_set ? *upper_bound : 32767;  // what the standard promises
    const int num_bits = std::bit_width(static_cast<unsigned>(largest) + 1u) - 1;
    sequence_bits_ = num_bits - 2 * num_bits / 5;
    num_groups_ = 1 << (num_bits - sequence_bits_);
  }

  int operator()(Tag tag) const {
    require(tag.group < num_groups_, ExitCode::failed,
            "this MPI's tags have room for " + std::to_string(num_groups_) +
                " groups, not for group number " + std::to_string(tag.group));
    const std::uint32_t sequence = tag.sequence & ((1u << sequence_bits_) - 1);
    return (static_cast<int>(tag.group) << sequence_bits_) | static_cast<int>(sequence);
  }

 private:
  int sequence_bits_;
  int num_groups_;
};

class MpiTransfer : public Transfer {
 public:
  ~MpiTransfer() override {
    if (request_ == MPI_REQUEST_NULL) return;
    // Only while an exception takes the run down.
    if (is_receive_) MPI_Cancel(&request_);
    MPI_Request_free(&request_);
  }

 protected:
  explicit MpiTransfer(bool is_receive) : is_receive_(is_receive) {}

  MPI_Request request_ = MPI_REQUEST_NULL;

 private:
  bool is_receive_;
};

class MpiSend final : public MpiTransfer {
 public:
  MpiSend(MPI_Comm comm, const PeerWatch& watch, int peer, int tag,
          std::span<const std::byte> bytes)
      : MpiTransfer(false), watch_(watch) {
    const Layout layout(bytes.size());
    check_mpi(MPI_Isend(bytes.data(), layout.count(), layout.type(), peer, tag, comm, &request_),
              "MPI_Isend");
  }

  bool done() override {
    int flag = 0;
    check_mpi(MPI_Test(&request_, &flag, MPI_STATUS_IGNORE), "MPI_Test of a send");
    if (!flag) watch_.require_alive();
    return flag != 0;
  }

 private:
  const PeerWatch& watch_;
};

class MpiReceive final : public MpiTransfer {
 public:
  MpiReceive(MPI_Comm comm, const PeerWatch& watch, int peer, int tag, std::span<std::byte> bytes)
      : MpiTransfer(true),
        watch_(watch),
        layout_(bytes.size()),
        expected_(bytes.size()),
        peer_(peer) {
    check_mpi(MPI_Irecv(bytes.data(), layout_.count(), layout_.type(), peer, tag, comm, &request_),
              "MPI_Irecv");
  }

  bool done() override {
    if (is_done_) return true;
    int flag = 0;
    MPI_Status status;
    const int result = MPI_Test(&request_, &flag, &status);
    int error_class = MPI_SUCCESS;
    if (result != MPI_SUCCESS) MPI_Error_class(result, &error_class);
    if (error_class != MPI_ERR_TRUNCATE) {
      check_mpi(result, "MPI_Test of a receive");
      if (!flag) {
        watch_.require_alive();
        return false;
      }
    }
    MPI_Count received = 0;
    check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &received), "MPI_Get_elements_x");
    const auto sent = static_cast<std::size_t>(received);
    if (sent != expected_) fail_size(std::to_string(sent));
    // Truncated, by an MPI that does not tell the length.
    if (error_class == MPI_ERR_TRUNCATE) fail_size("more than " + std::to_string(expected_));
    is_done_ = true;
    return true;
  }

 private:
  [[noreturn]] void fail_size(const std::string& sent) const {
    throw Error(ExitCode::failed, "rank " + std::to_string(peer_) + " sent " + sent +
                                      " bytes where " + std::to_string(expected_) +
                                      " are expected");
  }

  const PeerWatch& watch_;
  Layout layout_;
  std::size_t expected_;
  int peer_;
  bool is_done_ = false;
};

// A rank that does not come is found by the deadline: MPI_Comm_dup would wait for it for ever.
MPI_Comm duplicate_together(Session& session) {
  const MPI_Comm comm = communicator_of(session);
  session.all_gather("the opening of MPI's transport", {});
  return duplicate(comm);
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(Session& session)
      : session_(session), comm_(duplicate_together(session)), tag_bits_(comm_) {}

  ~MpiTransport() override {
    // Collective: not while an exception takes this rank elsewhere. MPI's end frees it too.
    if (std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }

  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }
  std::string_view name() const override { return "mpi"; }

  std::unique_ptr<Transfer> start_send(int peer, Tag tag,
                                       std::span<const std::byte> bytes) override {
    require_peer(peer);
    return std::make_unique<MpiSend>(comm_, session_.watch(), peer, tag_bits_(tag), bytes);
  }

  std::unique_ptr<Transfer> start_receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    require_peer(peer);
    return std::make_unique<MpiReceive>(comm_, session_.watch(), peer, tag_bits_(tag), bytes);
  }

  void abort(ExitCode code, const std::string& reason) noexcept override {
    session_.abort(code, reason);
  }

 private:
  void require_peer(int peer) const {
    require(peer >= 0 && peer < size() && peer != rank(), ExitCode::failed,
            "a message from rank " + std::to_string(rank()) + " to or from rank " +
                std::to_string(peer) + " of " + std::to_string(size()));
  }

  Session& session_;
  MPI_Comm comm_;
  TagBits tag_bits_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(Session& session) {
  return std::make_unique<MpiTransport>(session);
}

}  // namespace weft
