// What a shard says as an HDF5 file (FORMAT.md), whoever writes it: its name, its attributes, its
// datasets and of which boxes they are.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/local_state.hpp"

namespace weft {

// Of shard `number`.
std::string shard_name(index_t number);
std::vector<hdf5::Attribute> shard_root(const std::string& id, index_t step);
// Piece `number` of a tensor in its shard.
hdf5::Dataset dataset_of_piece(const std::string& kind, const std::string& tensor, int number,
                               const Shape& global, const Box& box);

// Everything in `ranges` of the flat block in as few boxes as can be: those of neighbouring pieces
// are one where they touch. No pads.
std::vector<HeldBox> joined_boxes_in(const ParameterSet& parameters, const FlatRanges& ranges);

}  // namespace weft
