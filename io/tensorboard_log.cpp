#include "io/tensorboard_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <type_traits>

#include "core/error.hpp"
#include "core/host_name.hpp"
#include "io/crc32c.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view name_start = "events.out.tfevents.";

template <class T>
void append_little_endian(std::string& bytes, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
}

// A message of protocol buffers: each field is its number and wire type, then its value.
class Message {
 public:
  void add_integer(std::uint32_t field, std::uint64_t value) {
    add_varint(field << 3 | 0);
    add_varint(value);
  }
  void add_double(std::uint32_t field, double value) {
    add_varint(field << 3 | 1);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
  }
  void add_bytes(std::uint32_t field, std::string_view value) {  // a string, or another message
    add_varint(field << 3 | 2);
    add_varint(value.size());
    bytes_ += value;
  }
  void add_float(std::uint32_t field, float value) {
    add_varint(field << 3 | 5);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message event_at(double wall_s, index_t step) {
  Message event;
  event.add_double(1, wall_s);
  if (step != 0) event.add_integer(2, static_cast<std::uint64_t>(step));
  return event;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The second in the name of an event file; none of another file.
std::optional<std::int64_t> second_of(std::string_view name) {
  if (!name.starts_with(name_start)) return std::nullopt;
  name.remove_prefix(name_start.size());
  std::int64_t second = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), second);
  if (read.ec != std::errc{}) return std::nullopt;
  return second;
}

// Readers take files in the order of their names, and clocks of hosts differ: later than all
// others.
std::int64_t next_second(const std::string& folder) {
  auto second = static_cast<std::int64_t>(wall_seconds());
  std::error_code status;
  const fs::directory_iterator entries(folder, status);
  require(!status, ExitCode::failed,
          fmt::format("cannot list the folder {}: {}", folder, status.message()));
  for (const fs::directory_entry& entry : entries) {
    if (const auto other = second_of(entry.path().filename().string()))
      second = std::max(second, *other + 1);
  }
  return second;
}

OutputFile open_next(const std::string& folder) {
  make_folder(folder);
  const std::string name =
      fmt::format("{}{:010}.{}.{}.0", name_start, next_second(folder), host_name(), ::getpid());
  return OutputFile((fs::path(folder) / name).string(), OutputFile::Mode::create);
}

}  // namespace

std::string tf_record(std::string_view bytes) {
  std::string record;
  append_little_endian(record, static_cast<std::uint64_t>(bytes.size()));
  append_little_endian(record, masked_crc32c(record));
  record += bytes;
  append_little_endian(record, masked_crc32c(bytes));
  return record;
}

std::string scalars_event(double wall_s, index_t step, const std::vector<TaggedValue>& values) {
  Message summary;
  for (const TaggedValue& one : values) {
    Message value;
    value.add_bytes(1, one.tag);
    value.add_float(2, static_cast<float>(one.value));
    summary.add_bytes(1, value.bytes());
  }
  Message event = event_at(wall_s, step);
  event.add_bytes(5, summary.bytes());
  return event.bytes();
}

TensorboardLog::TensorboardLog(const std::string& folder, index_t num_done)
    : file_(open_next(folder)) {
  const double wall_s = wall_seconds();
  Message version = event_at(wall_s, 0);
  version.add_bytes(3, "brain.Event:2");
  Message session;
  session.add_integer(1, 1);
  Message start = event_at(wall_s, num_done + 1);
  start.add_bytes(7, session.bytes());
  file_.write(tf_record(version.bytes()) + tf_record(start.bytes()));
  file_.sync();
  sync_folder(folder);
}

bool TensorboardLog::is_in(const std::string& folder) {
  std::error_code ignored;
  const fs::directory_iterator entries(folder, ignored);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return second_of(entry.path().filename().string()).has_value();
  });
}

void TensorboardLog::add(index_t step, const std::vector<TaggedValue>& values) {
  if (!values.empty()) file_.write(tf_record(scalars_event(wall_seconds(), step, values)));
}

}  // namespace weft
