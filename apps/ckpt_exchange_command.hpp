// `weft ckpt export | import`: parameters to and from files of other programs. No ranks.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace weft {

struct CkptExportOptions {
  std::string path = {};    // a checkpoint
  std::string format = {};  // safetensors
  std::string to = {};      // a file that is not there yet
  std::string names = {};   // a table of names (io/name_table.hpp); empty: our names
  bool with_optimizer = false;
  bool json = false;
};

struct CkptImportOptions {
  std::string path = {};  // a safetensors file
  std::string plan_path = {};
  std::vector<std::string> overrides = {};
  std::string to = {};  // the folder of a checkpoint that is not there yet
  std::string names = {};
  bool json = false;
};

// Each returns 0, and throws Error(data) where what it reads is damaged, Error(usage) where names
// or shapes do not fit or the destination is there; then nothing is made.

int ckpt_export(const CkptExportOptions& options, std::ostream& text, std::ostream& out);
// A checkpoint at step 0 with the file's parameters and moments of zero, cut as the plan's layout
// would. Kokkos must run.
int ckpt_import(const CkptImportOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
