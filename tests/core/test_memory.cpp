// The arena's books by hand numbers, reuse of blocks, and tensors whose handles share one block.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/tensor.hpp"

using namespace weft;

TEST_CASE("bytes in use and peaks by kind and phase", "[arena]") {
  Arena arena;
  void* a = arena.allocate(MemoryKind::activations, 1000);
  CHECK(arena.in_use() == 1000);
  CHECK(arena.peak().total == 1000);
  CHECK(arena.peak().phase == Phase::start_up);

  arena.set_phase(Phase::forward);
  void* b = arena.allocate(MemoryKind::gradients, 500);
  CHECK(arena.in_use() == 1500);
  CHECK(arena.in_use(MemoryKind::gradients) == 500);
  CHECK(arena.in_use(MemoryKind::activations) == 1000);

  arena.release(MemoryKind::activations, a, 1000);
  arena.set_phase(Phase::backward);
  void* c = arena.allocate(MemoryKind::workspace, 200);
  CHECK(arena.in_use() == 700);
  CHECK(arena.peak().total == 1500);
  CHECK(arena.peak().phase == Phase::forward);
  CHECK(arena.peak().by_kind[static_cast<int>(MemoryKind::activations)] == 1000);
  CHECK(arena.peak().by_kind[static_cast<int>(MemoryKind::gradients)] == 500);
  CHECK(arena.peak().by_kind[static_cast<int>(MemoryKind::workspace)] == 0);
  CHECK(arena.peak_of(Phase::start_up) == 1000);
  CHECK(arena.peak_of(Phase::forward) == 1500);
  CHECK(arena.peak_of(Phase::backward) == 700);
  CHECK(arena.peak_of(Phase::update) == 0);
  CHECK(arena.peak_of(MemoryKind::activations) == 1000);
  CHECK(arena.peak_of(MemoryKind::workspace) == 200);
  CHECK(arena.peak_of(MemoryKind::parameters) == 0);

  arena.release(MemoryKind::gradients, b, 500);
  arena.release(MemoryKind::workspace, c, 200);
  CHECK(arena.in_use() == 0);
  CHECK(name_of(MemoryKind::optimizer) == "optimizer");
  CHECK(name_of(Phase::evaluation) == "evaluation");
}

TEST_CASE("freed blocks come back, aligned, never twice", "[arena]") {
  Arena arena;
  void* first = arena.allocate(MemoryKind::activations, 5000);
  void* second = arena.allocate(MemoryKind::activations, 5000);
  CHECK(first != second);
  for (void* block : {first, second}) {
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0);
  }
  arena.release(MemoryKind::activations, first, 5000);
  // Another kind and another size of the same whole pages: the same block.
  void* third = arena.allocate(MemoryKind::workspace, 8192);
  CHECK(third == first);
  void* fourth = arena.allocate(MemoryKind::workspace, 5000);
  CHECK(fourth != first);
  CHECK(fourth != second);
  void* none = arena.allocate(MemoryKind::input, 0);
  CHECK(none != nullptr);
  CHECK(arena.in_use(MemoryKind::input) == 0);
  arena.release(MemoryKind::input, none, 0);
  arena.release(MemoryKind::workspace, third, 8192);
  arena.release(MemoryKind::workspace, fourth, 5000);
  arena.release(MemoryKind::activations, second, 5000);
  CHECK(arena.in_use() == 0);
}

TEST_CASE("blocks of all sizes lie apart, also those larger than what comes at once", "[arena]") {
  // Small ones between blocks that fill, pass and outgrow the 32 MiB that are taken at once.
  constexpr Arena::Bytes mib = 1 << 20;
  const std::vector<Arena::Bytes> sizes{100,      20 * mib, 5000,     20 * mib, 40 * mib,   1,
                                        32 * mib, 4096,     33 * mib, 12 * mib, 3 * mib + 1};
  Arena arena;
  std::vector<std::pair<std::byte*, std::byte*>> blocks;
  for (const Arena::Bytes size : sizes) {
    auto* begin = static_cast<std::byte*>(arena.allocate(MemoryKind::activations, size));
    CHECK(reinterpret_cast<std::uintptr_t>(begin) % 256 == 0);
    blocks.emplace_back(begin, begin + size);
    *begin = *(begin + size - 1) = std::byte{7};  // all of it is there
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) CHECK(blocks[i - 1].second <= blocks[i].first);
}

TEST_CASE("handles of a tensor share one block and release it once", "[tensor]") {
  Arena arena;
  {
    Tensor a(arena, MemoryKind::activations, {3, 7});
    CHECK(a.num_elements() == 21);
    CHECK(a.num_bytes() == 84);
    CHECK(arena.in_use(MemoryKind::activations) == 84);
    Tensor b = a;
    CHECK(b.raw() == a.raw());
    CHECK(arena.in_use() == 84);
    a = Tensor();
    CHECK(!a);
    CHECK(a.raw() == nullptr);
    CHECK(arena.in_use() == 84);
    const Tensor c = std::move(b);
    CHECK(arena.in_use() == 84);
    CHECK(c.data() != nullptr);
    const Tensor wide(arena, MemoryKind::workspace, {4}, DType::f64);
    CHECK(wide.num_bytes() == 32);
    CHECK(wide.data<double>() != nullptr);
  }
  CHECK(arena.in_use() == 0);
  CHECK(arena.peak().total == 84 + 32);
}

TEST_CASE("copies between host and device", "[tensor]") {
  Arena arena;
  const Tensor tensor(arena, MemoryKind::workspace, {5}, DType::i32);
  const std::int32_t numbers[5] = {1, -2, 3, -4, 5};
  copy_to_device(tensor.raw(), numbers, tensor.num_bytes());
  std::int32_t back[5] = {};
  copy_to_host(back, tensor.raw(), tensor.num_bytes());
  for (int i = 0; i < 5; ++i) CHECK(back[i] == numbers[i]);
  HostMirror mirror(tensor.raw(), tensor.num_bytes());
  static_cast<std::int32_t*>(mirror.data())[0] = 7;
  mirror.to_device();
  copy_to_host(back, tensor.raw(), tensor.num_bytes());
  CHECK(back[0] == 7);
  HostMirror received = HostMirror::for_receiving(tensor.raw(), tensor.num_bytes());
  static_cast<std::int32_t*>(received.data())[4] = 9;
  received.to_device();
  copy_to_host(back, tensor.raw(), tensor.num_bytes());
  CHECK(back[4] == 9);
  fill_zero(tensor.raw(), tensor.num_bytes());
  copy_to_host(back, tensor.raw(), tensor.num_bytes());
  for (const std::int32_t number : back) CHECK(number == 0);
}
