#include "apps/nonfinite_hunt.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/finite_check.hpp"
#include "core/norm_block.hpp"

namespace weft {

namespace {

enum Part : std::int64_t { in_forward, in_loss, in_backward, in_token_blocks };

// Of what is cut, only the pieces: between them are gaps that nobody writes.
bool is_finite(const Activation& x) {
  if (!x.data) return true;  // the model's first layer has no gradient of its input
  if (x.spec.is_replicated()) return all_finite(x.data.data(), x.data.num_elements());
  for (index_t shard = x.spec.owned().begin; shard < x.spec.owned().end; ++shard) {
    if (!all_finite(x.piece(shard), x.spec.block(shard).num_elements())) return false;
  }
  return true;
}

constexpr std::int64_t before_all = -1;
constexpr std::int64_t after_all = std::numeric_limits<std::int64_t>::max();

}  // namespace

NonfiniteHunt::NonfiniteHunt(const Parts& parts)
    : parts_(parts), per_lane_(parts.work.num_microbatches() / parts.grad_sync.lanes().size()) {
  parts_.model.set_watch(this);
  parts_.work.set_gradient_watch(
      {.piece = [this](const Parameter& p, index_t shard) { look_at_gradient(p, shard); },
       .token_blocks = [this] { look_at_token_blocks(); }});
  for_each_used([this](const Parameter& p) {
    numbers_.emplace(&p, static_cast<std::int64_t>(numbers_.size()));
  });
}

template <class F>
void NonfiniteHunt::for_each_used(const F& f) const {
  for (const ParameterSet* set : {&parts_.parameters, &parts_.copies}) {
    for (const auto& p : set->all()) f(*p);
  }
}

NonfiniteHunt::~NonfiniteHunt() {
  parts_.model.set_watch(nullptr);
  parts_.work.set_gradient_watch({});
}

std::string NonfiniteHunt::find(const HostBatch& batch, index_t step) {
  batch_ = &batch;
  parts_.context.device.fence();
  look_at_parameters();
  parts_.work.begin(batch, step);
  parts_.runner.run(*this, parts_.model.boundary_shape(parts_.micro, batch.tokens_per_sample));
  parts_.grad_sync.finish(parts_.context);
  look_at_sums();
  parts_.grad_sync.release();
  return first_of_all();
}

Tensor NonfiniteHunt::forward(index_t number, Tensor input) {
  number_ = number;
  Tensor output = parts_.work.forward(number, std::move(input));
  // Of a lane up to here: if one of its microbatches has spoiled it, that one was noted.
  const auto lane = static_cast<std::size_t>(number / per_lane_);
  if (!std::isfinite(parts_.work.lane_sums()[lane].loss)) note({0, in_loss}, "the loss");
  return output;
}

Tensor NonfiniteHunt::backward(index_t number, Tensor output_gradient) {
  number_ = number;
  return parts_.work.backward(number, std::move(output_gradient));
}

void NonfiniteHunt::after_forward(index_t layer, const std::string& name, const Activation& y) {
  parts_.context.device.fence();
  if (!is_finite(y)) note({0, in_forward, stage(), layer}, "the activation after " + name);
}

void NonfiniteHunt::after_backward_input(index_t layer, const std::string& name,
                                         const Activation& dx) {
  layer_ = layer;
  parts_.context.device.fence();
  if (!is_finite(dx))
    note({0, in_backward, backward_stage(), backward_layer(layer)},
         "the gradient of the input of " + name);
}

void NonfiniteHunt::look_at_gradient(const Parameter& parameter, index_t shard) {
  parts_.context.device.fence();
  if (all_finite(parameter.gradient_of(shard), parameter.spec.valid(shard).num_elements())) return;
  note({0, in_backward, backward_stage(), backward_layer(layer_), 1, numbers_.at(&parameter)},
       "the gradient of " + parameter.name);
}

void NonfiniteHunt::look_at_parameters() {
  for_each_used([this](const Parameter& p) {
    for_each_shard(p.spec, [&](index_t, Range local) {
      if (!all_finite(p.value + local.begin, local.size()))
        note({before_all, 0, stage(), 0, 0, numbers_.at(&p)},
             "the parameter " + p.name + " itself, before the step");
    });
  });
}

void NonfiniteHunt::look_at_token_blocks() {
  parts_.context.device.fence();
  for (const auto& p : parts_.parameters.all()) {
    if (p->rows != GradientRows::token_blocks) continue;
    for (index_t b = 0; b < parts_.context.numerics.token_blocks.size(); ++b) {
      if (!all_finite(p->partials + b * p->partial_stride, p->spec.held_elements()))
        note({0, in_token_blocks, stage(), 0, 0, numbers_.at(p.get())},
             "the gradient of " + p->name);
    }
  }
}

void NonfiniteHunt::look_at_sums() {
  parts_.context.device.fence();
  for (const auto& p : parts_.parameters.all()) {
    for_each_shard(p->spec, [&](index_t, Range local) {
      const Range flat{p->offset + local.begin, p->offset + local.end};
      parts_.grad_sync.owned().for_each_in(flat, [&](Range part, index_t) {
        if (!all_finite(p->gradient + (part.begin - p->offset), part.size()))
          note({after_all, 0, stage(), 0, 0, numbers_.at(p.get())},
               "the sum over lanes of the gradient of " + p->name);
      });
    });
  }
}

void NonfiniteHunt::note(const Place& place, const std::string& what) {
  Place here = place;
  const bool is_in_microbatch = here[0] == 0;
  if (is_in_microbatch) {
    here[0] = microbatch();
  }
  if (first_ && *first_ <= here) return;
  first_ = here;
  what_ = what + (is_in_microbatch ? microbatch_text() : "");
}

std::string NonfiniteHunt::microbatch_text() const {
  const index_t micro = parts_.micro;
  const index_t global = microbatch();
  constexpr index_t most = 8;
  std::vector<std::int64_t> numbers;
  for (index_t row = number_ * micro; row < number_ * micro + std::min(micro, most); ++row)
    numbers.push_back(batch_->dataset_index[static_cast<std::size_t>(row)]);
  return fmt::format(
      ", in microbatch {} (samples {} to {} of the batch, numbers {}{} of the data set)", global,
      global * micro, (global + 1) * micro - 1, fmt::join(numbers, ", "),
      micro > most ? ", ..." : "");
}

std::string NonfiniteHunt::first_of_all() {
  std::string mine;
  if (first_) {
    mine.assign(reinterpret_cast<const char*>(first_->data()), sizeof(Place));
    mine += what_;
  }
  const std::vector<std::string> all =
      parts_.mesh.world().all_gather_strings("nonfinite.first", mine);
  std::optional<Place> first;
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    Place place;
    std::memcpy(place.data(), all[rank].data(), sizeof(Place));
    if (first && *first <= place) continue;
    first = place;
    const MeshShape& shape = parts_.mesh.shape();
    const int world_rank = static_cast<int>(rank);
    text = fmt::format("{}, on rank {} (tp {}, dp {}, pp {})", all[rank].substr(sizeof(Place)),
                       rank, shape.coordinate(world_rank, "tp"), shape.coordinate(world_rank, "dp"),
                       shape.coordinate(world_rank, "pp"));
  }
  if (!text.empty()) return text;
  return "none: the same step done again is finite throughout, so a machine computed it wrongly";
}

}  // namespace weft
