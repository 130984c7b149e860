// POSIX writes with every status checked; see the header.
#include "io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

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

// A rename is on the disk only when its folder is.
void sync_folder(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("open", folder, errno);
  const int reason = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some network file systems cannot sync a folder; they say so with EINVAL.
  if (reason != 0 && reason != EINVAL) fail("sync", folder, reason);
}

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
  sync_folder(path_);
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code status;
  fs::create_directories(path, status);
  if (status) fail("create the folder", path, status.value());
}

}  // namespace weft
