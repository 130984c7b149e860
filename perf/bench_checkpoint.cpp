// What a save and a load keep of the disk's speed: the state of a model of MIB MiB on a layout,
// saved with all that a save does up to its commit, loaded cold with all that a resume does up to
// the compared fingerprints. Beside them the plainest loops that are fast: every rank writes its
// share of these bytes, reads it cold, and reads as many bytes as it holds (replicas hold the same;
// the first to read has them from the disk, the others from the cache). Taken alternately in one
// run; medians, and the median of the rounds' ratios.
//
//   apps/launch.sh N build/release/perf/bench_checkpoint FOLDER MIB ROUNDS TP DP ZERO [TP DP ZERO]
//
// The second layout, if there is one, is the one that loads (resharding). FOLDER takes MIB twice.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/agreement.hpp"
#include "apps/trainer.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/checkpoint_writer.hpp"
#include "io/checkpoint/state_loader.hpp"
#include "io/extent_reader.hpp"
#include "io/file.hpp"
#include "io/synthetic_cifar10.hpp"
#include "perf/mpi_ranks.hpp"

namespace {

using namespace weft;

constexpr std::size_t mib = std::size_t{1} << 20, piece = 8 * mib, huge_page = 2 * mib;

struct LayoutOf {
  index_t tp = 1, dp = 1, zero = 0;
  std::string text() const {
    return fmt::format("tp {} x dp {}{}", tp, dp, zero > 0 ? ", ZeRO" : "");
  }
};

struct Sizes {
  std::string folder = ".";
  index_t mib = 488, rounds = 9;
  LayoutOf saves, loads;
};

Plan plan_of(const Sizes& sizes, const LayoutOf& layout) {
  Plan plan = perf::plan_of_state("checkpoint", sizes.mib, layout.tp, layout.dp, layout.zero);
  plan.run.steps = 1;
  return plan;
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// In huge pages, as the raw loops deserve the best memory there is.
std::unique_ptr<std::byte, Free> make_buffer() {
  std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(std::aligned_alloc(huge_page, piece)));
  ::madvise(memory.get(), piece, MADV_HUGEPAGE);
  for (std::size_t i = 0; i < piece; ++i) memory.get()[i] = static_cast<std::byte>(i * 31 >> 5);
  return memory;
}

void check(bool is_good, const char* what) {
  require(is_good, ExitCode::failed, fmt::format("{}: {}", what, std::strerror(errno)));
}

struct Row {
  const char* name;
  std::vector<double> seconds = {}, ratios = {};
};

class Bench {
 public:
  Bench(const Sizes& sizes, Transport& transport, const TrainingData& data)
      : sizes_(sizes),
        world_(transport, nullptr, "bench", 60, all_ranks(transport)),
        saver_(plan_of(sizes, sizes.saves), data, transport),
        loader_(plan_of(sizes, sizes.loads), data, transport),
        buffer_(make_buffer()),
        writer_(world_, options(sizes), {}) {}

  static CheckpointOptions options(const Sizes& sizes) {
    CheckpointOptions options;
    options.folder = sizes.folder;
    options.retention.keep = 1;
    options.read_back = false;
    options.program = "bench";
    options.plan_name = "checkpoint";
    options.layout = sizes.saves.text();
    return options;
  }

  void run() {
    for (index_t round = 0; round <= sizes_.rounds; ++round) {
      const double save = save_once(round + 1);
      ::unlink(raw_path(world_.rank()).c_str());
      const double raw_write = collective_seconds([&] { write_raw(); });
      const double load = load_cold();
      drop();
      const double raw_read = collective_seconds([&] { read_raw(raw_bytes()); });
      drop();
      const double raw_held = collective_seconds([&] { read_raw(bytes_held_); });
      if (round == 0) continue;  // first touch of memory and of the disk's blocks
      add(raw_write_, raw_write, raw_write);
      add(save_, save, raw_write);
      add(raw_read_, raw_read, raw_read);
      add(load_, load, raw_read);
      add(raw_held_, raw_held, raw_held);
      add(load_held_, load, raw_held);
    }
    ::unlink(raw_path(world_.rank()).c_str());
    if (world_.rank() == 0) print();
  }

 private:
  static void add(Row& row, double seconds, double raw) {
    row.seconds.push_back(seconds);
    row.ratios.push_back(100 * raw / seconds);
  }

  // From a common start to the end of the last rank.
  double collective_seconds(const auto& work) {
    world_.barrier();
    return perf::seconds_of([&] {
      work();
      world_.barrier();
    });
  }

  double save_once(index_t step) {
    SaveResult result;
    RunProgress progress;
    progress.step = step;
    progress.losses.resize(static_cast<std::size_t>(step));
    collective_seconds(
        [&] { result = writer_.save(saver_.state(), saver_.share_to_write(), progress); });
    require(result.is_saved && result.fault.empty(), ExitCode::failed, result.fault);
    path_ = result.path;
    num_bytes_ = result.num_bytes;
    return result.write_s;
  }

  double load_cold() {
    drop();
    return collective_seconds([&] {
      const Checkpoint checkpoint = open_checkpoint(path_);
      LoadResult result = load_state(checkpoint, loader_.state(), world_.rank(), world_.size());
      bytes_read_ = result.bytes_read;
      bytes_held_ = result.bytes_held;
      Mesh& mesh = loader_.mesh();
      const std::string fault = compare_fingerprints(checkpoint, std::move(result.sums),
                                                     {&mesh.axis("dp"), &mesh.axis("tp")});
      require(fault.empty(), ExitCode::failed, fault);
    });
  }

  std::size_t raw_bytes() const {
    const std::uint64_t share = num_bytes_ / static_cast<std::uint64_t>(world_.size());
    return static_cast<std::size_t>(share) / DirectFile::alignment * DirectFile::alignment;
  }

  std::string raw_path(int rank) const { return fmt::format("{}/raw-{}", sizes_.folder, rank); }

  void write_raw() {
    const std::string path = raw_path(world_.rank());
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_DIRECT, 0666);
    check(fd >= 0, "open");
    for (std::size_t at = 0; at < raw_bytes(); at += piece) {
      const std::size_t size = std::min(piece, raw_bytes() - at);
      check(::pwrite(fd, buffer_.get(), size, static_cast<off_t>(at)) == static_cast<ssize_t>(size),
            "pwrite");
    }
    check(::fsync(fd) == 0, "fsync");
    ::close(fd);
  }

  // Its own file, and of the other ranks' as much as makes up `num_bytes`.
  void read_raw(std::uint64_t num_bytes) {
    for (int i = 0; num_bytes > 0; ++i) {
      const std::string path = raw_path((world_.rank() + i) % world_.size());
      const int fd = ::open(path.c_str(), O_RDONLY);
      check(fd >= 0, "open");
      for (std::size_t at = 0; at < raw_bytes() && num_bytes > 0;) {
        const std::size_t size = std::min<std::uint64_t>({piece, raw_bytes() - at, num_bytes});
        check(::pread(fd, buffer_.get(), size, static_cast<off_t>(at)) == ssize_t(size), "pread");
        num_bytes -= size;
        at += size;
      }
      ::close(fd);
    }
  }

  // All that was written leaves the page cache.
  void drop() {
    world_.barrier();
    if (world_.rank() == 0) {
      for (const auto& file : std::filesystem::directory_iterator(path_))
        drop_from_cache(file.path().string());
    }
    drop_from_cache(raw_path(world_.rank()));
    world_.barrier();
  }

  void print() const {
    fmt::print("{} MiB, {} rounds; saved on {}, loaded on {}; read {:.3f} x held, {:.2f} x file\n",
               num_bytes_ >> 20, sizes_.rounds, sizes_.saves.text(), sizes_.loads.text(),
               static_cast<double>(bytes_read_) / static_cast<double>(bytes_held_),
               static_cast<double>(bytes_read_) * world_.size() / static_cast<double>(num_bytes_));
    for (const Row* row : {&raw_write_, &save_, &raw_read_, &load_, &raw_held_, &load_held_}) {
      const auto [least, most] = std::minmax_element(row->ratios.begin(), row->ratios.end());
      fmt::print("  {:<20} {:7.1f} ms  {:5.2f} GB/s  {:5.1f} % of raw ({:.0f} - {:.0f})\n",
                 row->name, 1e3 * perf::median(row->seconds),
                 1e-9 * static_cast<double>(num_bytes_) / perf::median(row->seconds),
                 perf::median(row->ratios), *least, *most);
    }
  }

  Sizes sizes_;
  Communicator world_;
  Trainer saver_, loader_;
  std::unique_ptr<std::byte, Free> buffer_;
  CheckpointWriter writer_;
  std::string path_;
  std::uint64_t num_bytes_ = 0, bytes_read_ = 0, bytes_held_ = 0;
  Row raw_write_{"raw write"}, save_{"save"};
  Row raw_read_{"raw read, bytes once"}, load_{"load"};
  Row raw_held_{"raw read, as held"}, load_held_{"load"};
};

Sizes read_sizes(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.folder = argv[1];
  sizes.loads = sizes.saves = {};
  perf::read_arguments(
      argc - 1, argv + 1,
      {&sizes.mib, &sizes.rounds, &sizes.saves.tp, &sizes.saves.dp, &sizes.saves.zero});
  sizes.loads = sizes.saves;
  perf::read_arguments(argc - 6, argv + 6, {&sizes.loads.tp, &sizes.loads.dp, &sizes.loads.zero});
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run_on_mpi_ranks(
      argc, argv, [](int left, char** words, Transport& transport, const TrainingData& data) {
        Bench(read_sizes(left, words), transport, data).run();
      });
}
