// The one place that knows HDF5. The library computes and reads formats here, in memory alone: no
// byte of a checkpoint goes to or comes from the disk through it, since it neither survives a full
// disk nor a kill (README). Calls may come from any thread; they take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace weft::hdf5 {

// Whether this build has HDF5; without it every call below throws Error(usage).
bool is_built_in();
std::string library_version();  // "1.10.8"

struct Attribute {
  std::string name;
  std::variant<std::string, std::vector<std::uint64_t>> value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// A dense row-major tensor that will lie in a file in one stretch.
struct Dataset {
  std::string path;                  // "/value/block.0.up.weight/0"; groups are made on the way
  std::string dtype = "f32";         // IEEE little-endian
  std::vector<std::uint64_t> shape;  // no extent is 0
  std::vector<Attribute> attributes = {};
  friend bool operator==(const Dataset&, const Dataset&) = default;
};

// Where everything of an HDF5 file lies: the datasets' bytes, and between them the format's own.
struct FileLayout {
  struct Metadata {
    std::uint64_t offset;
    std::string bytes;
  };
  std::uint64_t num_bytes = 0;
  // Of each dataset, in the order asked for; multiples of 4096 for those of 64 KiB and more.
  std::vector<std::uint64_t> offsets;
  // All that is no dataset's, by increasing offset: together they cover [0, num_bytes) once.
  std::vector<Metadata> metadata;
};

// A file of tensors without their bytes, in memory.
class Skeleton {
 public:
  // Lays out these datasets (unique paths). Offsets need not be in their order; no two extents
  // overlap.
  Skeleton(const std::vector<Dataset>& datasets, const std::vector<Attribute>& root);
  ~Skeleton();
  Skeleton(Skeleton&&) noexcept;
  Skeleton& operator=(Skeleton&&) noexcept;

  const FileLayout& layout() const;
  // Attributes that the root has, with other values of the same lengths. The layout is then what a
  // new skeleton's would be, and this is some hundred times faster.
  void set_root(const std::vector<Attribute>& root);

 private:
  class File;
  std::unique_ptr<File> file_;
};

// A small file as bytes: columns of numbers, and texts.
struct Table {
  std::string path;
  // Texts are stored as fixed-length strings; an empty column is an empty dataset.
  std::variant<std::vector<std::uint64_t>, std::vector<double>, std::vector<std::string>> values;
};
std::string make_file(const std::vector<Table>& tables, const std::vector<Attribute>& root);

// A dataset that shows elements which lie in other files and stores none itself.
struct VirtualDataset {
  // All of a dataset of another file, at a box of this one.
  struct Part {
    std::string file;  // relative to the folder of the file that this is in, or absolute
    std::string path;  // in it
    std::vector<std::uint64_t> begin, shape;
  };
  std::string path;
  std::string dtype = "f32";
  std::vector<std::uint64_t> shape;  // no extent is 0
  std::vector<Part> parts;           // elements of none, or of a file that is not there: NaN
};
// A file of these (unique paths) for programs that read HDF5. No part is opened.
std::string make_view(const std::vector<VirtualDataset>& datasets,
                      const std::vector<Attribute>& root);

// Reads what make_file() made, or any file, from memory. Bytes must have been verified before: HDF5
// is not safe against altered ones. Throws Error(data) that names `name` and the path where
// something is missing or of another type.
class Reader {
 public:
  Reader(std::string bytes, std::string name);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::vector<std::uint64_t> integers(const std::string& path) const;
  std::vector<double> numbers(const std::string& path) const;
  std::vector<std::string> texts(const std::string& path) const;
  std::string root_text(const std::string& attribute) const;
  std::vector<std::uint64_t> root_integers(const std::string& attribute) const;

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace weft::hdf5
