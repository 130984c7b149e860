// A new file that is written under another name beside its place, by whatever writes to a path, and
// takes its name at the end: nothing is ever overwritten, and without commit() nothing is left.
#pragma once

#include <string>

namespace weft {

class PartialFile {
 public:
  // `name`: what messages call it, "--to FILE".
  PartialFile(std::string path, std::string name);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Where to write to; nothing is there yet.
  const std::string& partial() const { return partial_; }
  // What is written is on the disk. Throws Error(usage) where something has the name by now.
  void commit();

 private:
  std::string path_, name_, partial_;
};

}  // namespace weft
