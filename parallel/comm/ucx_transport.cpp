#include "parallel/comm/ucx_transport.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include "parallel/comm/ucx_worker.hpp"

namespace weft {

namespace {

// How long a worker that goes down with an exception still pushes out what it has accepted.
constexpr std::chrono::milliseconds longest_last_flush{500};

class UcxSend final : public Transfer {
 public:
  UcxSend(UcxWorker& worker, int peer, ucp_tag_t tag, std::span<const std::byte> bytes)
      : worker_(worker), peer_(peer) {
    const ucp_request_param_t param{};
    request_ = ucp_tag_send_nbx(worker_.endpoint(peer), bytes.data(), bytes.size(), tag, &param);
    if (UCS_PTR_IS_ERR(request_)) worker_.fail(peer_, UCS_PTR_STATUS(request_));
  }

  ~UcxSend() override {
    if (request_) worker_.freeze();  // UCX cannot cancel a send
  }

  bool done() override {
    if (!request_) return true;
    worker_.progress();
    const ucs_status_t status = ucp_request_check_status(request_);
    if (status == UCS_INPROGRESS) {
      worker_.require_alive();
      return false;
    }
    ucp_request_free(std::exchange(request_, nullptr));
    if (status != UCS_OK) worker_.fail(peer_, status);
    return true;
  }

 private:
  UcxWorker& worker_;
  int peer_;
  ucs_status_ptr_t request_ = nullptr;  // null once done
};

class UcxReceive final : public Transfer {
 public:
  UcxReceive(UcxWorker& worker, int peer, ucp_tag_t tag, std::span<std::byte> bytes)
      : worker_(worker), peer_(peer), expected_(bytes.size()) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // the status then comes with the length
    request_ =
        ucp_tag_recv_nbx(worker_.handle(), bytes.data(), bytes.size(), tag, ~ucp_tag_t{0}, &param);
    if (UCS_PTR_IS_ERR(request_)) worker_.fail(peer_, UCS_PTR_STATUS(request_));
  }

  ~UcxReceive() override {
    if (!request_) return;
    ucp_request_cancel(worker_.handle(), request_);
    // One that has met its message cannot be cancelled.
    if (ucp_request_check_status(request_) == UCS_INPROGRESS) {
      worker_.freeze();
    } else {
      ucp_request_free(request_);
    }
  }

  bool done() override {
    if (!request_) return true;
    ucp_tag_recv_info_t info{};
    ucs_status_t status = ucp_tag_recv_request_test(request_, &info);
    if (status == UCS_INPROGRESS) {
      worker_.progress();
      status = ucp_tag_recv_request_test(request_, &info);
    }
    if (status == UCS_INPROGRESS) {
      worker_.require_alive();
      return false;
    }
    ucp_request_free(std::exchange(request_, nullptr));
    const bool has_length = status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED;
    if (!has_length) worker_.fail(peer_, status);
    require(info.length == expected_, ExitCode::failed,
            "rank " + std::to_string(peer_) + " sent " + std::to_string(info.length) +
                " bytes where " + std::to_string(expected_) + " are expected");
    return true;
  }

 private:
  UcxWorker& worker_;
  int peer_;
  std::size_t expected_;
  ucs_status_ptr_t request_ = nullptr;  // null once done
};

// group 16 bits | sequence 32 | source 16
ucp_tag_t tag_bits(Tag tag, int source) {
  return ucp_tag_t{tag.group} << 48 | ucp_tag_t{tag.sequence} << 16 |
         static_cast<ucp_tag_t>(source);
}

class UcxTransport final : public Transport {
 public:
  explicit UcxTransport(Session& session) : session_(session) {
    require(session.size() <= 1 << 16, ExitCode::usage,
            "UCX's tags have room for 65536 ranks, not for " + std::to_string(session.size()));
    UcxLog::instance().collect();
    const std::vector<std::string> addresses = on_all_ranks([&] {
      worker_ = std::make_unique<UcxWorker>(session.watch());
      return worker_->address();
    });
    on_all_ranks([&] {
      worker_->connect(session.rank(), addresses);
      return std::string();
    });
    const std::string warnings = UcxLog::instance().collected();
    if (!warnings.empty() && session.rank() == 0) UcxLog::instance().take(warnings);
  }

  ~UcxTransport() override {
    if (!worker_) return;
    if (std::uncaught_exceptions() > 0) {  // the others may not come
      worker_->flush(longest_last_flush);
      return;
    }
    worker_->expect_endings();
    try {
      session_.all_gather("the end of UCX's transport", {},
                          {.meanwhile = [&] { worker_->idle(); }});
    } catch (...) {  // some rank has died: the next call says so
      return;
    }
    worker_->close();
  }

  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }
  std::string_view name() const override { return "ucx"; }

  std::unique_ptr<Transfer> start_send(int peer, Tag tag,
                                       std::span<const std::byte> bytes) override {
    require_peer(peer);
    return std::make_unique<UcxSend>(*worker_, peer, tag_bits(tag, rank()), bytes);
  }

  std::unique_ptr<Transfer> start_receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    require_peer(peer);
    return std::make_unique<UcxReceive>(*worker_, peer, tag_bits(tag, peer), bytes);
  }

  std::uint64_t num_events() const override { return worker_->num_events(); }

  void abort(ExitCode code, const std::string& reason) noexcept override {
    session_.abort(code, reason);
  }

 private:
  // Runs `make` on every rank and gathers what it returns; where it throws on some, all throw the
  // first one's error, with the environment of that rank.
  template <class Make>
  std::vector<std::string> on_all_ranks(Make make) {
    std::string mine;
    try {
      mine = '+' + make();
    } catch (const std::exception& error) {
      mine = std::string("-") + error.what();
      const std::string more = UcxLog::instance().collected();
      if (!more.empty()) mine += " (" + more + ")";
      mine += ". Change " + variable("UCX_TLS") + " or " + variable("UCX_NET_DEVICES");
    }
    std::vector<std::string> all = session_.all_gather("the opening of UCX's transport", mine);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank][0] == '-') fail(rank, all[rank].substr(1));
      all[rank].erase(0, 1);
    }
    return all;
  }

  static std::string variable(const char* name) {
    const char* const text = std::getenv(name);
    return std::string(name) + (text ? " (now '" + std::string(text) + "')" : " (not set)");
  }

  // On all ranks at once.
  [[noreturn]] void fail(std::size_t rank, const std::string& why) {
    if (worker_) {  // nothing was sent, and nothing moves before all have come to this
      worker_->expect_endings();
      worker_->close();
    }
    UcxLog::instance().collected();
    throw Error(ExitCode::usage, "UCX has no usable interface on rank " + std::to_string(rank) +
                                     ": " + why + ", or set comm.transport = \"mpi\"");
  }

  void require_peer(int peer) const {
    require(peer >= 0 && peer < size() && peer != rank(), ExitCode::failed,
            "a message from rank " + std::to_string(rank()) + " to or from rank " +
                std::to_string(peer) + " of " + std::to_string(size()));
  }

  Session& session_;
  std::unique_ptr<UcxWorker> worker_;
};

}  // namespace

std::unique_ptr<Transport> make_ucx_transport(Session& session) {
  return std::make_unique<UcxTransport>(session);
}

}  // namespace weft
