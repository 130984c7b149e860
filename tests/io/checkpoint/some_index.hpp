// Consistent indexes for tests: tensors cut in boxes at random, the boxes dealt to files.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_index.hpp"

namespace weft::test {

// Cuts a box along its longer side, again and again, in `n` boxes (at most single elements).
inline std::vector<Box> cut_in_boxes(const Box& whole, std::size_t n, std::mt19937& random) {
  std::vector<Box> boxes{whole};
  n = std::min(n, static_cast<std::size_t>(whole.num_elements()));
  for (std::size_t i = 0; boxes.size() < n; i = (i + 1) % boxes.size()) {
    if (boxes[i].num_elements() == 1) continue;
    Box second = boxes[i];
    const bool rows = boxes[i].rows.size() > boxes[i].cols.size();
    Range& first_range = rows ? boxes[i].rows : boxes[i].cols;
    const auto length = static_cast<unsigned>(first_range.size());
    const index_t middle = first_range.begin + 1 + static_cast<index_t>(random() % (length - 1));
    (rows ? second.rows : second.cols).begin = middle;
    first_range.end = middle;
    boxes.push_back(second);
  }
  return boxes;
}

// Gives each file a block of metadata and then its pieces' blocks, as a writer does.
inline void place_pieces(CheckpointIndex& index, std::mt19937& random) {
  for (std::size_t f = 0; f < index.files.size(); ++f) {
    FileRecord& file = index.files[f];
    file.blocks.begin = static_cast<index_t>(index.blocks.size());
    std::uint64_t position = 0;
    const auto add = [&](std::uint64_t num_bytes) {
      index.blocks.push_back({position, num_bytes, std::uint64_t{random()} * random()});
      position += num_bytes;
    };
    add(1000 + f);
    for (PieceRecord& piece : index.pieces) {
      if (piece.file != static_cast<index_t>(f)) continue;
      piece.first_block = static_cast<index_t>(index.blocks.size());
      for (index_t left = 4 * piece.box.num_elements(); left > 0; left -= BlockRecord::most_bytes)
        add(static_cast<std::uint64_t>(std::min(left, BlockRecord::most_bytes)));
    }
    file.num_bytes = position;
    file.blocks.end = static_cast<index_t>(index.blocks.size());
  }
}

inline CheckpointIndex some_index(const std::vector<Shape>& shapes, std::size_t pieces_each,
                                  int num_files, unsigned seed) {
  std::mt19937 random(seed);
  CheckpointIndex index;
  index.id = "0123456789abcdef0123456789abcdef";
  index.progress = {.step = 3, .epoch = 1, .losses = {2.5, 1.0 / 3.0, 1e-30}};
  index.identity = {.plan = "[run]\nsteps = 3\n",
                    .plan_hash = "aa55",
                    .split = "{\"seed\":7}",
                    .data = "data",
                    .numerics = ""};
  for (int f = 0; f < num_files; ++f)
    index.files.push_back({.name = "shard-0000" + std::to_string(f) + ".h5"});
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    index.tensors.push_back({.name = "block." + std::to_string(t) + ".weight",
                             .kind = t % 2 == 0 ? "value" : "exp_avg",
                             .global = shapes[t],
                             .fingerprint = std::uint64_t{random()} * random()});
    const Shape& shape = shapes[t];
    const Box whole{{0, shape.num_dims() == 2 ? shape[0] : 1}, {0, shape[shape.num_dims() - 1]}};
    std::vector<Box> boxes = cut_in_boxes(whole, pieces_each, random);
    std::shuffle(boxes.begin(), boxes.end(), random);
    for (const Box& box : boxes)
      index.pieces.push_back({.tensor = static_cast<index_t>(t),
                              .file = static_cast<index_t>(random() % unsigned(num_files)),
                              .box = box});
  }
  place_pieces(index, random);
  return index;
}

}  // namespace weft::test
