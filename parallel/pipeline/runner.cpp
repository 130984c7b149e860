#include "parallel/pipeline/runner.hpp"

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "parallel/pipeline/schedule_check.hpp"

namespace weft::pipeline {

namespace {

const char* message_name(ActionKind kind) {
  switch (kind) {
    case ActionKind::send_activation:
      return "pipeline.send_activation";
    case ActionKind::receive_activation:
      return "pipeline.receive_activation";
    case ActionKind::send_gradient:
      return "pipeline.send_gradient";
    default:
      return "pipeline.receive_gradient";
  }
}

// A tensor on its way. The request goes first, then the memory that it reads or writes.
struct Message {
  Message(Tensor what, HostMirror host) : tensor(std::move(what)), mirror(std::move(host)) {}

  Tensor tensor;
  HostMirror mirror;
  Request request;
};
using MessagePointer = std::unique_ptr<Message>;

// One run of the list, with all that is under way: an exception that leaves run() takes it along.
class Step {
 public:
  Step(Context& context, Communicator& pp, const std::vector<Action>& actions,
       const Shape& boundary)
      : context_(context), pp_(pp), actions_(actions), boundary_(boundary) {}

  void run(StageWork& work) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      drop_finished_sends();
      const Action& action = actions_[i];
      if (is_receive(action.kind)) {
        start_receives(i + 1);
        finish_receive(action);
      } else if (is_send(action.kind)) {
        start_send(action);
      } else {
        start_receives(next_computation(i));
        compute(action, work);
      }
    }
    for (const MessagePointer& send : sends_) send->request.wait();
  }

 private:
  using Key = std::pair<ActionKind, index_t>;  // which message, of which microbatch

  bool is_first() const { return pp_.rank() == 0; }
  bool is_last() const { return pp_.rank() == pp_.size() - 1; }

  std::size_t next_computation(std::size_t i) const {
    do ++i;
    while (i < actions_.size() && !is_compute(actions_[i].kind));
    return i;
  }

  Request start(const Action& action, const CollectiveRecord& record) {
    return pp_.start({message_name(action.kind), record, Activity::bubble});
  }

  // All receives of the list before position `end` that are not under way yet: in the list's order,
  // for that is the order in which they meet their sends.
  void start_receives(std::size_t end) {
    for (; num_looked_at_ < end; ++num_looked_at_) {
      const Action& action = actions_[num_looked_at_];
      if (!is_receive(action.kind)) continue;
      const Tensor tensor(context_.arena, MemoryKind::activations, boundary_);
      auto message = std::make_unique<Message>(
          tensor, HostMirror::for_receiving(tensor.raw(), tensor.num_bytes()));
      message->request = start(action, Receive{neighbour_of(action), message->tensor.num_bytes(),
                                               message->mirror.data()});
      receives_.push_back(std::move(message));
    }
  }

  void finish_receive(const Action& action) {
    Message& message = *receives_.front();  // receives end in the order in which they start
    message.request.wait();
    message.mirror.to_device();
    tensors_[{action.kind, action.microbatch}] = message.tensor;
    receives_.pop_front();
  }

  void start_send(const Action& action) {
    const Tensor tensor = take(action.kind, action.microbatch);
    auto message = std::make_unique<Message>(tensor, HostMirror(tensor.raw(), tensor.num_bytes()));
    message->request = start(
        action, Send{neighbour_of(action), message->tensor.num_bytes(), message->mirror.data()});
    sends_.push_back(std::move(message));
  }

  void drop_finished_sends() {
    std::erase_if(sends_, [](const MessagePointer& send) { return send->request.test(); });
  }

  void compute(const Action& action, StageWork& work) {
    const index_t k = action.microbatch;
    if (action.kind == ActionKind::forward) {
      Tensor input = is_first() ? Tensor() : take(ActionKind::receive_activation, k);
      Tensor output = work.forward(k, std::move(input));
      keep(std::move(output), !is_last(), action, ActionKind::send_activation);
    } else {
      Tensor gradient = is_last() ? Tensor() : take(ActionKind::receive_gradient, k);
      Tensor output = work.backward(k, std::move(gradient));
      keep(std::move(output), !is_first(), action, ActionKind::send_gradient);
    }
  }

  // A computation's result, for the message that will carry it.
  void keep(Tensor output, bool is_sent, const Action& action, ActionKind message) {
    const std::string what = "pipeline stage " + std::to_string(pp_.rank()) + ", " +
                             text_of(action) + " returns " +
                             (output ? "a tensor " + output.shape().text() : "no tensor");
    require(is_sent || !output, ExitCode::failed, what + "; there is no stage to send one to");
    if (!is_sent) return;
    require(output && output.shape() == boundary_ && output.dtype() == DType::f32, ExitCode::failed,
            what + "; between stages goes an f32 tensor " + boundary_.text());
    tensors_[{message, action.microbatch}] = std::move(output);
  }

  Tensor take(ActionKind message, index_t microbatch) {
    auto entry = tensors_.extract({message, microbatch});
    return std::move(entry.mapped());
  }

  Context& context_;
  Communicator& pp_;
  const std::vector<Action>& actions_;
  const Shape& boundary_;
  std::map<Key, Tensor> tensors_;        // received and not used, computed and not sent
  std::size_t num_looked_at_ = 0;        // receives before this position have been started
  std::deque<MessagePointer> receives_;  // started, in order
  std::vector<MessagePointer> sends_;
};

}  // namespace

Runner::Runner(Context& context, Communicator& pp, const Schedule& lowered)
    : context_(context), pp_(pp) {
  require(lowered.num_stages() == pp.size(), ExitCode::failed,
          "a schedule of " + std::to_string(lowered.num_stages()) + " stages on " +
              std::to_string(pp.size()) + " ranks of group '" + pp.name() + "'");
  const ScheduleCheck result = check(lowered);
  require(result.faults.empty(), ExitCode::failed,
          "the schedule cannot run: " + (result.faults.empty() ? "" : result.faults.front()));
  actions_ = lowered.stages[static_cast<std::size_t>(pp.rank())];
}

void Runner::run(StageWork& work, const Shape& boundary) {
  Step(context_, pp_, actions_, boundary).run(work);
}

}  // namespace weft::pipeline
