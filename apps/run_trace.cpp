#include "apps/run_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/step_statistics.hpp"
#include "core/error.hpp"
#include "io/trace_writer.hpp"
#include "parallel/comm/rank_clock.hpp"

namespace weft {

namespace {

constexpr index_t piece_bytes = index_t{8} << 20;

template <class T>
void send(Communicator& world, int peer, const T& value) {
  world.start({"trace.length", Send{peer, index_t{sizeof(T)}, &value}}).wait();
}

template <class T>
T receive(Communicator& world, int peer) {
  T value{};
  world.start({"trace.length", Receive{peer, index_t{sizeof(T)}, &value}}).wait();
  return value;
}

void send_text(Communicator& world, const std::string& text) {
  send(world, 0, static_cast<std::uint64_t>(text.size()));
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    const auto size = std::min<index_t>(piece_bytes, static_cast<index_t>(text.size() - at));
    world.start({"trace.events", Send{0, size, text.data() + at}}).wait();
  }
}

std::string receive_text(Communicator& world, int peer) {
  std::string text(receive<std::uint64_t>(world, peer), '\0');
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    const auto size = std::min<index_t>(piece_bytes, static_cast<index_t>(text.size() - at));
    world.start({"trace.events", Receive{peer, size, text.data() + at}}).wait();
  }
  return text;
}

}  // namespace

void check_trace_options(const TraceOptions& options) {
  require(options.path.empty() || options.path.ends_with(".json"), ExitCode::usage,
          fmt::format("--trace: expected a name that ends in .json; found {}. The file is replaced "
                      "where it exists",
                      options.path));
  require(options.num_steps >= 1, ExitCode::usage,
          fmt::format("--trace-steps: expected 1 or more; found {}", options.num_steps));
}

RunTrace::RunTrace(const TraceOptions& options, Trace& trace, index_t num_steps) : trace_(trace) {
  const auto warm_up = static_cast<index_t>(
      StepStatistics::usual_warm_up(static_cast<std::size_t>(std::max<index_t>(0, num_steps))));
  recorded_ = {warm_up, warm_up + options.num_steps};
}

void RunTrace::before_step(index_t i) {
  trace_.record_events(recorded_.begin <= i && i < recorded_.end);
  step_begin_ns_ = trace_.now_ns();
}

void RunTrace::after_step(index_t i, index_t step) {
  if (!trace_.is_recording()) return;
  trace_.add_interval({.row = "steps", .name = "step", .index = step}, step_begin_ns_,
                      trace_.now_ns());
  if (i + 1 >= recorded_.end) trace_.record_events(false);
}

void RunTrace::add(const char* row, index_t steps_done, std::int64_t begin_ns) {
  trace_.add_interval({.row = row, .name = row, .index = steps_done}, begin_ns, trace_.now_ns());
}

std::string RunTrace::write(Communicator& world, Mesh& mesh, const std::string& path) {
  trace_.record_events(false);
  const std::int64_t ahead_ns = read_clock(world).ahead_ns;
  // The file's clock begins with rank 0's trace.
  std::int64_t origin_ns = trace_.begin().time_since_epoch() / std::chrono::nanoseconds(1);
  const std::int64_t own_ns = origin_ns - ahead_ns;
  world.start({"trace.origin", Broadcast{0, index_t{sizeof(origin_ns)}, &origin_ns}}).wait();
  const TracePlace place{.rank = world.rank(),
                         .name = fmt::format("rank {}: tp {}, dp {}, pp {}", world.rank(),
                                             mesh.rank("tp"), mesh.rank("dp"), mesh.rank("pp")),
                         .shift_ns = own_ns - origin_ns};
  const std::string mine = trace_events(trace_, place);
  if (world.rank() != 0) {
    send_text(world, mine);
    return world.broadcast_string("trace.end", 0, "");
  }
  std::string fault;
  std::unique_ptr<TraceFile> file;
  const auto try_to = [&](const auto& body) {
    if (!fault.empty()) return;
    try {
      body();
    } catch (const Error& error) {
      fault = error.what();
    }
  };
  try_to([&] { file = std::make_unique<TraceFile>(path); });
  try_to([&] { file->add(mine); });
  for (int peer = 1; peer < world.size(); ++peer) {
    const std::string theirs = receive_text(world, peer);  // also where nothing can be written
    try_to([&] { file->add(theirs); });
  }
  try_to([&] { file->commit(); });
  return world.broadcast_string("trace.end", 0, fault);
}

}  // namespace weft
