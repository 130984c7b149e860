#include "parallel/comm/mpi_transport.hpp"

#include <mpi.h>

#include <bit>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <utility>

namespace weft {

namespace {

// MPI-3 counts in int. A longer message is one element of a type that is as long as the message, so
// that it stays one message and a wrong size is still noticed.
constexpr std::size_t longest_plain_bytes = std::numeric_limits<int>::max();
constexpr std::size_t big_block_bytes = std::size_t{1} << 24;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(ExitCode::peer,
              std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

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
    check(MPI_Type_contiguous(static_cast<int>(big_block_bytes), MPI_BYTE, &types[0]),
          "MPI_Type_contiguous");
    const int status = MPI_Type_create_struct(2, lengths, offsets, types, &type_);
    MPI_Type_free(&types[0]);
    check(status, "MPI_Type_create_struct");
    check(MPI_Type_commit(&type_), "MPI_Type_commit");
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
    check(MPI_Comm_get_attr(comm, MPI_TAG_UB, &upper_bound, &is_set), "MPI_Comm_get_attr");
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
  MpiSend(MPI_Comm comm, int peer, int tag, std::span<const std::byte> bytes) : MpiTransfer(false) {
    const Layout layout(bytes.size());
    check(MPI_Isend(bytes.data(), layout.count(), layout.type(), peer, tag, comm, &request_),
          "MPI_Isend");
  }

  bool done() override {
    int flag = 0;
    check(MPI_Test(&request_, &flag, MPI_STATUS_IGNORE), "MPI_Test of a send");
    return flag != 0;
  }
};

class MpiReceive final : public MpiTransfer {
 public:
  MpiReceive(MPI_Comm comm, int peer, int tag, std::span<std::byte> bytes)
      : MpiTransfer(true), layout_(bytes.size()), expected_(bytes.size()), peer_(peer) {
    check(MPI_Irecv(bytes.data(), layout_.count(), layout_.type(), peer, tag, comm, &request_),
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
      check(result, "MPI_Test of a receive");
      if (!flag) return false;
    }
    MPI_Count received = 0;
    check(MPI_Get_elements_x(&status, MPI_BYTE, &received), "MPI_Get_elements_x");
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

  Layout layout_;
  std::size_t expected_;
  int peer_;
  bool is_done_ = false;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(bool ends_mpi)
      : comm_(duplicate_world()), tag_bits_(comm_), ends_mpi_(ends_mpi) {
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }

  ~MpiTransport() override {
    // The others may not come to MPI_Finalize.
    if (std::uncaught_exceptions() > 0)
      abort(ExitCode::failed, "the transport went down with an exception");
    MPI_Comm_free(&comm_);
    if (ends_mpi_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view name() const override { return "mpi"; }

  std::unique_ptr<Transfer> start_send(int peer, Tag tag,
                                       std::span<const std::byte> bytes) override {
    require_peer(peer);
    return std::make_unique<MpiSend>(comm_, peer, tag_bits_(tag), bytes);
  }

  std::unique_ptr<Transfer> start_receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    require_peer(peer);
    return std::make_unique<MpiReceive>(comm_, peer, tag_bits_(tag), bytes);
  }

  void abort(ExitCode code, const std::string& reason) noexcept override {
    if (!std::exchange(is_aborting_, true)) {
      std::fprintf(stderr, "rank %d ends the run: %s\n", rank_, reason.c_str());
      std::fflush(stderr);
    }
    MPI_Abort(comm_, static_cast<int>(code));
    std::terminate();  // MPI_Abort does not return
  }

 private:
  static MPI_Comm duplicate_world() {
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
    // Ours to report, with the collective's name.
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return comm;
  }

  void require_peer(int peer) const {
    require(peer >= 0 && peer < size_ && peer != rank_, ExitCode::failed,
            "a message from rank " + std::to_string(rank_) + " to or from rank " +
                std::to_string(peer) + " of " + std::to_string(size_));
  }

  MPI_Comm comm_;
  TagBits tag_bits_;
  bool ends_mpi_;
  int rank_ = 0;
  int size_ = 1;
  bool is_aborting_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(int* argc, char*** argv) {
  int is_initialised = 0;
  check(MPI_Initialized(&is_initialised), "MPI_Initialized");
  if (!is_initialised) {
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    require(provided >= MPI_THREAD_FUNNELED, ExitCode::failed,
            "this MPI does not allow other threads in the process (MPI_THREAD_FUNNELED)");
  }
  return std::make_unique<MpiTransport>(!is_initialised);
}

}  // namespace weft
