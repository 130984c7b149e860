#include "core/box_copy.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

namespace weft {

namespace {

Box intersection_of(const Box& a, const Box& b) {
  return {intersection(a.rows, b.rows), intersection(a.cols, b.cols)};
}

// Positions in `part`, a box inside `whole`, as positions in `whole`.
class PositionsIn {
 public:
  PositionsIn(const Box& whole, const Box& part)
      : whole_width_(whole.cols.size()),
        part_width_(part.cols.size()),
        first_((part.rows.begin - whole.rows.begin) * whole_width_ + part.cols.begin -
               whole.cols.begin) {}

  index_t operator()(index_t position) const {
    return first_ + position / part_width_ * whole_width_ + position % part_width_;
  }
  // Where the positions that follow each other in both end, from `position` on.
  index_t end_of_stretch(index_t position, index_t end) const {
    if (part_width_ == whole_width_) return end;
    return std::min(end, (position / part_width_ + 1) * part_width_);
  }

 private:
  index_t whole_width_;
  index_t part_width_;
  index_t first_;
};

void append(std::vector<BoxPart>& parts, const BoxPart& part) {
  if (!parts.empty()) {
    BoxPart& last = parts.back();
    if (last.position + last.length == part.position && last.at + last.length == part.at) {
      last.length += part.length;
      return;
    }
  }
  parts.push_back(part);
}

// Those of `box` that lie in a piece and in `ranges`; positions in `whole`.
void add_parts(std::vector<BoxPart>& parts, const Parameter& parameter, index_t shard,
               const TensorBox& box, const Box& whole, const FlatRanges& ranges) {
  if (box.box.num_elements() == 0) return;
  const PositionsIn in_whole(whole, box.box);
  for (const StoredRun& run : runs_of(parameter, shard, box)) {
    const index_t flat = parameter.offset + run.local;
    ranges.for_each_in({flat, flat + run.length}, [&](Range both, index_t at) {
      index_t position = run.position + both.begin - flat;
      const index_t end = position + both.size();
      while (position < end) {
        const index_t length = in_whole.end_of_stretch(position, end) - position;
        append(parts, {in_whole(position), at, length});
        position += length;
        at += length;
      }
    });
  }
}

// Calls f(parts) for each piece of the parameter that has any, by increasing position in each.
template <class F>
void for_each_piece(const Parameter& parameter, const TensorBox& box, Range elements,
                    const FlatRanges& ranges, const F& f) {
  assert(0 <= elements.begin && elements.end <= box.box.num_elements());
  const std::vector<Box> wanted = boxes_of(box.box, elements);
  const Range shards = parameter.spec.owned();
  for (index_t shard = shards.begin; shard < shards.end; ++shard) {
    const Box piece = box_of_piece(parameter, shard, box.tensor);
    std::vector<BoxPart> parts;
    for (const Box& some : wanted) {
      add_parts(parts, parameter, shard, {box.tensor, intersection_of(some, piece)}, box.box,
                ranges);
    }
    if (!parts.empty()) f(parts);
  }
}

// What lies between the first and the last of a piece's parts: where the host cannot reach device
// memory, it crosses as one stretch.
Range span_of(const std::vector<BoxPart>& parts) {
  Range span{parts.front().at, parts.front().at};
  for (const BoxPart& part : parts)
    span = {std::min(span.begin, part.at), std::max(span.end, part.at + part.length)};
  return span;
}

index_t elements_in(const std::vector<BoxPart>& parts) {
  index_t elements = 0;
  for (const BoxPart& part : parts) elements += part.length;
  return elements;
}

constexpr index_t element_bytes = sizeof(float);

void copy_part(void* to, index_t to_element, const void* from, index_t from_element,
               index_t length) {
  std::memcpy(static_cast<std::byte*>(to) + to_element * element_bytes,
              static_cast<const std::byte*>(from) + from_element * element_bytes,
              static_cast<std::size_t>(length * element_bytes));
}

}  // namespace

std::vector<BoxPart> kept_parts(const Parameter& parameter, const TensorBox& box, Range elements,
                                const FlatRanges& ranges) {
  std::vector<BoxPart> all;
  for_each_piece(parameter, box, elements, ranges, [&](const std::vector<BoxPart>& parts) {
    all.insert(all.end(), parts.begin(), parts.end());
  });
  return all;
}

void view_box(const Parameter& parameter, const TensorBox& box, Range elements,
              const HeldNumbers& from,
              const std::function<void(const BoxPart& part, const std::uint32_t* bits)>& use) {
  for_each_piece(parameter, box, elements, from.ranges, [&](const std::vector<BoxPart>& parts) {
    const auto use_all = [&](const void* data, index_t first) {
      const auto* const bits = static_cast<const std::uint32_t*>(data);
      for (const BoxPart& part : parts) use(part, bits + (part.at - first));
    };
    if (from.residence == Residence::host) {
      use_all(from.data, 0);
    } else {
      const Range span = span_of(parts);
      HostMirror kept(from.data + span.begin, span.size() * element_bytes);
      use_all(kept.data(), span.begin);
    }
  });
}

index_t gather_box(const Parameter& parameter, const TensorBox& box, Range elements,
                   const HeldNumbers& from, void* dense) {
  index_t copied = 0;
  view_box(parameter, box, elements, from, [&](const BoxPart& part, const std::uint32_t* bits) {
    copy_part(dense, part.position - elements.begin, bits, 0, part.length);
    copied += part.length;
  });
  return copied;
}

index_t scatter_box(const Parameter& parameter, const TensorBox& box, Range elements,
                    const void* dense, const HeldNumbers& to) {
  index_t copied = 0;
  for_each_piece(parameter, box, elements, to.ranges, [&](const std::vector<BoxPart>& parts) {
    const Range span = span_of(parts);
    float* const first = to.data + span.begin;
    const index_t bytes = span.size() * element_bytes;
    HostMirror kept = elements_in(parts) == span.size() ? HostMirror::for_receiving(first, bytes)
                                                        : HostMirror(first, bytes);
    for (const BoxPart& part : parts) {
      copy_part(kept.data(), part.at - span.begin, dense, part.position - elements.begin,
                part.length);
    }
    kept.to_device();
    copied += elements_in(parts);
  });
  return copied;
}

}  // namespace weft
