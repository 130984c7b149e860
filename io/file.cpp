// POSIX writes with every status checked; see the header.
#include "io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/drill_point.hpp"
#include "core/error.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const char* what, const std::string& path, int reason) {
  std::string advice;
  if (reason == ENOSPC || reason == EDQUOT) advice = "; free some space or name another folder";
  throw Error(ExitCode::failed,
              fmt::format("cannot {} {}: {}{}", what, path, std::strerror(reason), advice));
}

int open_for_writing(const std::string& path, OutputFile::Mode mode) {
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
  if (mode == OutputFile::Mode::create) flags |= O_EXCL;
  if (mode == OutputFile::Mode::replace) flags |= O_TRUNC;
  if (mode == OutputFile::Mode::append) flags |= O_APPEND;
  const int fd = ::open(path.c_str(), flags, 0666);
  if (fd < 0) fail("create", path, errno);
  return fd;
}

// The temporary name is our own, so that two programs never write into one file.
std::string temporary_name(const std::string& path) {
  return fmt::format("{}.tmp-{}", path, ::getpid());
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// 0, or the system's reason.
int try_sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int reason = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some network file systems cannot sync a folder; they say so with EINVAL.
  return reason == EINVAL ? 0 : reason;
}

bool is_aligned(std::uint64_t value) { return value % DirectFile::alignment == 0; }

}  // namespace

OutputFile::OutputFile(std::string path, Mode mode)
    : path_(std::move(path)), fd_(open_for_writing(path_, mode)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write to", path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::write_line(std::string_view text) {
  std::string line(text);
  line += '\n';
  write(line);
}

void OutputFile::sync() {
  // Pipes and devices have no disk behind them.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail("sync", path_, errno);
}

void OutputFile::close() {
  // Network file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) fail("close", path_, errno);
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), file_(temporary_name(path_), OutputFile::Mode::replace) {}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(file_.path().c_str());
}

void AtomicFile::commit() {
  file_.sync();
  file_.close();
  if (std::rename(file_.path().c_str(), path_.c_str()) != 0) fail("rename a file to", path_, errno);
  committed_ = true;
  // A rename is on the disk only when its folder is.
  sync_folder(parent_of(path_));
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

DirectFile::DirectFile(std::string path)
    : path_(std::move(path)), fd_(open_for_writing(path_, OutputFile::Mode::create)) {
  // Asked for afterwards: open() with O_DIRECT makes the file and then refuses it where the file
  // system cannot, and a new file that is in the way is not told from another one's.
  const int flags = ::fcntl(fd_, F_GETFL);
  is_direct_ = flags >= 0 && ::fcntl(fd_, F_SETFL, flags | O_DIRECT) == 0;
}

DirectFile::~DirectFile() {
  if (fd_ >= 0) ::close(fd_);
}

void DirectFile::leave_direct() {
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0)
    fail("change the way of writing to", path_, errno);
  is_direct_ = false;
}

void DirectFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  drill::reach("save.shard");
  while (!bytes.empty()) {
    std::size_t size = bytes.size();
    if (is_direct_) {
      size -= size % alignment;  // the rest follows through the cache
      const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
      if (size == 0 || !is_aligned(offset) || !is_aligned(address)) {
        leave_direct();
        continue;
      }
    }
    const ssize_t written = ::pwrite(fd_, bytes.data(), size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && is_direct_) {
      leave_direct();
      continue;
    }
    if (written < 0) fail("write to", path_, errno);
    // Nothing written without a reason: the system owes an error, and a loop would never end.
    if (written == 0) fail("write to", path_, EIO);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void DirectFile::sync() {
  // Never a second time: after a fault the system may have dropped what it could not write, and
  // would then report success.
  if (::fsync(fd_) != 0) fail("sync", path_, errno);
}

void DirectFile::close() {
  // Network file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) fail("close", path_, errno);
}

void make_folder(const std::string& path) {
  std::vector<std::string> parents_of_new;
  std::error_code status;
  for (fs::path at = path; !at.empty() && !fs::exists(at, status); at = at.parent_path())
    parents_of_new.push_back(parent_of(at.string()));
  fs::create_directories(path, status);
  if (status) fail("create the folder", path, status.value());
  for (const std::string& parent : parents_of_new) {
    const int reason = try_sync_folder(parent);
    // One may be allowed to write to a folder and not to read it, which syncing needs.
    if (reason != 0 && reason != EACCES) fail("sync", parent, reason);
  }
}

void make_new_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) fail("create the folder", path, errno);
}

void sync_folder(const std::string& folder) {
  const int reason = try_sync_folder(folder);
  if (reason != 0) fail("sync", folder, reason);
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return;
  const int reason = errno;
  fail(fmt::format("rename {} to", from).c_str(), to, reason);
}

bool rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  int reason = errno;
  // Network file systems may have no such rename, but have links.
  if (reason == EINVAL || reason == ENOSYS) {
    if (::link(from.c_str(), to.c_str()) == 0) {
      ::unlink(from.c_str());  // which cannot undo it: at worst there is a name too many
      return true;
    }
    reason = errno;
  }
  if (reason == EEXIST) return false;
  fail(fmt::format("rename {} to", from).c_str(), to, reason);
}

void confirm_name(const std::string& path) {
  const int reason = try_sync_folder(parent_of(path));
  require(
      reason == 0, ExitCode::failed,
      fmt::format("{} is in place, but the disk did not confirm that, so that a power cut could "
                  "take it: cannot sync {}: {}",
                  path, parent_of(path), std::strerror(reason)));
}

void remove_tree(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    fail("look at", path, errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("remove", path, errno);
    return;
  }
  // Names first: what a folder lists while it changes is the file system's choice.
  std::vector<std::string> inner;
  std::error_code reason;
  for (fs::directory_iterator at(path, reason), end; !reason && at != end; at.increment(reason))
    inner.push_back(at->path().string());
  if (reason) fail("list", path, reason.value());
  for (const std::string& entry : inner) remove_tree(entry);
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) fail("remove the folder", path, errno);
}

}  // namespace weft
