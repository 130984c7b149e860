// Names of tensors here and in another program's files, side by side, as a TOML table:
//   [names]
//   "head.weight" = "classifier.weight"
//   "block.*.q.weight" = "encoder.layer.*.attention.query.weight"     # * is a number
// A name without a line is the same in both.
#pragma once

#include <string>
#include <vector>

namespace weft {

// So begin the names of an optimizer's moments in other programs' files; no parameter's does.
inline constexpr const char* moments_prefix = "optimizer.";

class NameTable {
 public:
  NameTable() = default;  // no line
  // Throws Error(usage) that names the file and the line where it is not such a table.
  static NameTable read(const std::string& path);
  static NameTable parse(const std::string& text, const std::string& path);

  // The other program's names of ours, in their order; a line for one name comes before one for
  // many. Throws Error(usage) where two of them get the same one, where two lines with * are for
  // one of them, or where a line of the table is for none.
  std::vector<std::string> names_of(const std::vector<std::string>& ours) const;

 private:
  struct Line {
    std::string ours, theirs;  // each with at most one *, both or neither
  };
  // Null: none; marks those that are for it.
  const Line* line_for(const std::string& name, std::vector<bool>& is_used) const;

  std::string path_;
  std::vector<Line> lines_;
};

}  // namespace weft
