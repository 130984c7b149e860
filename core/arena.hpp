// A rank's memory: hands out blocks, keeps freed ones for the next step, and knows at any time how
// many bytes are in use by kind, and where the peak was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft {

enum class MemoryKind : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  workspace,
  input
};
inline constexpr int num_memory_kinds = 6;
std::string_view name_of(MemoryKind kind);

enum class Phase : std::uint8_t { start_up, forward, backward, update, evaluation };
inline constexpr int num_phases = 5;
std::string_view name_of(Phase phase);

class Arena {
 public:
  using Bytes = std::uint64_t;

  struct Peak {
    Bytes total = 0;
    Phase phase = Phase::start_up;
    std::array<Bytes, num_memory_kinds> by_kind{};  // at the moment of the peak
  };

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Device memory, aligned to 256 bytes, contents undefined. Throws Error(failed) when there is
  // none left, saying how much was asked for and what is in use.
  void* allocate(MemoryKind kind, Bytes bytes);
  void release(MemoryKind kind, void* block, Bytes bytes) noexcept;

  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }

  Bytes in_use(MemoryKind kind) const { return in_use_[static_cast<std::size_t>(kind)]; }
  Bytes in_use() const { return total_; }
  const Peak& peak() const { return peak_; }
  // The most of one kind at once, whatever else was in use then.
  Bytes peak_of(MemoryKind kind) const { return peak_by_kind_[static_cast<std::size_t>(kind)]; }
  Bytes peak_of(Phase phase) const { return peak_by_phase_[static_cast<std::size_t>(phase)]; }

 private:
  static Bytes rounded(Bytes bytes);
  // Fresh memory that begins on a multiple of `step`; kept until the arena goes.
  std::byte* allocate_raw(Bytes bytes, Bytes step);
  // A fresh block of `bytes`, a multiple of 4096.
  std::byte* carve(Bytes bytes);

  Phase phase_ = Phase::start_up;
  std::array<Bytes, num_memory_kinds> in_use_{};
  std::array<Bytes, num_memory_kinds> peak_by_kind_{};
  std::array<Bytes, num_phases> peak_by_phase_{};
  Bytes total_ = 0;
  Peak peak_;
  std::unordered_map<Bytes, std::vector<void*>> free_;  // by rounded size
  std::byte* slab_ = nullptr;                           // what is left of the slab under way
  Bytes slab_left_ = 0;
  std::vector<void*> raw_;  // what Kokkos gave
};

}  // namespace weft
