// Tensor: dense row-major memory of one rank, shared by its handles and given back to the arena
// with the last of them. Knows no ranks: which part of a global tensor it is, a ShardSpec says.
#pragma once

#include <cassert>
#include <memory>

#include "core/arena.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace weft {

class Tensor {
 public:
  Tensor() = default;
  // Contents are undefined.
  Tensor(Arena& arena, MemoryKind kind, const Shape& shape, DType dtype = DType::f32);

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  index_t num_elements() const { return num_elements_; }
  index_t num_bytes() const { return num_elements_ * bytes_of(dtype_); }
  explicit operator bool() const { return storage_ != nullptr; }

  // Device memory.
  template <class T = float>
  T* data() const {
    assert(DTypeOf<T>::value == dtype_);
    return static_cast<T*>(raw());
  }
  void* raw() const { return storage_ ? storage_->block : nullptr; }

 private:
  struct Storage {
    Arena& arena;
    MemoryKind kind;
    std::uint64_t bytes;
    void* block;
    Storage(Arena& from, MemoryKind what, std::uint64_t size)
        : arena(from), kind(what), bytes(size), block(from.allocate(what, size)) {}
    ~Storage() { arena.release(kind, block, bytes); }
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
  };

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  index_t num_elements_ = 0;
  DType dtype_ = DType::f32;
};

// Copies between device memory and the host; plain copies where they are the same. They wait for
// kernels that run.
void copy_to_device(void* to_device, const void* from_host, index_t bytes);
void copy_to_host(void* to_host, const void* from_device, index_t bytes);
void fill_zero(void* device, index_t bytes);

// Host memory that shadows a device block for communication: the block itself where the host can
// reach it, else a copy that is written back by to_device().
class HostMirror {
 public:
  HostMirror(void* device_block, index_t bytes);
  // Of a block that is overwritten whole: what it holds now is not copied to the host.
  static HostMirror for_receiving(void* device_block, index_t bytes);
  void* data() { return host_; }
  void to_device();

 private:
  enum class Contents { copied, undefined };
  HostMirror(void* device_block, index_t bytes, Contents contents);

  void* device_;
  index_t bytes_;
  std::unique_ptr<std::byte[]> copy_;
  void* host_;
};

}  // namespace weft
