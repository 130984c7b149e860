#include "parallel/comm/session.hpp"

#include <unistd.h>

#include <cstdio>

namespace weft {

namespace {

class SessionOfOne final : public Session {
 public:
  SessionOfOne() : watch_(0, {ProcessIdentity::mine()}) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view own_transport() const override { return "local"; }

  std::vector<std::string> all_gather(std::string_view, std::string_view mine,
                                      const SessionWait&) override {
    return {std::string(mine)};
  }

  std::unique_ptr<Session> first_ranks(int num_ranks) override {
    require(num_ranks == 1, ExitCode::usage,
            std::to_string(num_ranks) + " ranks are wanted, but 1 was started");
    return std::make_unique<SessionOfOne>();
  }

  PeerWatch& watch() override { return watch_; }

  void abort(ExitCode code, const std::string& reason) noexcept override {
    std::fprintf(stderr, "the run ends: %s\n", reason.c_str());
    std::fflush(stderr);
    _exit(static_cast<int>(code));
  }

 private:
  PeerWatch watch_;
};

}  // namespace

std::unique_ptr<Session> make_session_of_one() { return std::make_unique<SessionOfOne>(); }

}  // namespace weft
