#include "core/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/device.hpp"
#include "core/error.hpp"

namespace weft {

std::string_view name_of(MemoryKind kind) {
  static constexpr std::array<std::string_view, num_memory_kinds> names = {
      "parameters", "gradients", "optimizer", "activations", "workspace", "input"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, num_phases> names = {
      "start_up", "forward", "backward", "update", "evaluation"};
  return names[static_cast<std::size_t>(phase)];
}

namespace {

constexpr Arena::Bytes alignment = 256;

}  // namespace

Arena::Bytes Arena::rounded(Bytes bytes) {
  return std::max<Bytes>(1, (bytes + 4095) / 4096) * 4096;
}

Arena::~Arena() {
  for (const auto& [block, raw] : raw_) Kokkos::kokkos_free<MemorySpace>(raw);
}

void* Arena::allocate(MemoryKind kind, Bytes bytes) {
  void* block = nullptr;
  auto& kept = free_[rounded(bytes)];
  if (!kept.empty()) {
    block = kept.back();
    kept.pop_back();
  } else {
    // Kokkos aligns to 64 bytes or less, depending on the memory space.
    void* raw = nullptr;
    try {
      raw = Kokkos::kokkos_malloc<MemorySpace>("weft/arena", rounded(bytes) + alignment);
    } catch (const std::exception&) {
      throw Error(
          ExitCode::failed,
          fmt::format("no memory left: {} MiB were asked for {}, {} MiB are in use. Use a smaller "
                      "batch.micro, or more tp ranks",
                      bytes >> 20, name_of(kind), total_ >> 20));
    }
    const auto address = reinterpret_cast<std::uintptr_t>(raw);
    block = reinterpret_cast<void*>((address + alignment - 1) / alignment * alignment);
    raw_.emplace(block, raw);
  }
  in_use_[static_cast<std::size_t>(kind)] += bytes;
  total_ += bytes;
  if (total_ > peak_.total) peak_ = {total_, phase_, in_use_};
  auto& phase_peak = peak_by_phase_[static_cast<std::size_t>(phase_)];
  phase_peak = std::max(phase_peak, total_);
  return block;
}

void Arena::release(MemoryKind kind, void* block, Bytes bytes) noexcept {
  in_use_[static_cast<std::size_t>(kind)] -= bytes;
  total_ -= bytes;
  free_[rounded(bytes)].push_back(block);
}

}  // namespace weft
