#include "parallel/comm/operation.hpp"

#include <utility>

namespace weft {

Operation::Operation(Transport& transport, std::shared_ptr<Progress> progress, Trace* trace,
                     Group group, Tag tag, const Collective& collective, Algorithm algorithm)
    : progress_(std::move(progress)),
      trace_(trace),
      group_(group),
      tag_(tag),
      name_(collective.name),
      peer_(peer_of(collective.what)),
      is_send_(std::holds_alternative<Send>(collective.what)),
      waiting_(collective.waiting),
      channel_(transport, group.members, group.rank, tag, progress_->pool()) {
  Trace::Span span(trace_, Activity::communication, name_, number());
  span.set_group(group_.name);
  if (trace_ && trace_->is_recording() && group_.members.size() > 1) begin_ns_ = trace_->now_ns();
  try {
    task_ = make_task(channel_, collective.what, algorithm);
  } catch (const Error& error) {
    throw Error(error.code(), describe() + ": " + error.what());
  }
  step();
  if (!is_done_) progress_->add(*this);
}

Operation::~Operation() { progress_->remove(*this); }

bool Operation::step() {
  if (is_done_) return false;
  const std::uint64_t moves = channel_.num_moves();
  try {
    is_done_ = task_->step();
  } catch (const Error& error) {
    throw Error(error.code(), describe() + ": " + error.what());
  }
  if (is_done_) {
    task_.reset();  // gives its staging back
    group_.bytes_sent += channel_.bytes_sent();
    if (begin_ns_ >= 0)
      trace_->add_interval({.row = group_.name,
                            .name = name_,
                            .bytes = channel_.bytes_sent(),
                            .exchange = exchange()},
                           begin_ns_, trace_->now_ns());
  }
  return channel_.num_moves() != moves;
}

bool Operation::test() {
  Trace::Span span(trace_, Activity::communication, name_, number());
  span.set_group(group_.name);
  progress_->step_all();
  if (is_done_) span.add_bytes(channel_.bytes_sent());
  return is_done_;
}

void Operation::wait() {
  Trace::Span span(trace_, waiting_, name_, number());
  span.set_group(group_.name);
  progress_->run_until_done(*this);
  span.add_bytes(channel_.bytes_sent());
}

Trace::Exchange Operation::exchange() const {
  using Kind = Trace::Exchange::Kind;
  if (peer_ < 0) return {Kind::collective, -1, number()};
  return {is_send_ ? Kind::send : Kind::receive, group_.members[static_cast<std::size_t>(peer_)],
          tag_.sequence / 2};
}

std::string Operation::describe() const {
  const std::string kind = peer_ < 0 ? "collective" : is_send_ ? "send" : "receive";
  const std::string ends =
      peer_ < 0 ? "" : (is_send_ ? " to rank " : " from rank ") + std::to_string(peer_);
  return kind + " '" + name_ + "' (number " + std::to_string(tag_.sequence / 2) + ends +
         " of group '" + group_.name + "')";
}

std::string Operation::deadline_message() const {
  const double seconds = std::chrono::duration<double>(progress_->options().deadline).count();
  std::string message = describe() + ": rank " + std::to_string(group_.rank) + " has waited " +
                        std::to_string(seconds) + " s";
  const int peer = task_->waiting_for();
  if (peer >= 0) {
    message += " for rank " + std::to_string(peer) + " of the group (world rank " +
               std::to_string(group_.members[static_cast<std::size_t>(peer)]) + ")";
  }
  const std::string counterpart = peer_ < 0  ? "the same collectives in the same order?"
                                  : is_send_ ? "the receive that belongs to this send?"
                                             : "the send that belongs to this receive?";
  return message + ". Is that rank alive, and does it start " + counterpart;
}

}  // namespace weft
