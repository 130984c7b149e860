// Names, locks and renames; the orders of operations are in the header.
#include "io/checkpoint/checkpoint_folder.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/host_name.hpp"
#include "io/file.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view staging_prefix = ".staging-";
constexpr std::string_view trash_prefix = ".trash-";

std::string path_in(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::string trash_path(const std::string& folder, index_t step, const std::string& id) {
  return path_in(folder, fmt::format("{}{}-{}", trash_prefix, step, id));
}

std::optional<index_t> step_of(const std::string& name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const char* const begin = name.data() + step_prefix.size();
  index_t step = 0;
  const auto [end, status] = std::from_chars(begin, name.data() + name.size(), step);
  // Exactly the name that we would give: no sign, no zero too many, nothing after it.
  if (status != std::errc() || step < 0 || name != step_folder_name(step)) return std::nullopt;
  return step;
}

// Empty where there is no folder; another fault is an Error with `code`.
std::vector<std::string> names_in(const std::string& folder, ExitCode code) {
  std::vector<std::string> names;
  std::error_code status;
  for (fs::directory_iterator at(folder, status), end; !status && at != end; at.increment(status))
    names.push_back(at->path().filename().string());
  if (status == std::errc::no_such_file_or_directory) return {};
  require(
      !status, code,
      fmt::format("cannot list {}: {}; expected a folder of checkpoints that this user may read",
                  folder, std::strerror(status.value())));
  return names;
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

std::string step_folder_name(index_t step) { return fmt::format("{}{:09}", step_prefix, step); }

std::vector<CheckpointPlace> list_checkpoints(const std::string& folder) {
  std::vector<CheckpointPlace> places;
  for (const std::string& name : names_in(folder, ExitCode::data)) {
    if (const auto step = step_of(name)) places.push_back({*step, path_in(folder, name)});
  }
  std::sort(places.begin(), places.end(),
            [](const CheckpointPlace& a, const CheckpointPlace& b) { return a.step > b.step; });
  return places;
}

std::string new_checkpoint_id() {
  // Not from the run's seed: two saves of the same step must differ.
  std::array<std::uint64_t, 2> random{};
  ssize_t got = 0;
  do {
    got = ::getrandom(random.data(), sizeof(random), 0);
  } while (got < 0 && errno == EINTR);
  const int reason = errno;
  require(got == ssize_t{sizeof(random)}, ExitCode::failed,
          fmt::format("cannot get random bytes: {}", std::strerror(reason)));
  return fmt::format("{:016x}{:016x}", random[0], random[1]);
}

namespace {

std::string holder_text() {
  return fmt::format("process {} on {} since {:%Y-%m-%dT%H:%M:%SZ}", ::getpid(), host_name(),
                     fmt::gmtime(std::time(nullptr)));
}

// What the holder has written, made fit for a message.
std::string read_holder(int fd) {
  std::array<char, 400> bytes{};
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
  std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  text.resize(std::min(text.find('\n'), text.size()));
  for (char& c : text) c = c < ' ' || c > '~' ? '?' : c;
  return text.empty() ? "a process that has not yet written its name" : text;
}

int open_lease(const std::string& path) {
  // Never removed, by no one: of two processes that lock a file of this name, one would otherwise
  // hold a file that has no name any more.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const int reason = errno;
  require(fd >= 0, ExitCode::failed,
          fmt::format("cannot open {}: {}; expected a folder that this user may write to", path,
                      std::strerror(reason)));
  return fd;
}

// 0: locked; EWOULDBLOCK: by another one; else why there is no lock.
int try_lock(int fd) {
  int status = 0;
  do {
    status = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (status != 0 && errno == EINTR);
  return status == 0 ? 0 : errno;
}

}  // namespace

Lease::Lease(const std::string& folder) {
  make_folder(folder);
  const std::string path = path_in(folder, ".lease");
  fd_ = open_lease(path);
  const int reason = try_lock(fd_);
  if (reason == EWOULDBLOCK) {
    const std::string holder = read_holder(fd_);
    ::close(std::exchange(fd_, -1));
    throw Error(ExitCode::usage,
                fmt::format("{} is in use by {}: expected one process at a time to write "
                            "checkpoints there; nothing was changed; wait for its end or name "
                            "another folder",
                            folder, holder));
  }
  is_locked_ = reason == 0;
  if (!is_locked_) {
    warning_ = fmt::format(
        "{} is not protected against a second run that writes to it: its file system has no locks "
        "({})",
        folder, std::strerror(reason));
  }
  write_name(path);
}

// For the message to others alone: a full disk must not end a run whose lock stands.
void Lease::write_name(const std::string& path) {
  try {
    OutputFile file(path, OutputFile::Mode::replace);
    file.write_line(holder_text());
    file.close();
  } catch (const Error& error) {
    if (!warning_.empty()) return;
    warning_ =
        fmt::format("{}; a second run will be refused without this one's name", error.what());
  }
}

Lease::~Lease() {
  if (fd_ >= 0) ::close(fd_);
}

void sweep(const std::string& folder) {
  for (const std::string& name : names_in(folder, ExitCode::failed)) {
    if (name.starts_with(staging_prefix) || name.starts_with(trash_prefix))
      remove_tree(path_in(folder, name));
  }
}

StagingFolder::StagingFolder(std::string folder, index_t step, const std::string& id,
                             std::string name)
    : folder_(std::move(folder)),
      path_(path_of(folder_, step, id)),
      step_(step),
      name_(name.empty() ? step_folder_name(step) : std::move(name)) {
  make_new_folder(path_);
}

StagingFolder::~StagingFolder() {
  if (is_committed_) return;
  try {
    remove_tree(path_);
  } catch (const Error&) {
    // What is left has no name that counts; the next sweep() says why it cannot be removed.
  }
}

std::string StagingFolder::path_of(const std::string& folder, index_t step, const std::string& id) {
  return path_in(folder, fmt::format("{}{}-{}", staging_prefix, step, id));
}

void StagingFolder::commit() {
  sync_folder(path_);
  const std::string place = path_in(folder_, name_);
  require(!exists(place), ExitCode::failed,
          fmt::format("{} is already there: expected nothing where the checkpoint of step {} is to "
                      "be; it was not touched",
                      place, step_));
  rename_path(path_, place);
  is_committed_ = true;
}

void StagingFolder::confirm() { sync_folder(folder_); }

void remove_checkpoint(const std::string& folder, const CheckpointPlace& place) {
  const std::string trash = trash_path(folder, place.step, new_checkpoint_id());
  rename_path(place.path, trash);
  sync_folder(folder);
  remove_tree(trash);
}

std::string set_aside(const std::string& folder, const CheckpointPlace& place) {
  const std::string aside = path_in(
      folder, fmt::format("aside-{}-{}", step_folder_name(place.step), new_checkpoint_id()));
  rename_path(place.path, aside);
  sync_folder(folder);
  return aside;
}

std::uint64_t free_bytes(const std::string& folder) {
  struct statvfs status {};
  const int reason = ::statvfs(folder.c_str(), &status) == 0 ? 0 : errno;
  require(reason == 0, ExitCode::failed,
          fmt::format("cannot find the free space of {}: {}", folder, std::strerror(reason)));
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace weft
