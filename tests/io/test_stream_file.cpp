// Large files: every byte in its place, every fault of the system an Error at the right call, and
// no fault a thread that hangs.
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "io/extent_reader.hpp"
#include "io/file.hpp"
#include "io/stream_writer.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::string random_bytes(std::size_t size, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string bytes(size + 8, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, bytes.begin() + i);
  }
  bytes.resize(size);
  return bytes;
}

void write_in_parts(StreamWriter& file, const std::string& bytes, std::size_t part) {
  for (std::size_t at = 0; at < bytes.size(); at += part)
    file.write(bytes.data() + at, std::min(part, bytes.size() - at));
}

void write_stream(const std::string& path, const std::string& bytes, std::size_t part = mib) {
  StreamWriter file(path, bytes.size());
  write_in_parts(file, bytes, part);
  file.finish();
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("a stream of any size and in any parts is the file", "[stream]") {
  const TemporaryFolder folder;
  const std::size_t size =
      GENERATE(0, 1, 511, 4095, 4096, 4097, 3 * mib + 512, 4 * mib, 4 * mib + 1, 21 * mib + 4099);
  const std::string bytes = random_bytes(size);
  for (const std::size_t part : {std::size_t{1000}, 65536 + std::size_t{7}, 64 * mib}) {
    const std::string path = folder / std::to_string(part);
    write_stream(path, bytes, part);
    REQUIRE(read_all(path) == bytes);
  }
}

TEST_CASE("a stream filled where it takes the bytes from is the file", "[stream]") {
  const TemporaryFolder folder;
  const std::size_t size = 13 * mib + 4099;
  const std::string bytes = random_bytes(size);
  std::mt19937 random(5);
  // Single bytes move all that follows, so that some lie across two buffers.
  for (const std::size_t part : {std::size_t{65536}, std::size_t{60001}, 3 * mib}) {
    const std::string path = folder / std::to_string(part);
    StreamWriter file(path, size);
    for (std::size_t at = 0; at < size;) {
      const std::size_t next = std::min(random() % 5 == 0 ? std::size_t{1} : part, size - at);
      if (random() % 7 == 0) {
        file.write(bytes.data() + at, next);
      } else {
        std::byte* const room = file.room(next);
        CHECK(reinterpret_cast<std::uintptr_t>(room) % 64 == at % 64);
        std::memcpy(room, bytes.data() + at, next);
        file.append();
      }
      at += next;
    }
    file.finish();
    REQUIRE(read_all(path) == bytes);
  }
}

TEST_CASE("a stream never takes the place of a file", "[stream]") {
  const TemporaryFolder folder;
  write_all(folder / "a", "old");
  const auto error = error_of([&] { StreamWriter(folder / "a", 10); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::failed);
  CHECK(says(error, "cannot create"));
  CHECK(says(error, "File exists"));
  CHECK(read_all(folder / "a") == "old");
  CHECK(says(error_of([&] { StreamWriter(folder / "none/a", 10); }), "No such file or directory"));
}

TEST_CASE("a stream of another length than announced is refused", "[stream]") {
  const TemporaryFolder folder;
  {
    StreamWriter file(folder / "short", 100);
    file.write("abc", 3);
    CHECK(says(error_of([&] { file.finish(); }), "expected 100 bytes in all, found 3"));
  }
  StreamWriter file(folder / "long", 4);
  file.write("abc", 3);
  CHECK(says(error_of([&] { file.write("de", 2); }), "expected 4 bytes in all, found 2 more"));
  CHECK(says(error_of([&] { file.room(2); }), "expected 4 bytes in all, found 2 more"));
  file.write("d", 1);
  file.finish();
  CHECK(read_all(folder / "long") == "abcd");
}

TEST_CASE("a file system without O_DIRECT, and what interrupts or cuts a write", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(9 * mib + 4567);
  struct Case {
    Call call;
    int reason, first, count;
  };
  const Case fault = GENERATE(Case{Call::fcntl, EINVAL, 1, 1},   // setting it is refused
                              Case{Call::pwrite, EINVAL, 0, 1},  // the first write is refused
                              Case{Call::pwrite, EINVAL, 1, 1},  // a later one is
                              Case{Call::pwrite, EINTR, 0, 1000}, Case{Call::pwrite, EINTR, 2, 1},
                              Case{Call::pwrite, SystemFault::half, 0, 3},
                              Case{Call::pwrite, SystemFault::half, 0, 1000});
  if (fault.call == Call::pwrite && fault.reason == EINTR && fault.count == 1000) {
    // More interruptions than writes: each write is tried until it is done.
    const SystemFault armed(fault.call, fault.reason, 0, 100);
    write_stream(folder / "a", bytes);
    CHECK(armed.num_calls() > 100);
  } else {
    const SystemFault armed(fault.call, fault.reason, fault.first, fault.count);
    write_stream(folder / "a", bytes);
    CHECK(armed.num_calls() > fault.first);
  }
  CHECK(read_all(folder / "a") == bytes);
}

TEST_CASE("an odd length after a cut write leaves O_DIRECT, not the bytes", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(2 * DirectFile::alignment);
  void* memory = std::aligned_alloc(DirectFile::alignment, bytes.size());
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(memory));
  const std::span all(static_cast<const std::byte*>(memory), bytes.size());
  DirectFile file(folder / "a");
  file.write_at(0, all.first(DirectFile::alignment));
  const bool was_direct = file.is_direct();
  file.write_at(DirectFile::alignment, all.subspan(DirectFile::alignment, 1000));
  CHECK_FALSE(file.is_direct());
  file.write_at(DirectFile::alignment + 1000, all.subspan(DirectFile::alignment + 1000));
  file.sync();
  file.close();
  std::free(memory);
  CHECK(read_all(folder / "a") == bytes);
  if (!was_direct) WARN("this file system has no O_DIRECT: only the cache's way was tested");
}

TEST_CASE("every fault of a write reaches the caller, with its reason", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(30 * mib + 99);
  const int reason = GENERATE(ENOSPC, EIO, EDQUOT, EFBIG);
  for (const int first : {0, 1, 3, 7}) {
    const SystemFault armed(Call::pwrite, reason, first, 1);
    StreamWriter file(folder / std::to_string(first), bytes.size());
    const auto error = error_of([&] {
      write_in_parts(file, bytes, 100000);
      file.finish();
    });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::failed);
    CHECK(says(error, "cannot write to " + (folder / std::to_string(first))));
    CHECK(says(error, std::strerror(reason)));
    CHECK(says(error, "free some space") == (reason == ENOSPC || reason == EDQUOT));
    // One fault is enough: the file is not whole, whatever the disk says afterwards.
    CHECK(says(error_of([&] { file.write(bytes.data(), 1); }), std::strerror(reason)));
    CHECK(says(error_of([&] { file.finish(); }), std::strerror(reason)));
  }
}

TEST_CASE("a fault of sync or close is one of finish, and stays", "[stream]") {
  const TemporaryFolder folder;
  const Call call = GENERATE(Call::fsync, Call::close);
  StreamWriter file(folder / "a", 5);
  file.write("abcde", 5);
  {
    const SystemFault armed(call, EIO);
    const auto error = error_of([&] { file.finish(); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::failed);
    CHECK(says(error, call == Call::fsync ? "cannot sync" : "cannot close"));
    CHECK(says(error, "Input/output error"));
  }
  CHECK(error_of([&] { file.finish(); }).has_value());
}

TEST_CASE("a writer may end at any moment", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(20 * mib);
  for (int round = 0; round < 30; ++round) {
    const SystemFault armed(Call::pwrite, ENOSPC, 1, round % 2 == 0 ? 1000 : 0);
    StreamWriter file(folder / std::to_string(round), bytes.size());
    const auto ignored =
        error_of([&] { file.write(bytes.data(), static_cast<std::size_t>(round % 10) * 2 * mib); });
    std::this_thread::sleep_for(std::chrono::microseconds(173 * (round % 7)));
    std::filesystem::remove(folder / std::to_string(round));
  }
}

TEST_CASE("extents of all sizes, in any order, from many files", "[stream]") {
  const TemporaryFolder folder;
  const std::size_t num_files = 20;  // more than stay open
  const std::size_t size = 3 * mib + 123;
  std::vector<std::string> files;
  for (std::size_t i = 0; i < num_files; ++i) {
    files.push_back(random_bytes(i == 0 ? 9 * mib : size, i));
    write_all(folder / std::to_string(i), files.back());
  }
  std::mt19937_64 random(3);
  std::vector<Extent> extents;
  std::vector<std::string> expected;
  const auto add = [&](std::size_t file, std::uint64_t offset, std::size_t n) {
    extents.push_back({folder / std::to_string(file), offset, n});
    expected.push_back(files[file].substr(offset, n));
  };
  add(0, 0, 9 * mib);  // larger than a buffer is at first
  for (int i = 0; i < 3000; ++i) add(1, 1000 * static_cast<std::uint64_t>(i), 1000);  // they touch
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t offset = random() % size, most = i % 4 == 0 ? 700000 : 3000;
    add(random() % (num_files - 1) + 1, offset, std::min(random() % most, size - offset));
  }
  add(0, mib, 8 * mib);
  // Where one ends the next begins, but in another file.
  for (std::size_t i = 1; i < num_files; ++i) add(i, 1000 * i, 1000);
  ExtentReader reader(extents);
  for (const std::string& bytes : expected) REQUIRE(text_of(reader.next()) == bytes);
  CHECK(says(error_of([&] { reader.next(); }), "beyond the last one, 3421 in all"));
}

TEST_CASE("an extent stays until the following one is asked for", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(12 * mib);
  write_all(folder / "a", bytes);
  const std::size_t size = GENERATE(mib / 3, mib, 2 * mib);
  std::vector<Extent> extents;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size)
    extents.push_back({folder / "a", at, size});
  ExtentReader reader(extents);
  for (const Extent& extent : extents) {
    const auto here = reader.next();
    // Time enough for the thread to fill whatever it may fill.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(text_of(here) == bytes.substr(extent.offset, size));
  }
}

TEST_CASE("a fault is the extent's that has it, and the others are read", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(10000);
  write_all(folder / "a", bytes);
  std::filesystem::create_directory(folder / "folder");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  ExtentReader reader({{folder / "a", 0, 4000},
                       {folder / "a", 4000, 6000},
                       {folder / "a", 10000, 1},
                       {folder / "a", 9000, 1001},
                       {folder / "none", 0, 1},
                       {folder / "a", 20000, 10},
                       {folder / "folder", 0, 10},
                       {folder / "pipe", 0, 10},
                       {folder / "a", 9999, 1}});
  CHECK(text_of(reader.next()) == bytes.substr(0, 4000));
  CHECK(text_of(reader.next()) == bytes.substr(4000));
  const auto fault_of_next = [&] {
    const auto error = error_of([&] { reader.next(); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::data);
    return error;
  };
  CHECK(says(fault_of_next(),
             "expected 1 bytes from byte 10000 on, found the file's end after 10000"));
  CHECK(says(fault_of_next(),
             "expected 1001 bytes from byte 9000 on, found the file's end after 10000"));
  CHECK(says(fault_of_next(), "none: No such file or directory"));
  CHECK(says(fault_of_next(), "10 bytes from byte 20000 on, found the file's end after 10000"));
  CHECK(says(fault_of_next(), "folder: expected a regular file"));
  CHECK(says(fault_of_next(), "pipe: expected a regular file"));
  CHECK(text_of(reader.next()) == bytes.substr(9999));
}

TEST_CASE("a disk that cannot read, and one that reads in bits", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(40000);
  write_all(folder / "a", bytes);
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < 40; ++i) extents.push_back({folder / "a", 1000 * i, 1000});
  const auto check_all_but = [&](ExtentReader& reader, std::size_t bad) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (i != bad) {
        REQUIRE(text_of(reader.next()) == bytes.substr(1000 * i, 1000));
        continue;
      }
      const auto error = error_of([&] { reader.next(); });
      REQUIRE(error.has_value());
      CHECK(error->code() == ExitCode::data);
      CHECK(says(error, "cannot read " + (folder / "a") + ": Input/output error"));
    }
  };
  {
    const SystemFault armed(Call::pread, SystemFault::half, 0, 5);
    ExtentReader reader(extents);
    check_all_but(reader, extents.size());
    CHECK(armed.num_calls() > 5);
  }
  {
    // 20000 bytes by one call, then the fault: it is the extent's that begins there.
    const SystemFault armed(Call::pread, SystemFault::half_then_eio, 0, 2);
    ExtentReader reader(extents);
    check_all_but(reader, 20);
  }
  {
    const SystemFault armed(Call::pread, EINTR, 0, 50);
    CHECK(text_of(ExtentReader({{folder / "a", 0, 40000}}).next()) == bytes);
    CHECK(read_whole_file(folder / "a", 40000) == bytes);
  }
  {
    const SystemFault armed(Call::pread, EIO, 0, 1);
    ExtentReader reader(extents);
    check_all_but(reader, 0);
  }
  const SystemFault armed(Call::pread, EIO, 0, 1);
  CHECK(says(error_of([&] { read_whole_file(folder / "a", 40000); }), "Input/output error"));
}

TEST_CASE("a reader may end at any moment", "[stream]") {
  const TemporaryFolder folder;
  write_all(folder / "a", random_bytes(8 * mib));
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < 64; ++i) extents.push_back({folder / "a", i * mib / 8, mib / 8});
  for (int round = 0; round < 60; ++round) {
    ExtentReader reader(extents);
    std::this_thread::sleep_for(std::chrono::microseconds(37 * (round % 10)));
    for (int i = 0; i < round; ++i) reader.next();
  }
  ExtentReader none({});
  CHECK(error_of([&] { none.next(); }).has_value());
}

TEST_CASE("a small file as a whole", "[stream]") {
  const TemporaryFolder folder;
  const std::string bytes = random_bytes(5000);
  write_all(folder / "a", bytes);
  write_all(folder / "empty", "");
  CHECK(read_whole_file(folder / "a", 5000) == bytes);
  CHECK(read_whole_file(folder / "empty", 0).empty());
  drop_from_cache(folder / "a");
  CHECK(read_whole_file(folder / "a", 1 << 20) == bytes);
  drop_from_cache(folder / "none");
  const auto large = error_of([&] { read_whole_file(folder / "a", 4999); });
  REQUIRE(large.has_value());
  CHECK(large->code() == ExitCode::data);
  CHECK(says(large, "expected at most 4999 bytes, found 5000"));
  CHECK(says(error_of([&] { read_whole_file(folder / "none", 10); }), "No such file"));
  CHECK(says(error_of([&] { read_whole_file(folder.path(), 10); }), "expected a regular file"));
}
