#include "io/checkpoint/block_reader.hpp"

#include <cstdint>
#include <utility>

#include "io/extent_reader.hpp"

namespace weft {

namespace {

// Read at once: enough for a disk's full speed.
constexpr std::uint64_t most_stretch_bytes = std::uint64_t{4} << 20;

struct Stretch {
  std::size_t run;
  std::size_t first, end;  // blocks
};

std::vector<Stretch> stretches_of(const std::vector<BlockRun>& runs) {
  std::vector<Stretch> stretches;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::uint64_t bytes = most_stretch_bytes;
    for (std::size_t i = 0; i < runs[run].blocks.size(); ++i) {
      if (bytes + runs[run].blocks[i].num_bytes > most_stretch_bytes) {
        stretches.push_back({run, i, i});
        bytes = 0;
      }
      bytes += runs[run].blocks[i].num_bytes;
      stretches.back().end = i + 1;
    }
  }
  return stretches;
}

}  // namespace

void read_blocks(
    const std::vector<BlockRun>& runs,
    const std::function<void(std::size_t, std::size_t, std::span<const std::byte>)>& use) {
  const std::vector<Stretch> stretches = stretches_of(runs);
  std::vector<Extent> extents;
  for (const Stretch& s : stretches) {
    const BlockRecord& first = runs[s.run].blocks[s.first];
    const BlockRecord& last = runs[s.run].blocks[s.end - 1];
    extents.push_back({runs[s.run].path, first.offset,
                       static_cast<std::size_t>(last.offset + last.num_bytes - first.offset)});
  }
  ExtentReader reader(std::move(extents));
  for (const Stretch& s : stretches) {
    std::span<const std::byte> bytes = reader.next();
    for (std::size_t i = s.first; i < s.end; ++i) {
      const auto size = static_cast<std::size_t>(runs[s.run].blocks[i].num_bytes);
      use(s.run, i, bytes.first(size));
      bytes = bytes.subspan(size);
    }
  }
}

}  // namespace weft
