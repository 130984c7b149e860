// What StreamWriter and ExtentReader keep of the disk's speed: a file written and synced, and read
// cold with a checksum of each 64 KiB by the caller, through our classes and by the plainest loop
// that is fast. Taken alternately in one process; medians, and the median of the rounds' ratios.
//
//   bench_stream_file FOLDER [MIB [ROUNDS]]

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/range.hpp"
#include "io/extent_reader.hpp"
#include "io/stream_writer.hpp"

namespace {

using namespace weft;

constexpr std::size_t mib = std::size_t{1} << 20, piece = 8 * mib, block = 64 * 1024;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<unsigned char, Free>;

Memory make_memory(std::size_t size) {
  Memory memory(static_cast<unsigned char*>(std::aligned_alloc(4096, size)));
  for (std::size_t i = 0; i < size; ++i) memory.get()[i] = static_cast<unsigned char>(i * 31 >> 5);
  return memory;
}

void check(bool is_good, const char* what) {
  require(is_good, ExitCode::failed, fmt::format("{}: {}", what, std::strerror(errno)));
}

double seconds_of(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void write_raw(const std::string& path, const unsigned char* bytes, std::size_t size, int flags) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | flags, 0666);
  check(fd >= 0, "open");
  for (std::size_t at = 0; at < size; at += piece)
    check(::pwrite(fd, bytes + at, piece, static_cast<off_t>(at)) == ssize_t{piece}, "pwrite");
  check(::fsync(fd) == 0, "fsync");
  ::close(fd);
}

// In pieces as a checkpoint has them: the caller has hashed and copies block by block.
void write_stream(const std::string& path, const unsigned char* bytes, std::size_t size) {
  StreamWriter file(path, size);
  for (std::size_t at = 0; at < size; at += mib) file.write(bytes + at, mib);
  file.finish();
}

std::uint64_t hash_blocks(const void* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < size; at += block)
    sum += XXH3_64bits(static_cast<const unsigned char*>(bytes) + at, std::min(block, size - at));
  return sum;
}

std::uint64_t read_raw(const std::string& path, std::size_t size, unsigned char* into) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  check(fd >= 0, "open");
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < size; at += piece) {
    check(::pread(fd, into, piece, static_cast<off_t>(at)) == ssize_t{piece}, "pread");
    sum += hash_blocks(into, piece);
  }
  ::close(fd);
  return sum;
}

std::uint64_t read_stream(const std::string& path, std::size_t size, std::size_t extent) {
  std::vector<Extent> extents;
  for (std::size_t at = 0; at < size; at += extent) extents.push_back({path, at, extent});
  ExtentReader reader(std::move(extents));
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < size; at += extent) {
    const auto bytes = reader.next();
    sum += hash_blocks(bytes.data(), bytes.size());
  }
  return sum;
}

struct Way {
  const char* name;
  std::function<void()> prepare, work;
  std::vector<double> seconds = {};
};

// The first way, or the better of the first `num_raw`, is what the others are measured by.
void compare(std::vector<Way> ways, std::size_t num_raw, index_t rounds, double gigabytes) {
  std::vector<std::vector<double>> ratios(ways.size());
  for (index_t round = 0; round < rounds; ++round) {
    for (Way& way : ways) {
      way.prepare();
      way.seconds.push_back(seconds_of(way.work));
    }
    double raw = ways[0].seconds.back();
    for (std::size_t i = 1; i < num_raw; ++i) raw = std::min(raw, ways[i].seconds.back());
    for (std::size_t i = 0; i < ways.size(); ++i) ratios[i].push_back(raw / ways[i].seconds.back());
  }
  for (std::size_t i = 0; i < ways.size(); ++i)
    fmt::print("{:<36} {:6.2f} GB/s   {:5.1f} % of raw\n", ways[i].name,
               gigabytes / median(ways[i].seconds), 100 * median(ratios[i]));
}

// Many small extents that do not touch, from the cache.
void small_extents(const std::string& path, std::size_t size) {
  std::vector<Extent> extents;
  for (std::size_t at = 0; at + 2048 <= size; at += 2048) extents.push_back({path, at, 1024});
  const std::size_t n = extents.size();
  const double seconds = seconds_of([&] {
    ExtentReader reader(std::move(extents));
    for (std::size_t i = 0; i < n; ++i) reader.next();
  });
  fmt::print("extents of 1 KiB, warm: {:.0f} thousand/s\n",
             1e-3 * static_cast<double>(n) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const std::size_t size = (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 512) / 8 * piece;
  const index_t rounds = argc > 3 ? std::atol(argv[3]) : 9;
  const double gigabytes = 1e-9 * static_cast<double>(size);
  const std::string path = folder + "/bench_stream_file.tmp";
  const Memory bytes = make_memory(size), into = make_memory(piece);
  const auto remove = [&] { std::filesystem::remove(path); };
  const auto drop = [&] { drop_from_cache(path); };

  fmt::print("{} MiB, {} rounds\n", size / mib, rounds);
  compare(
      {{"write raw, O_DIRECT 8 MiB", remove, [&] { write_raw(path, bytes.get(), size, O_DIRECT); }},
       {"write raw, through the cache", remove, [&] { write_raw(path, bytes.get(), size, 0); }},
       {"StreamWriter", remove, [&] { write_stream(path, bytes.get(), size); }}},
      2, rounds, gigabytes);

  const std::uint64_t expected = hash_blocks(bytes.get(), size);
  const auto verify = [&](std::uint64_t sum) { check(sum == expected, "another checksum"); };
  const auto stream = [&](std::size_t extent) {
    return [&, extent] { verify(read_stream(path, size, extent)); };
  };
  compare({{"read raw, 8 MiB, and XXH3", drop, [&] { verify(read_raw(path, size, into.get())); }},
           {"ExtentReader, 64 KiB, and XXH3", drop, stream(block)},
           {"ExtentReader, 1 MiB, and XXH3", drop, stream(mib)},
           {"ExtentReader, 8 MiB, and XXH3", drop, stream(8 * mib)}},
          1, rounds, gigabytes);
  verify(read_stream(path, size, mib));
  small_extents(path, size);
  remove();
}
