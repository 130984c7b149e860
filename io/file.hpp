// The one place from which weft writes files: whole files that appear complete or not at all, and
// logs that grow by lines. Every failure of the system is an Error with its reason, so a full disk
// is never silent; a test of such faults needs to look nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
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

// A new file that is written in large pieces at places of its own. Goes past the page cache
// (O_DIRECT) as long as the file system and the pieces allow it: a piece whose address, size or
// place is no multiple of `alignment`, or one that the system refuses for that, goes through the
// cache, and so does all that follows it.
class DirectFile {
 public:
  static constexpr std::size_t alignment = 4096;

  explicit DirectFile(std::string path);  // which must not exist
  ~DirectFile();  // closes; a fault on the way is lost, so call close() where it matters
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  const std::string& path() const { return path_; }
  bool is_direct() const { return is_direct_; }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void sync();  // to the disk
  void close();

 private:
  void leave_direct();

  std::string path_;
  int fd_ = -1;
  bool is_direct_ = false;
};

// With its parents; an existing one is fine. Those that are new are on the disk at the return.
void make_folder(const std::string& path);
// One that must not exist, in a parent that does.
void make_new_folder(const std::string& path);
// Names that were made, changed or removed in `folder` are on the disk at the return.
void sync_folder(const std::string& folder);
// A folder or a file; a folder with something in it is never overwritten.
void rename_path(const std::string& from, const std::string& to);
// A file, as one step; false, and nothing done, where something has the name `to`.
bool rename_to_new(const std::string& from, const std::string& to);
// After a rename to `path`: its name is on the disk at the return. Otherwise the Error says that it
// is in place all the same.
void confirm_name(const std::string& path);
// A file, or a folder with all that is in it, file by file; links are not followed. One that is not
// there is fine.
void remove_tree(const std::string& path);

}  // namespace weft
