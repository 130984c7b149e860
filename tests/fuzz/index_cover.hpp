// Whether an index is what index_check promises, found the slow way: element by element.
#pragma once

#include <string>

#include "io/checkpoint/checkpoint_index.hpp"

namespace weft::test {

// Empty: none. For indexes with 4 million elements at most; one that claims more has a fault.
std::string cover_fault(const CheckpointIndex& index);

}  // namespace weft::test
