#include "parallel/data/tied_parameter.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/norm_block.hpp"
#include "parallel/comm/reduce_nodes.hpp"

namespace weft {

namespace {

constexpr index_t element_bytes = sizeof(float);

const Parameter* find(const ParameterSet& parameters, const std::string& name) {
  for (const auto& p : parameters.all()) {
    if (p->name == name) return p.get();
  }
  return nullptr;
}

// As a bucket has one norm block at least.
index_t most_elements(index_t message_bytes) {
  return std::max(norm_block, message_bytes / element_bytes);
}

// f(part) for stretches of [0, n) that one message carries.
template <class F>
void for_each_message(index_t n, index_t message_bytes, const F& f) {
  const index_t most = most_elements(message_bytes);
  for (index_t at = 0; at < n; at += most) f(Range{at, std::min(at + most, n)});
}

}  // namespace

TiedParameter::TiedParameter(Context& context, const ParameterSet& parameters, ParameterSet& copies,
                             Communicator& dp, Communicator& pp, const Options& options)
    : dp_(dp), pp_(pp), options_(options), copies_(copies), nodes_(options.num_lanes) {
  const bool is_first = pp.rank() == 0, is_last = pp.rank() == pp.size() - 1;
  if (is_first) original_ = find(parameters, options_.name);
  if (is_last) copy_ = find(copies, options_.name);
  require((original_ != nullptr) == is_first && (copy_ != nullptr) == is_last &&
              copies.all().size() == (is_last ? 1 : 0),
          ExitCode::failed,
          "stage " + std::to_string(pp.rank()) + " of " + std::to_string(pp.size()) +
              ": the first stage has the tied parameter " + options_.name +
              ", the last a copy of it, and none has other copies");
  if (!is_last) return;
  assert(copy_->rows == GradientRows::all);
  if (!is_one_stage()) {
    copies.allocate(context);
    return;
  }
  assert(copy_->spec.text() == original_->spec.text());
  copies.lay_out();
  copies.all().front()->value = original_->value;
}

void TiedParameter::begin_lane(Context& context) {
  if (nodes_.nodes().empty()) statistics_ = {};
  if (copy_ == nullptr) return;
  lane_gradient_ = Tensor(context.arena, MemoryKind::gradients, {copies_.flat_elements()});
  copies_.clear_gaps(lane_gradient_.data());
  copies_.bind_gradients(lane_gradient_.data());
}

void TiedParameter::end_lane(Context& context, index_t lane) {
  if (copy_ == nullptr) return;
  nodes_.push({lane, lane + 1}, std::move(lane_gradient_), [&](Tensor left, const Tensor& right) {
    kernels::add(context, left.data(), right.data(), left.data(), left.num_elements());
    return left;
  });
  lane_gradient_ = Tensor();
}

Tensor TiedParameter::sum_over_dp(Context& context) {
  const std::int64_t begin_ns = context.trace.now_ns();
  const std::uint64_t bytes_before = dp_.bytes_sent();
  Tensor sum = reduce_nodes(context, dp_, "grad_sync.tied.reduce", options_.order,
                            options_.num_lanes, nodes_);
  statistics_.reduce_bytes = dp_.bytes_sent() - bytes_before;
  if (dp_.size() > 1) statistics_.reduce_ns = context.trace.now_ns() - begin_ns;
  return sum;
}

void TiedParameter::finish(Context& context) {
  if (copy_ != nullptr) {
    const Tensor sum = sum_over_dp(context);
    if (is_one_stage()) {
      kernels::add(context, original_->gradient, sum.data(), original_->gradient,
                   sum.num_elements());
    } else {
      send(context, "grad_sync.tied.gradient", 0, sum.data());
    }
  } else if (original_ != nullptr) {
    add_received(context, original_->gradient);
  }
}

void TiedParameter::send(Context& context, const char* name, int peer, float* values) {
  context.device.fence();
  const Parameter& sent = original_ != nullptr ? *original_ : *copy_;
  std::vector<HostMirror> mirrors;
  std::vector<Request> requests;
  for_each_message(sent.spec.local_elements(), options_.message_bytes, [&](Range part) {
    const index_t bytes = part.size() * element_bytes;
    mirrors.emplace_back(values + part.begin, bytes);
    requests.push_back(pp_.start({name, Send{peer, bytes, mirrors.back().data()}}));
  });
  for (Request& request : requests) request.wait();
}

void TiedParameter::add_received(Context& context, float* sum) {
  const index_t n = original_->spec.local_elements();
  const Tensor received(context.arena, MemoryKind::workspace,
                        {std::min(n, most_elements(options_.message_bytes))});
  for_each_message(n, options_.message_bytes, [&](Range part) {
    const index_t bytes = part.size() * element_bytes;
    context.device.fence();  // the part before is added
    HostMirror mirror = HostMirror::for_receiving(received.raw(), bytes);
    pp_.start({"grad_sync.tied.gradient", Receive{pp_.size() - 1, bytes, mirror.data()}}).wait();
    mirror.to_device();
    kernels::add(context, sum + part.begin, received.data(), sum + part.begin, part.size());
  });
}

void TiedParameter::receive_values(Context& context) {
  context.device.fence();
  for_each_message(copy_->spec.local_elements(), options_.message_bytes, [&](Range part) {
    const index_t bytes = part.size() * element_bytes;
    HostMirror mirror = HostMirror::for_receiving(copy_->value + part.begin, bytes);
    pp_.start({"grad_sync.tied.values", Receive{0, bytes, mirror.data()}}).wait();
    mirror.to_device();
  });
}

void TiedParameter::publish(Context& context) {
  if (is_one_stage()) return;
  const std::int64_t begin_ns = context.trace.now_ns();
  if (original_ != nullptr)
    send(context, "grad_sync.tied.values", pp_.size() - 1, original_->value);
  if (copy_ != nullptr) receive_values(context);
  statistics_.publish_ns = context.trace.now_ns() - begin_ns;
}

}  // namespace weft
