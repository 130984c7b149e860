#include "core/tensor.hpp"

#include <cstring>

#include "core/device.hpp"

namespace weft {

namespace {

using HostBytes =
    Kokkos::View<const std::byte*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using DeviceBytes = Kokkos::View<std::byte*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using HostBytesOut =
    Kokkos::View<std::byte*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using DeviceBytesIn =
    Kokkos::View<const std::byte*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

std::size_t extent(index_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

Tensor::Tensor(Arena& arena, MemoryKind kind, const Shape& shape, DType dtype)
    : shape_(shape), num_elements_(shape.num_elements()), dtype_(dtype) {
  storage_ = std::make_shared<Storage>(arena, kind, static_cast<std::uint64_t>(num_bytes()));
}

void copy_to_device(void* to_device, const void* from_host, index_t bytes) {
  if (bytes == 0) return;
  if constexpr (device_memory_is_host) {
    std::memcpy(to_device, from_host, extent(bytes));
  } else {
    Kokkos::deep_copy(DeviceBytes(static_cast<std::byte*>(to_device), extent(bytes)),
                      HostBytes(static_cast<const std::byte*>(from_host), extent(bytes)));
  }
}

void copy_to_host(void* to_host, const void* from_device, index_t bytes) {
  if (bytes == 0) return;
  if constexpr (device_memory_is_host) {
    std::memcpy(to_host, from_device, extent(bytes));
  } else {
    Kokkos::deep_copy(HostBytesOut(static_cast<std::byte*>(to_host), extent(bytes)),
                      DeviceBytesIn(static_cast<const std::byte*>(from_device), extent(bytes)));
  }
}

void fill_zero(void* device, index_t bytes) {
  if (bytes == 0) return;
  if constexpr (device_memory_is_host) {
    std::memset(device, 0, extent(bytes));
  } else {
    Kokkos::deep_copy(DeviceBytes(static_cast<std::byte*>(device), extent(bytes)), std::byte{0});
  }
}

HostMirror::HostMirror(void* device_block, index_t bytes)
    : HostMirror(device_block, bytes, Contents::copied) {}

HostMirror HostMirror::for_receiving(void* device_block, index_t bytes) {
  return {device_block, bytes, Contents::undefined};
}

HostMirror::HostMirror(void* device_block, index_t bytes, [[maybe_unused]] Contents contents)
    : device_(device_block), bytes_(bytes), host_(device_block) {
  if constexpr (!device_memory_is_host) {
    copy_ = std::make_unique<std::byte[]>(extent(bytes));
    host_ = copy_.get();
    if (contents == Contents::copied) copy_to_host(host_, device_, bytes_);
  }
}

void HostMirror::to_device() {
  if constexpr (!device_memory_is_host) copy_to_device(device_, host_, bytes_);
}

}  // namespace weft
