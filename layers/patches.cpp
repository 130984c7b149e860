#include "layers/patches.hpp"

namespace weft {

Activation Patches::forward(Context& context, const Activation& x, Saved&, const Pass&) {
  const index_t num_samples = x.num_rows();
  Activation y = Activation::cut(context, tp_, num_samples * shape_.tokens(), shape_.features());
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    kernels::take_patches(context, x.data.data(), shape_, num_samples, y.spec.piece(s), y.piece(s));
  }
  return y;
}

}  // namespace weft
