// Event files for TensorBoard: published check values of the checksum, a record put together by
// hand, and another reader (read_events.py) on whole files, on files cut off anywhere, and on a
// run's files with takings back.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "io/crc32c.hpp"
#include "io/tensorboard_log.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> lines_by_python(const std::string& arguments) {
  FILE* const pipe =
      ::popen(("python3 '" WEFT_EVENTS_READER "' " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  INFO(text);
  REQUIRE(::pclose(pipe) == 0);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> values_in(const std::string& folder) {
  return lines_by_python("'" + folder + "'");
}

std::string name_of(const TensorboardLog& log) { return fs::path(log.path()).filename().string(); }

}  // namespace

TEST_CASE("CRC32C has its published values", "[tensorboard]") {
  CHECK(crc32c("123456789") == 0xE3069283U);  // the check value of the catalogues
  CHECK(crc32c("") == 0U);
  // RFC 3720, appendix B.4, its bytes as little-endian words.
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43U);
  std::string up(32, '\0');
  std::iota(up.begin(), up.end(), '\0');
  CHECK(crc32c(up) == 0x46DD794EU);
  CHECK(crc32c(std::string(up.rbegin(), up.rend())) == 0x113FDB5CU);
}

TEST_CASE("an event is the bytes of the wire format", "[tensorboard]") {
  // By hand: field << 3 | type, little-endian; 1.5 as a double and as a float; step 300 as a
  // varint.
  const std::string value(
      "\x0a\x03"
      "a/b"
      "\x15\x00\x00\xc0\x3f",
      10);
  const std::string event = std::string(
                                "\x09\x00\x00\x00\x00\x00\x00\xf8\x3f"
                                "\x10\xac\x02"
                                "\x2a\x0c\x0a\x0a",
                                16) +
                            value;
  CHECK(scalars_event(1.5, 300, {{"a/b", 1.5}}) == event);
  const std::string record = tf_record("abc");
  CHECK(record.size() == 8 + 4 + 3 + 4);
  CHECK(record.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 3) == "abc");
}

TEST_CASE("another reader finds every value to the bit", "[tensorboard]") {
  const TemporaryFolder folder;
  const std::string tags = folder / "run/tensorboard";
  CHECK_FALSE(TensorboardLog::is_in(tags));
  TensorboardLog log(tags, 0);
  CHECK(TensorboardLog::is_in(tags));
  log.add(1, {{"train/loss", 0.1}, {"with \xc3\xa4, a tab's friend", -0.0}});
  log.add(2, {});
  log.add(300, {{"train/loss", std::numeric_limits<double>::quiet_NaN()}, {"big", 1e300}});
  log.add(index_t{1} << 40, {{"train/loss", 16777217.0}});
  log.sync();
  // The nearest floats, by hand: 0.1f = 0x3dcccccd; 2^24 + 1 has none and goes to the even one.
  CHECK(values_in(tags) == std::vector<std::string>{"train/loss\t1\t3dcccccd",
                                                    "with \xc3\xa4, a tab's friend\t1\t80000000",
                                                    "train/loss\t300\t7fc00000",
                                                    "big\t300\t7f800000",
                                                    "train/loss\t1099511627776\t4b800000"});
}

TEST_CASE("a file that a kill cut off anywhere has all its whole records", "[tensorboard]") {
  const TemporaryFolder folder;
  TensorboardLog log(folder / "t", 0);
  std::vector<std::uintmax_t> ends{0};
  for (index_t step = 1; step <= 4; ++step) {
    log.add(step, {{"train/loss", 1.0 / static_cast<double>(step)}});
    ends.push_back(fs::file_size(log.path()));
  }
  const std::vector<std::string> counts = lines_by_python("--cuts '" + log.path() + "'");
  REQUIRE(counts.size() == ends.back() + 1);
  for (std::size_t size = 0; size < counts.size(); ++size) {
    if (size < ends[1]) continue;  // in the file's head: version and START
    const auto steps = std::upper_bound(ends.begin(), ends.end(), size) - ends.begin() - 1;
    INFO(size);
    CHECK(counts[size] == std::to_string(2 + steps));
  }
  CHECK(counts.front() == "0");
}

TEST_CASE("what goes on takes back the steps that are made again", "[tensorboard]") {
  const TemporaryFolder folder;
  const std::string run = folder / "t";
  std::vector<std::string> names;
  const auto write = [&](index_t done, index_t last, double value) {
    TensorboardLog log(run, done);
    names.push_back(name_of(log));
    for (index_t step = done + 1; step <= last; ++step) log.add(step, {{"loss", value}});
    return log.path();
  };
  const std::string torn = write(0, 6, 1.0);
  fs::resize_file(torn, fs::file_size(torn) - 3);  // step 6 is cut off
  write(4, 5, 2.0);
  { TensorboardLog killed(run, 4); }  // before its first step
  write(4, 7, 3.0);
  // At once, thus in the same second; readers sort names.
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(values_in(run) == std::vector<std::string>{"loss\t1\t3f800000", "loss\t2\t3f800000",
                                                   "loss\t3\t3f800000", "loss\t4\t3f800000",
                                                   "loss\t5\t40400000", "loss\t6\t40400000",
                                                   "loss\t7\t40400000"});
  // Another host whose clock is ahead.
  std::ofstream(run + "/events.out.tfevents.9000000000.far.1.0");
  CHECK(write(7, 8, 4.0).find("/events.out.tfevents.9000000001.") != std::string::npos);
  CHECK(values_in(run).size() == 8);
}

TEST_CASE("a folder that cannot be one is refused", "[tensorboard]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  const auto error = error_of([&] { TensorboardLog(folder / "file", 0); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::failed);
  CHECK(std::string(error->what()).find("cannot create the folder") != std::string::npos);
  const TemporaryFolder other;
  const SystemFault full(Call::fsync, 28);  // ENOSPC
  CHECK(error_of([&] { TensorboardLog(other / "t", 0); }).has_value());
}
