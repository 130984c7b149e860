// MANIFEST: the file that is written last and says what belongs to a checkpoint. Text: one JSON
// object, then a line with the hash of all before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/range.hpp"

namespace weft {

struct Manifest {
  // Readers take any minor version of their major one.
  static constexpr std::uint64_t major_version = 1;
  static constexpr std::uint64_t minor_version = 0;

  struct File {
    std::string name;
    std::uint64_t num_bytes = 0;
    friend bool operator==(const File&, const File&) = default;
  };

  std::string id;  // that of the index
  index_t step = 0;
  std::string written;  // UTC, "2026-11-30T04:05:06Z"
  std::string program;  // version of weft
  std::string plan_name;
  std::string plan_hash;
  std::string layout;  // "tp 2 x dp 2 x pp 1, zero 1", for people
  std::string state_fingerprint;
  std::uint64_t num_elements = 0;
  Hash128 index_hash;       // of index.h5
  std::vector<File> files;  // all but MANIFEST, index.h5 among them
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string encode(const Manifest& manifest);

// Throws Error(data) that names `path` and what is wrong: cut off, altered, another format, a major
// version that this program does not know.
Manifest decode_manifest(const std::string& text, const std::string& path);

}  // namespace weft
