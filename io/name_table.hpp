// Names of tensors here and in another program's files, side by side, as a TOML table:
//   [names]
//   "head.weight" = "classifier.weight"
//   "block.*.q.weight" = "encoder.layer.*.attention.query.weight"     # * is a number
// A name without a line is the same in both.
#pragma once

#include <string>
#include <vector>

namespace weft {

class NameTable {
 public:
  NameTable() = default;  // no line
  // Throws Error(usage) that names the file and the line where it is not such a table.
  static NameTable read(const std::string& path);
  static NameTable parse(const std::string& text, const std::string& path);

  // The other program's names of ours, in their order. Throws Error(usage) where two of them get
  // the same one, or where a line of the table is for none of them.
  std::vector<std::string> names_of(const std::vector<std::string>& ours) const;

 private:
  struct Line {
    std::string ours, theirs;  // each with at most one *, both or neither
  };
  std::string path_;
  std::vector<Line> lines_;
};

}  // namespace weft
