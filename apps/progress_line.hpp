// The progress of a long job on stderr: one line rewritten in place on a terminal, else a plain
// line every few seconds.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>

namespace weft {

class ProgressLine {
 public:
  // `text` is written to; `terminal`: rewrite one line.
  ProgressLine(std::ostream& text, bool terminal) : text_(text), terminal_(terminal) {}

  // Shows make_line() if enough time has passed since the last one.
  void show(const std::function<std::string()>& make_line);
  // Shows `line` and keeps it.
  void keep(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;

  std::ostream& text_;
  bool terminal_;
  bool open_ = false;  // a line that will be rewritten stands there
  Clock::time_point last_ = Clock::now();
};

}  // namespace weft
