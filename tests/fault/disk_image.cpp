// A copy takes a moment in which the kernel may go on writing. So the device's count of writes is
// looked at before and after: a copy counts only where nothing was written meanwhile.
#include "tests/fault/disk_image.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace weft::test {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Writes that the device has done; none while one is under way.
std::optional<long> writes_of(const std::string& device) {
  std::ifstream file("/sys/block/" + device + "/stat");
  long reads, reads_merged, read_sectors, read_ms, writes, writes_merged, sectors, write_ms, flying;
  file >> reads >> reads_merged >> read_sectors >> read_ms >> writes >> writes_merged >> sectors >>
      write_ms >> flying;
  if (!file || flying != 0) return std::nullopt;
  return writes;
}

// All of the file but its holes.
bool copy_data(int from, int to) {
  struct stat status;
  if (fstat(from, &status) != 0 || ftruncate(to, status.st_size) != 0) return false;
  for (off_t at = 0; at < status.st_size;) {
    at = lseek(from, at, SEEK_DATA);
    if (at < 0) return errno == ENXIO;  // a hole up to the end
    const off_t end = lseek(from, at, SEEK_HOLE);
    off_t out = at;
    while (at < end) {
      const ssize_t done =
          copy_file_range(from, &at, to, &out, static_cast<std::size_t>(end - at), 0);
      if (done <= 0) return false;
    }
  }
  return true;
}

bool copy_file(const std::string& from, const std::string& to) {
  const int source = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int target = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const bool is_done = source >= 0 && target >= 0 && copy_data(source, target);
  if (source >= 0) close(source);
  return target >= 0 && close(target) == 0 && is_done;
}

}  // namespace

DiskImages::DiskImages()
    : DiskImages(variable("WEFT_FAULT_DISK"), variable("WEFT_FAULT_DEVICE"),
                 variable("WEFT_FAULT_COPIES")) {}

DiskImages::DiskImages(std::string disk, std::string device, std::string folder)
    : disk_(std::move(disk)), device_(std::move(device)), folder_(std::move(folder)) {}

// The file says what the device had written at the newest copy, and which one that is.
DiskImages::Turn::Turn(const DiskImages& images)
    : fd_(open((images.folder_ + "/newest").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  while (fd_ >= 0 && flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

DiskImages::Turn::~Turn() {
  if (fd_ >= 0) close(fd_);
}

std::string DiskImages::path_of(int number) const {
  return folder_ + "/" + std::to_string(number) + ".img";
}

std::optional<DiskImage> DiskImages::take(const Turn& turn) const {
  char text[64] = {};
  long newest_writes = -1;
  int newest = 0;
  if (pread(turn.fd_, text, sizeof(text) - 1, 0) > 0)
    std::sscanf(text, "%ld %d", &newest_writes, &newest);
  for (int tries = 0; tries < 10'000; ++tries, usleep(1000)) {
    const std::optional<long> writes = writes_of(device_);
    if (!writes) continue;
    if (*writes == newest_writes) return DiskImage{newest, false, path_of(newest)};
    if (!copy_file(disk_, path_of(newest + 1))) return std::nullopt;
    if (writes_of(device_) != writes) continue;
    const int size = std::snprintf(text, sizeof(text), "%20ld %10d\n", *writes, newest + 1);
    if (pwrite(turn.fd_, text, static_cast<std::size_t>(size), 0) != size) return std::nullopt;
    return DiskImage{newest + 1, true, path_of(newest + 1)};
  }
  return std::nullopt;
}

}  // namespace weft::test
