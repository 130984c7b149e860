#include "core/trace.hpp"

#include <Kokkos_Core.hpp>
#include <array>

namespace weft {

std::string_view name_of(Activity activity) {
  static constexpr std::array<std::string_view, num_activities> names = {
      "start_up", "data_wait", "forward",    "backward",   "communication",
      "bubble",   "update",    "evaluation", "checkpoint", "output"};
  return names[static_cast<std::size_t>(activity)];
}

Trace::Span::Span(Trace* trace, Activity activity, std::string_view name, std::int64_t index)
    : trace_(trace), activity_(activity), index_(index) {
  if (!trace_) return;
  parent_ = trace_->open_;
  trace_->open_ = this;
  is_recorded_ = trace_->record_;
  if (is_recorded_) name_ = trace_->intern(name);
  is_region_ = Kokkos::Tools::profileLibraryLoaded();
  if (is_region_) Kokkos::Tools::pushRegion(std::string(name));
  begin_ns_ = trace_->now_ns();
}

Trace::Span::~Span() {
  if (!trace_) return;
  const std::int64_t end_ns = trace_->now_ns();
  const std::int64_t total_ns = end_ns - begin_ns_;
  trace_->own_ns_[static_cast<int>(activity_)] += total_ns - nested_ns_;
  trace_->open_ = parent_;
  if (is_region_) Kokkos::Tools::popRegion();
  if (parent_) parent_->nested_ns_ += total_ns;
  if (is_recorded_ && trace_->has_room())
    trace_->events_.push_back({name_, activity_, group_, begin_ns_, end_ns, bytes_, index_});
}

void Trace::Span::set_group(std::string_view group) {
  if (is_recorded_) group_ = static_cast<std::uint16_t>(trace_->intern(group));
}

void Trace::add_interval(const IntervalLabel& label, std::int64_t begin_ns, std::int64_t end_ns) {
  if (!has_room()) return;
  intervals_.push_back({intern(label.row), intern(label.name), begin_ns, end_ns, label.bytes,
                        label.index, label.exchange});
}

bool Trace::has_room() {
  if (events_.size() + intervals_.size() < most_events) return true;
  ++num_dropped_;
  return false;
}

std::uint32_t Trace::intern(std::string_view name) {
  const auto [entry, is_new] =
      index_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return entry->second;
}

}  // namespace weft
