// Initial values: a function of the parameter's name, the seed and the global index.
#pragma once

#include "core/context.hpp"
#include "core/parameter.hpp"

namespace weft::kernels {

// Sets the owned pieces of `parameter` and leaves pads alone. A rank never sees more than it owns.
void initialize(Context& context, const Parameter& parameter);

}  // namespace weft::kernels
