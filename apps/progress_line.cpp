#include "apps/progress_line.hpp"

namespace weft {

void ProgressLine::show(const std::function<std::string()>& make_line) {
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  const auto now = Clock::now();
  if (now - last_ < pause) return;
  last_ = now;
  const std::string line = make_line();
  if (terminal_) {
    text_ << '\r' << line << "\033[K" << std::flush;  // K: clear what a longer line left behind
    open_ = true;
  } else {
    text_ << line << std::endl;
  }
}

void ProgressLine::keep(const std::string& line) {
  if (open_) text_ << "\r\033[K";
  open_ = false;
  text_ << line << std::endl;
}

}  // namespace weft
