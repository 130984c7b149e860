// `weft ckpt view`: a file that shows a checkpoint's tensors to programs that read HDF5. No ranks,
// no device.
#pragma once

#include <iosfwd>
#include <string>

namespace weft {

struct CkptViewOptions {
  std::string path = {};  // a checkpoint's folder
  std::string out = {};   // the file, which must not exist; empty: default_view_path()
  bool json = false;
};

// Returns 0. Throws as open_checkpoint() and write_view().
int ckpt_view(const CkptViewOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
