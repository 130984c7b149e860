#include "apps/ckpt_output.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "core/error.hpp"

namespace weft {

namespace fs = std::filesystem;

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string checkpoints_of(const std::string& path) {
  std::error_code error;
  const fs::path inner = fs::path(path) / "checkpoints";
  const std::string folder = fs::is_directory(inner, error) ? inner.string() : path;
  require(fs::is_directory(folder, error), ExitCode::data,
          fmt::format("{}: expected a run folder or its folder checkpoints, found {}", path,
                      fs::exists(path, error) ? "a file" : "nothing"));
  return folder;
}

std::function<void(std::uint64_t, std::uint64_t)> show_bytes(ProgressLine& line, const char* what) {
  return [&line, what](std::uint64_t done, std::uint64_t all) {
    line.show([&] { return fmt::format("{} {:.0f} of {:.0f} MiB", what, mib(done), mib(all)); });
  };
}

void finish_ckpt(bool is_json, const nlohmann::ordered_json& json, std::ostream& text,
                 std::ostream& out) {
  text << std::flush;
  if (is_json) out << json.dump() << std::endl;
}

}  // namespace weft
