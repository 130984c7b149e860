// Ranks as a grid with named axes, and one communicator per axis. A mesh is a value that is passed
// on: nothing here is global, and layers never ask how many ranks there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/comm/transport.hpp"
#include "parallel/comm/waiter.hpp"

namespace weft {

struct MeshAxis {
  std::string name;  // "tp", "dp"
  int size = 1;
};

// Coordinates and ranks. The first axis of `order` is the fastest: neighbours along it are
// consecutive world ranks. tp=2, dp=3, order "tp,dp":
//
//             tp=0  tp=1
//       dp=0    0     1        order "dp,tp":   0  3
//       dp=1    2     3                         1  4
//       dp=2    4     5                         2  5
class MeshShape {
 public:
  // `order` names each axis once, separated by commas. Throws Error(usage) otherwise.
  MeshShape(const std::vector<MeshAxis>& axes, std::string_view order);

  const std::vector<MeshAxis>& axes() const { return axes_; }  // fastest first
  int num_ranks() const;
  int size(std::string_view axis) const { return axes_[index_of(axis)].size; }
  int coordinate(int world_rank, std::string_view axis) const;
  // One coordinate per axis, fastest first.
  std::vector<int> coordinates(int world_rank) const;
  int world_rank(const std::vector<int>& coordinates) const;
  // The world ranks that differ from `world_rank` along `axis` only, itself included, in order.
  std::vector<int> ranks_along(int world_rank, std::string_view axis) const;

  std::size_t index_of(std::string_view axis) const;

 private:
  std::vector<MeshAxis> axes_;
};

class Mesh {
 public:
  // The transport has exactly as many ranks as the shape, else Error(usage). Local. `transport` and
  // `trace` (may be null) must outlive the mesh. Uses the groups 0 (world) to number of axes.
  Mesh(Transport& transport, Trace* trace, const std::vector<MeshAxis>& axes,
       std::string_view order, const WaitOptions& wait = {});

  const MeshShape& shape() const { return shape_; }
  int world_rank() const { return world_.rank(); }
  // This rank's place on an axis and the axis' length.
  int rank(std::string_view axis_name) { return axis(axis_name).rank(); }
  int size(std::string_view axis_name) const { return shape_.size(axis_name); }

  Communicator& world() { return world_; }
  Communicator& axis(std::string_view name) { return *axes_[shape_.index_of(name)]; }

 private:
  MeshShape shape_;
  Communicator world_;
  std::vector<std::unique_ptr<Communicator>> axes_;  // as in shape_
};

}  // namespace weft
