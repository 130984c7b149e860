#include "parallel/comm/ucx_worker.hpp"

#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/error.hpp"
#include "parallel/comm/waiter.hpp"

namespace weft {

namespace {

constexpr const char* error_handling = "UCX_MM_ERROR_HANDLING";

ucs_log_func_rc_t take_log(const char*, unsigned, const char*, ucs_log_level_t level,
                           const ucs_log_component_config_t*, const char* format,
                           va_list arguments) {
  if (level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;  // asked for by the user
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  UcxLog::instance().take(line);
  return UCS_LOG_FUNC_RC_STOP;
}

// UCX warns of variables that the chosen UCX_TLS does not use; that ours are among them is no news.
bool is_about_our_options(const std::string& line) {
  return line.starts_with("unused env variable") && line.find(error_handling) != line.npos;
}

// UCX reads its options from the environment (ucp_config_modify does not reach these).
void set_options(bool is_one_host) {
  const auto set = [](const char* name, const char* value) { setenv(name, value, 0); };
  // Without it endpoints that notice a dead peer leave shared memory for TCP, 28 times slower.
  set(error_handling, "y");
  // Twice the bandwidth of the default. Never 65536 or more: UCX then aborts.
  set("UCX_POSIX_SEG_SIZE", "32768");
  // Between hosts UCX's own probes would keep the kernel's from noticing a cut link.
  if (is_one_host) set("UCX_KEEPALIVE_INTERVAL", "1s");
  set("UCX_TCP_KEEPIDLE", "5s");
  set("UCX_TCP_KEEPINTVL", "2s");
  set("UCX_TCP_KEEPCNT", "3");
}

void check(ucs_status_t status, const std::string& call) {
  if (status == UCS_OK) return;
  throw Error(ExitCode::usage, call + ": " + ucs_status_string(status));
}

}  // namespace

UcxLog::UcxLog() { ucs_log_push_handler(take_log); }

UcxLog& UcxLog::instance() {
  // Never destroyed: UCX's own thread may log while the program's statics go.
  static UcxLog* const log = new UcxLog;
  return *log;
}

void UcxLog::collect() {
  const std::lock_guard lock(mutex_);
  is_collecting_ = true;
  text_.clear();
}

std::string UcxLog::collected() {
  const std::lock_guard lock(mutex_);
  is_collecting_ = false;
  return std::exchange(text_, {});
}

void UcxLog::take(const std::string& line) {
  if (is_about_our_options(line)) return;
  const std::lock_guard lock(mutex_);
  if (is_collecting_) {
    text_ += (text_.empty() ? "" : "; ") + line;
  } else {
    std::fprintf(stderr, "UCX: %s\n", line.c_str());
  }
}

UcxWorker::UcxWorker(PeerWatch& watch) : watch_(watch) {
  set_options(watch.is_one_host());
  ucp_config_t* config = nullptr;
  check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  ucp_params_t features{};
  features.field_mask = UCP_PARAM_FIELD_FEATURES;
  features.features = UCP_FEATURE_TAG;
  const ucs_status_t status = ucp_init(&features, config, &context_);
  ucp_config_release(config);
  check(status, "ucp_init");
  ucp_worker_params_t threads{};
  threads.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  threads.thread_mode = UCS_THREAD_MODE_SINGLE;
  const ucs_status_t made = ucp_worker_create(context_, &threads, &worker_);
  if (made != UCS_OK) ucp_cleanup(context_);
  check(made, "ucp_worker_create");
}

UcxWorker::~UcxWorker() {
  if (!is_closed_) return;
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::string UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
  std::string text(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return text;
}

void UcxWorker::connect(int my_rank, const std::vector<std::string>& addresses) {
  peers_.resize(addresses.size());
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    Peer& peer = peers_[rank];
    peer.worker = this;
    peer.rank = static_cast<int>(rank);
    if (peer.rank == my_rank) continue;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(addresses[rank].data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {.cb = lost, .arg = &peer};
    check(ucp_ep_create(worker_, &params, &peer.endpoint),
          "ucp_ep_create to " + watch_.name_of(peer.rank));
  }
}

void UcxWorker::lost(void* argument, ucp_ep_h, ucs_status_t status) {
  const auto& peer = *static_cast<const Peer*>(argument);
  if (peer.worker->is_ending_) return;
  peer.worker->watch_.report_lost(peer.rank, std::string("UCX says ") + ucs_status_string(status));
}

void UcxWorker::progress() {
  require(!is_frozen_, ExitCode::failed, "UCX's transport was used after an error");
  num_events_ += ucp_worker_progress(worker_);
}

void UcxWorker::fail(int rank, ucs_status_t status) const {
  watch_.require_alive();
  // Before the error: whoever ends the run over it then waits for the watch's word.
  const std::string why = std::string("UCX says ") + ucs_status_string(status);
  watch_.report_lost(rank, why);
  throw Error(ExitCode::peer, watch_.name_of(rank) + " is lost: " + why);
}

void UcxWorker::flush(std::chrono::milliseconds time) {
  if (is_frozen_) return;
  const ucp_request_param_t param{};
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  WaitOptions options;
  options.deadline = time;
  Waiter waiter(options);
  while (ucp_request_check_status(request) == UCS_INPROGRESS) {
    ucp_worker_progress(worker_);
    if (watch_.has_death() || !waiter.pause()) return;  // the request stays with the worker
  }
  ucp_request_free(request);
}

void UcxWorker::close() {
  if (is_frozen_) return;
  is_closed_ = true;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  std::vector<ucs_status_ptr_t> closing;
  for (const Peer& peer : peers_) {
    if (!peer.endpoint) continue;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (const ucs_status_ptr_t request : closing) {
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }
}

}  // namespace weft
