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

// On a host, blocks lie side by side in slabs on huge pages, where the system gives them: matrix
// products walk down columns, and with small pages each row is another entry of the TLB. A step of
// a transformer of hidden 384 takes 10 to 15 % longer without. Blocks larger than a slab get one of
// their own. Where an address sanitizer looks for accesses between blocks, each block is alone.
#ifdef __SANITIZE_ADDRESS__
constexpr bool has_slabs = false;
#else
constexpr bool has_slabs = device_memory_is_host;
#endif
constexpr Arena::Bytes slab_bytes = Arena::Bytes{32} << 20;

}  // namespace

Arena::Bytes Arena::rounded(Bytes bytes) {
  return std::max<Bytes>(1, (bytes + 4095) / 4096) * 4096;
}

Arena::~Arena() {
  for (void* raw : raw_) Kokkos::kokkos_free<MemorySpace>(raw);
}

std::byte* Arena::allocate_raw(Bytes bytes, Bytes step) {
  // Kokkos aligns to 64 bytes or less, depending on the memory space.
  void* raw = Kokkos::kokkos_malloc<MemorySpace>("weft/arena", bytes + step);
  raw_.push_back(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  return reinterpret_cast<std::byte*>((address + step - 1) / step * step);
}

std::byte* Arena::carve(Bytes bytes) {
  if (!has_slabs) return allocate_raw(bytes, alignment);
  if (bytes > slab_left_) {
    const Bytes size = std::max(slab_bytes, bytes);
    std::byte* slab = allocate_raw(size, huge_page);
    madvise(slab, size, MADV_HUGEPAGE);  // a wish, not a need
    if (size == bytes) return slab;      // the slab under way stays
    slab_ = slab;
    slab_left_ = size;
  }
  std::byte* block = slab_;
  slab_ += bytes;
  slab_left_ -= bytes;
  return block;
}

void* Arena::allocate(MemoryKind kind, Bytes bytes) {
  void* block = nullptr;
  auto& kept = free_[rounded(bytes)];
  if (!kept.empty()) {
    block = kept.back();
    kept.pop_back();
  } else {
    try {
      block = carve(rounded(bytes));
    } catch (const std::exception&) {
      throw Error(
          ExitCode::failed,
          fmt::format("no memory left: {} MiB were asked for {}, {} MiB are in use. Use a smaller "
                      "batch.micro, or more tp ranks",
                      bytes >> 20, name_of(kind), total_ >> 20));
    }
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
