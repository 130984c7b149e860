// What all commands about checkpoints say alike, and the folder that they are told.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/progress_line.hpp"

namespace weft {

double mib(std::uint64_t bytes);

// A run folder stands for its folder checkpoints. Throws Error(data) where neither is there.
std::string checkpoints_of(const std::string& path);

// For a function that tells how many bytes are done: "reading 12 of 80 MiB". The line must outlive
// it.
std::function<void(std::uint64_t done, std::uint64_t all)> show_bytes(ProgressLine& line,
                                                                      const char* what);

// The end of a command: with `is_json` one line to `out`.
void finish_ckpt(bool is_json, const nlohmann::ordered_json& json, std::ostream& text,
                 std::ostream& out);

}  // namespace weft
