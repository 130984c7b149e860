#include "parallel/comm/mpi_session.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

#include "parallel/comm/mpi_calls.hpp"
#include "parallel/comm/waiter.hpp"

namespace weft {

namespace {

// Under a launcher that does not kill the others MPI_Abort may not return.
constexpr std::chrono::milliseconds longest_abort{1500};
// An error that a death has caused may come before the watch tells of it (PeerWatch::Options).
constexpr std::chrono::milliseconds longest_verdict{300};
// After a death, for the others to say so too. Longer than the patience of their watches.
constexpr std::chrono::milliseconds time_to_speak{1200};

// Does not return. Callable from any thread: MPI is not asked for more than an end.
[[noreturn]] void end_all(MPI_Comm whole, ExitCode code) noexcept {
  try {
    std::thread([code] {
      std::this_thread::sleep_for(longest_abort);
      _exit(static_cast<int>(code));
    }).detach();
  } catch (...) {  // no thread to be had: MPI_Abort alone must do
  }
  MPI_Abort(whole, static_cast<int>(code));
  _exit(static_cast<int>(code));
}

// Of a death the ranks of this host learn by themselves, and say so: MPI_Abort would cut them
// short. The first of those alive waits for them, and ends those that are left then: the ranks of
// other hosts, which may know of nothing, and the stuck.
[[noreturn]] void end_after_death(const PeerWatch& watch, MPI_Comm whole, ExitCode code) noexcept {
  if (!watch.is_first_alive() || watch.others_end_within(time_to_speak))
    _exit(static_cast<int>(code));
  end_all(whole, code);
}

void say_end(int rank, const std::string& reason) noexcept {
  std::fprintf(stderr, "rank %d ends the run: %s\n", rank, reason.c_str());
  std::fflush(stderr);
}

// The buffers of an all-gather under way.
struct Gather {
  std::vector<int> lengths, offsets;
  std::string mine, all;
};

class MpiSession final : public Session {
 public:
  // The whole run.
  explicit MpiSession(bool ends_mpi)
      : MpiSession(duplicate(MPI_COMM_WORLD), MPI_COMM_NULL, nullptr, ends_mpi) {
    try {
      begin_watch();
    } catch (const std::exception& error) {  // the others would wait for this rank
      abort(ExitCode::failed, error.what());
    }
  }

  // A part of it.
  MpiSession(MPI_Comm comm, MPI_Comm whole, std::shared_ptr<PeerWatch> watch)
      : MpiSession(comm, whole, std::move(watch), false) {}

  ~MpiSession() override {
    const bool is_unwinding = std::uncaught_exceptions() > num_exceptions_;
    const bool comm_is_whole = comm_ == whole_;
    if (comm_is_whole) {
      // The others may not come.
      if (is_unwinding) abort(ExitCode::failed, "the session went down with an exception");
      leave_in_order();
    }
    if (!is_unwinding) MPI_Comm_free(&comm_);
    if (ends_mpi_) MPI_Finalize();  // it waits for the others, also for one that has died just now
    if (comm_is_whole) watch_->stop();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view own_transport() const override { return "mpi"; }
  PeerWatch& watch() override { return *watch_; }
  MPI_Comm communicator() const { return comm_; }

  std::vector<std::string> all_gather(std::string_view place, std::string_view mine,
                                      const SessionWait& wait) override {
    auto gather = std::make_unique<Gather>();
    try {
      return all_gather(*gather, place, mine, wait);
    } catch (...) {
      // The call is still under way and cannot be withdrawn: MPI may yet write there.
      static_cast<void>(gather.release());
      throw;
    }
  }

  std::unique_ptr<Session> first_ranks(int num_ranks) override {
    require(num_ranks >= 1 && num_ranks <= size_, ExitCode::usage,
            std::to_string(num_ranks) + " ranks are wanted, but " + std::to_string(size_) +
                " were started");
    // A rank that does not come is found here: MPI_Comm_split would wait for it for ever.
    all_gather("the making of a session of the first " + std::to_string(num_ranks) + " ranks", {},
               {});
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(comm_, rank_ < num_ranks ? 0 : MPI_UNDEFINED, rank_, &part),
              "MPI_Comm_split");
    if (part == MPI_COMM_NULL) return nullptr;
    auto session = std::make_unique<MpiSession>(part, whole_, watch_);
    session->set_deadline(deadline());
    return session;
  }

  void abort(ExitCode code, const std::string& reason) noexcept override {
    if (!watch_) {  // the run has not begun
      say_end(rank_, reason);
      end_all(whole_, code);
    }
    const bool is_death = watch_->has_death() ||
                          (code == ExitCode::peer && watch_->has_death_within(longest_verdict));
    if (watch_->take_last_word()) {
      const std::string cause = is_death ? watch_->cause() : std::string();
      const bool is_known = reason.find(cause) != std::string::npos;
      say_end(rank_, is_known ? reason : reason + "; " + cause);
    }
    watch_->stop();  // it would end this process while it waits for others
    if (is_death) end_after_death(*watch_, whole_, code);
    end_all(whole_, code);
  }

 private:
  MpiSession(MPI_Comm comm, MPI_Comm whole, std::shared_ptr<PeerWatch> watch, bool ends_mpi)
      : comm_(comm),
        whole_(whole == MPI_COMM_NULL ? comm : whole),
        watch_(std::move(watch)),
        ends_mpi_(ends_mpi) {
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }

  void begin_watch() {
    std::vector<ProcessIdentity> processes;
    for (const std::string& text :
         all_gather("the run's start", ProcessIdentity::mine().text(), {}))
      processes.push_back(ProcessIdentity::from_text(text));
    PeerWatch::Options options;
    options.last_act = [whole = whole_](const PeerWatch& watch) {
      end_after_death(watch, whole, ExitCode::peer);
    };
    watch_ = std::make_shared<PeerWatch>(rank_, std::move(processes), std::move(options));
  }

  std::vector<std::string> all_gather(Gather& gather, std::string_view place, std::string_view mine,
                                      const SessionWait& wait) {
    gather.mine = mine;
    gather.lengths.resize(static_cast<std::size_t>(size_));
    const auto length = static_cast<int>(mine.size());
    gather.lengths[static_cast<std::size_t>(rank_)] = length;
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gather.lengths.data(), 1, MPI_INT,
                             comm_, &request),
              "MPI_Iallgather");
    finish(request, place, wait);
    int total = 0;
    for (const int one : gather.lengths) {
      gather.offsets.push_back(total);
      total += one;
    }
    gather.all.resize(static_cast<std::size_t>(total));
    check_mpi(
        MPI_Iallgatherv(gather.mine.data(), length, MPI_CHAR, gather.all.data(),
                        gather.lengths.data(), gather.offsets.data(), MPI_CHAR, comm_, &request),
        "MPI_Iallgatherv");
    finish(request, place, wait);
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < gather.lengths.size(); ++r) {
      texts.push_back(gather.all.substr(static_cast<std::size_t>(gather.offsets[r]),
                                        static_cast<std::size_t>(gather.lengths[r])));
    }
    return texts;
  }

  // Not MPI_Wait: that would wait for the dead for ever.
  void finish(MPI_Request& request, std::string_view place, const SessionWait& wait) {
    WaitOptions options;
    options.deadline = wait.deadline.value_or(deadline());
    Waiter waiter(options);
    for (;;) {
      int is_done = 0;
      check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test of an all-gather");
      if (is_done) return;
      if (watch_) watch_->require_alive();
      if (wait.meanwhile) wait.meanwhile();
      if (!waiter.pause()) fail_deadline(options.deadline, place);
    }
  }

  [[noreturn]] void fail_deadline(std::chrono::milliseconds waited, std::string_view place) const {
    throw Error(ExitCode::peer, "rank " + std::to_string(rank_) + " has waited " +
                                    std::to_string(std::chrono::duration<double>(waited).count()) +
                                    " s for all " + std::to_string(size_) + " ranks to come to " +
                                    std::string(place) +
                                    ". Are they alive? If they are slow, raise comm.timeout_s");
  }

  void leave_in_order() noexcept {
    try {
      all_gather("the run's end", {}, {});
    } catch (const Error& error) {
      abort(error.code(), error.what());
    } catch (...) {
      abort(ExitCode::failed, "the session could not end in order");
    }
    watch_->leave();
  }

  MPI_Comm comm_;
  MPI_Comm whole_;  // of the session that this one is a part of, or its own
  std::shared_ptr<PeerWatch> watch_;
  bool ends_mpi_;
  int num_exceptions_ = std::uncaught_exceptions();
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(ExitCode::peer,
              std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return copy;
}

MPI_Comm communicator_of(Session& session) {
  const auto* const mpi = dynamic_cast<MpiSession*>(&session);
  require(mpi != nullptr, ExitCode::usage,
          "MPI's transport needs processes that were started with MPI");
  return mpi->communicator();
}

std::unique_ptr<Session> make_mpi_session(int* argc, char*** argv) {
  int is_initialised = 0;
  check_mpi(MPI_Initialized(&is_initialised), "MPI_Initialized");
  if (!is_initialised) {
    int provided = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    require(provided >= MPI_THREAD_FUNNELED, ExitCode::failed,
            "this MPI does not allow other threads in the process (MPI_THREAD_FUNNELED)");
  }
  return std::make_unique<MpiSession>(!is_initialised);
}

}  // namespace weft
