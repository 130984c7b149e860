#include "core/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

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
constexpr Arena::Bytes huge_page = Arena::Bytes{2} << 20;

// Large host blocks lie on huge pages where the system gives them: matrix products walk down
// columns, and with small pages each row is another entry of the TLB.
bool wants_huge_pages(Arena::Bytes bytes) { return device_memory_is_host && bytes >= huge_page; }

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
    const Bytes step = wants_huge_pages(bytes) ? huge_page : alignment;
    void* raw = nullptr;
    try {
      raw = Kokkos::kokkos_malloc<MemorySpace>("weft/arena", rounded(bytes) + step);
    } catch (const std::exception&) {
      throw Error(
          ExitCode::failed,
          fmt::format("no memory left: {} MiB were asked for {}, {} MiB are in use. Use a smaller "
                      "batch.micro, or more tp ranks",
                      bytes >> 20, name_of(kind), total_ >> 20));
    }
    const auto address = reinterpret_cast<std::uintptr_t>(raw);
    block = reinterpret_cast<void*>((address + step - 1) / step * step);
    if (wants_huge_pages(bytes))
      madvise(block, rounded(bytes), MADV_HUGEPAGE);  // a wish, not a need
    raw_.emplace(block, raw);
  }
  auto& of_kind = in_use_[static_cast<std::size_t>(kind)];
  of_kind += bytes;
  auto& kind_peak = peak_by_kind_[static_cast<std::size_t>(kind)];
  kind_peak = std::max(kind_peak, of_kind);
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
