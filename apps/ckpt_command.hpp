// `weft ckpt ls | inspect | verify | diff`: checkpoints as things one can look at. No ranks, no
// device. Text for people goes to `text`, with `json` one line to `out`.
#pragma once

#include <iosfwd>
#include <string>

namespace weft {

struct CkptOptions {
  std::string path = {};    // ls: a run folder or its checkpoints; else the folder of a checkpoint
  std::string other = {};   // diff
  std::string tensor = {};  // inspect: pieces of this one
  bool json = false;
};

// Each returns the exit code and throws Error(data) where a checkpoint does not open.

// Every step in a folder, newest first, with what a quick look says of it (manifest, index, sizes).
// 5 where one of them is damaged.
int ckpt_ls(const CkptOptions& options, std::ostream& text, std::ostream& out);
// What a checkpoint is: its run, plan, files, tensors.
int ckpt_inspect(const CkptOptions& options, std::ostream& text, std::ostream& out);
// Every byte. 5 where one is altered.
int ckpt_verify(const CkptOptions& options, std::ostream& text, std::ostream& out);
// 0 equal, 1 not.
int ckpt_diff(const CkptOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
