#include "parallel/mesh.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace weft {

namespace {

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else if (c != ' ') {
      words.back() += c;
    }
  }
  return words;
}

std::string names_of(const std::vector<MeshAxis>& axes) {
  std::string names;
  for (const MeshAxis& axis : axes) names += (names.empty() ? "" : ",") + axis.name;
  return names;
}

}  // namespace

MeshShape::MeshShape(const std::vector<MeshAxis>& axes, std::string_view order) {
  const std::vector<std::string> names = split_at_commas(order);
  const std::string message = "the mesh's order is '" + std::string(order) +
                              "'; it must name each of '" + names_of(axes) + "' once";
  require(names.size() == axes.size(), ExitCode::usage, message);
  for (const std::string& name : names) {
    const auto named = [&](const MeshAxis& axis) { return axis.name == name; };
    const auto axis = std::find_if(axes.begin(), axes.end(), named);
    require(axis != axes.end() && std::none_of(axes_.begin(), axes_.end(), named), ExitCode::usage,
            message);
    require(axis->size >= 1, ExitCode::usage,
            "mesh axis " + name + " has size " + std::to_string(axis->size));
    axes_.push_back(*axis);
  }
}

int MeshShape::num_ranks() const {
  int product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

std::size_t MeshShape::index_of(std::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) return i;
  }
  throw Error(ExitCode::failed,
              "no mesh axis '" + std::string(axis) + "' among '" + names_of(axes_) + "'");
}

std::vector<int> MeshShape::coordinates(int world_rank) const {
  std::vector<int> result;
  for (const MeshAxis& axis : axes_) {
    result.push_back(world_rank % axis.size);
    world_rank /= axis.size;
  }
  return result;
}

int MeshShape::coordinate(int world_rank, std::string_view axis) const {
  return coordinates(world_rank)[index_of(axis)];
}

int MeshShape::world_rank(const std::vector<int>& coordinates) const {
  int rank = 0;
  for (std::size_t i = axes_.size(); i-- > 0;) rank = rank * axes_[i].size + coordinates[i];
  return rank;
}

std::vector<int> MeshShape::ranks_along(int world_rank, std::string_view axis) const {
  const std::size_t moving = index_of(axis);
  std::vector<int> place = coordinates(world_rank);
  std::vector<int> ranks;
  for (int c = 0; c < axes_[moving].size; ++c) {
    place[moving] = c;
    ranks.push_back(this->world_rank(place));
  }
  return ranks;
}

Mesh::Mesh(Transport& transport, Trace* trace, const std::vector<MeshAxis>& axes,
           std::string_view order, const WaitOptions& wait)
    : shape_(axes, order),
      world_(transport, trace, "world", 0, all_ranks(transport), std::make_shared<Progress>(wait)) {
  std::string sizes;
  for (const MeshAxis& axis : shape_.axes()) {
    sizes += (sizes.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
  }
  require(transport.size() == shape_.num_ranks(), ExitCode::usage,
          "the mesh " + sizes + " needs " + std::to_string(shape_.num_ranks()) + " ranks, but " +
              std::to_string(transport.size()) + " were started");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::string& name = shape_.axes()[i].name;
    axes_.push_back(std::make_unique<Communicator>(
        transport, trace, name, static_cast<std::uint16_t>(i + 1),
        shape_.ranks_along(transport.rank(), name), world_.progress()));
  }
}

}  // namespace weft
