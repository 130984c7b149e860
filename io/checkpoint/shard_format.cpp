#include "io/checkpoint/shard_format.hpp"

#include <fmt/format.h>

#include <map>

#include "io/checkpoint/manifest.hpp"

namespace weft {

std::string shard_name(index_t number) { return fmt::format("shard-{:05}.h5", number); }

std::vector<hdf5::Attribute> shard_root(const std::string& id, index_t step) {
  return {{"format", std::string("weft-shard")},
          {"version", std::vector{Manifest::major_version, Manifest::minor_version}},
          {"id", id},
          {"step", std::vector{static_cast<std::uint64_t>(step)}}};
}

namespace {

// One number for each dim of the tensor.
std::vector<std::uint64_t> of_dims(const Shape& global, index_t row, index_t col) {
  const auto r = static_cast<std::uint64_t>(row), c = static_cast<std::uint64_t>(col);
  return global.num_dims() == 1 ? std::vector{c} : std::vector{r, c};
}

}  // namespace

hdf5::Dataset dataset_of_piece(const std::string& kind, const std::string& tensor, int number,
                               const Shape& global, const Box& box) {
  const Box whole = whole_box(global);
  return {.path = fmt::format("/{}/{}/{}", kind, tensor, number),
          .shape = of_dims(global, box.rows.size(), box.cols.size()),
          .attributes = {{"global_shape", of_dims(global, whole.rows.end, whole.cols.end)},
                         {"box_begin", of_dims(global, box.rows.begin, box.cols.begin)},
                         {"box_end", of_dims(global, box.rows.end, box.cols.end)}}};
}

namespace {

// Whether `next` goes on where `box` ends, row-major, so that the two are one box.
bool continues(const Box& box, const Box& next) {
  if (box.cols == next.cols && box.rows.end == next.rows.begin) return true;
  return box.rows == next.rows && box.rows.size() == 1 && box.cols.end == next.cols.begin;
}

}  // namespace

std::vector<HeldBox> joined_boxes_in(const ParameterSet& parameters, const FlatRanges& ranges) {
  std::vector<HeldBox> boxes;
  std::map<std::string, std::size_t> last;  // the box of a tensor that may go on
  for (const HeldBox& held : boxes_in(parameters, ranges)) {
    const auto known = last.find(held.tensor);
    if (known != last.end() && continues(boxes[known->second].box.box, held.box.box)) {
      Box& box = boxes[known->second].box.box;
      box.rows.end = held.box.box.rows.end;
      box.cols.end = held.box.box.cols.end;
    } else {
      last[held.tensor] = boxes.size();
      boxes.push_back(held);
    }
  }
  return boxes;
}

}  // namespace weft
