// The one place from which weft writes files: whole files that appear complete or not at all, and
// logs that grow by lines. Every failure of the system is an Error with its reason, so a full disk
// is never silent; a test of such faults needs to look nowhere else.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weft {

// Owns a file descriptor opened for writing. Errors: Error(failed) "cannot <do> <path>: <reason>".
class OutputFile {
 public:
  enum class Mode {
    create,   // refuse an existing file
    replace,  // empty an existing file
    append    // go on at the end of an existing file
  };
  OutputFile(std::string path, Mode mode);
  ~OutputFile();  // closes; a fault on the way is lost, so call close() where it matters
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  const std::string& path() const { return path_; }
  void write(std::string_view bytes);
  // One write call for text and line end: a reader never sees half a line of a live log.
  void write_line(std::string_view text);
  void sync();  // to the disk
  void close();

 private:
  std::string path_;
  int fd_ = -1;
};

// A file that is written under a temporary name beside its place, and takes its name by commit().
// Without it nothing is left behind. On one node and one file: not for two writers at once.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes) { file_.write(bytes); }
  // Syncs, closes, renames (over an existing file), syncs the folder.
  void commit();

 private:
  std::string path_;
  OutputFile file_;
  bool committed_ = false;
};

void write_file(const std::string& path, std::string_view bytes);

// With its parents; an existing one is fine.
void make_folder(const std::string& path);

}  // namespace weft
