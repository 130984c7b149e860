// Whether what several ranks hold as copies of one thing is still equal, bit for bit: the check of
// a run's state while it runs. A sound run keeps copies equal without comparing them, so a
// difference is a defect of memory, of a machine or of weft.
//
//   cut over tp        values; moments too unless ZeRO divides them       on the dp ranks of a
//   place held by all of tp  the same                                           on all dp x tp
//   ranks and divided        moments: dp ranks together hold one copy           one copy for each
//   tp rank
//
//   tied parameter     values of the first stage and the last stage's copies    on the dp ranks of
//                                                                               both
//
// Else pipeline stages hold nothing in common.
#pragma once

#include <string>

#include "core/device.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"
#include "parallel/data/tied_parameter.hpp"
#include "parallel/mesh.hpp"

namespace weft {

// Collective over the world of `mesh`, whose axes are tp, dp and pp; between two steps. `tied`:
// null where the model has none. Empty where all copies are equal; else, the same on every rank:
// which tensor of which ranks, the first element that differs, who is in the minority where there
// is one, and how many more tensors differ. Reads the state once; sends some 50 bytes a rank, and
// more only once a difference is found.
std::string replica_fault(const Device& device, const ParameterSet& parameters,
                          const Optimizer& optimizer, Mesh& mesh,
                          const TiedParameter* tied = nullptr);

}  // namespace weft
