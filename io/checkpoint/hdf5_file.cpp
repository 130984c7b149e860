// Writing: skeletons of files of tensors, and files of tables.
#include "io/checkpoint/hdf5_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "io/checkpoint/hdf5_handles.hpp"
#include "io/checkpoint/memory_file.hpp"

namespace weft::hdf5 {
namespace {

constexpr hsize_t alignment = 4096;
constexpr hsize_t aligned_from = 64 * 1024;
// A dataset with its group and three attributes takes about 900 bytes.
constexpr hsize_t metadata_bytes_per_object = 1024;

// In the format of HDF5 1.10, in which every piece of metadata has a checksum.
Id tensor_file_access(const Place& place) {
  // SEMI: to close a file of which something is still open is a fault.
  Id access = file_access(H5F_CLOSE_SEMI, place);
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), place);
  return access;
}

// A file whose bytes follow from its content alone (no times).
Id create_file(const MemoryFile& memory, std::size_t num_objects, const Place& place) {
  const Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, place);
  check(H5Pset_obj_track_times(creation, false), place);
  const Id access = tensor_file_access(place);
  check(H5Pset_alignment(access, aligned_from, alignment), place);
  // One extent for all metadata, if it can be: a shard is then written in few pieces.
  check(H5Pset_meta_block_size(access, (num_objects + 4) * metadata_bytes_per_object), place);
  return Id(H5Fcreate(memory.path().c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose, place);
}

Id simple_space(const std::vector<std::uint64_t>& shape, const Place& place) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  return Id(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose,
            place);
}

// Fixed-length UTF-8, filled up with zeros.
Id text_type(std::size_t length, const Place& place) {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose, place);
  check(H5Tset_size(type, std::max<std::size_t>(1, length)), place);
  check(H5Tset_strpad(type, H5T_STR_NULLPAD), place);
  check(H5Tset_cset(type, H5T_CSET_UTF8), place);
  return type;
}

enum class Attributes { are_new, are_there };

void write_attribute(hid_t object, const std::string& name, Attributes which, hid_t type,
                     hid_t memory_type, hid_t space, const void* value, const Place& place) {
  const char* const text = name.c_str();
  Id attribute(which == Attributes::are_new
                   ? H5Acreate2(object, text, type, space, H5P_DEFAULT, H5P_DEFAULT)
                   : H5Aopen(object, text, H5P_DEFAULT),
               H5Aclose, place);
  check(H5Awrite(attribute, memory_type, value), place);
  attribute.close(place);
}

void write_attributes(hid_t object, const std::vector<Attribute>& attributes, Attributes which,
                      const Place& place) {
  for (const Attribute& attribute : attributes) {
    if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      const Id type = text_type(text->size(), place);
      const Id space(H5Screate(H5S_SCALAR), H5Sclose, place);
      // c_str(): an empty text is written as one zero.
      write_attribute(object, attribute.name, which, type, type, space, text->c_str(), place);
    } else {
      const auto& numbers = std::get<std::vector<std::uint64_t>>(attribute.value);
      const Id space = simple_space({numbers.size()}, place);
      const std::uint64_t none = 0;  // the library takes no null pointer, not even to no numbers
      write_attribute(object, attribute.name, which, H5T_STD_U64LE, H5T_NATIVE_UINT64, space,
                      numbers.empty() ? &none : numbers.data(), place);
    }
  }
}

void add_attributes(hid_t object, const std::vector<Attribute>& attributes, const Place& place) {
  write_attributes(object, attributes, Attributes::are_new, place);
}

// Makes the groups on the way to the paths it is shown, each once.
class Groups {
 public:
  Groups(hid_t file, const Place& place)
      : file_(file), place_(place), creation_(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, place) {
    check(H5Pset_obj_track_times(creation_, false), place);
  }

  void make_for(const std::string& path) {
    for (std::size_t end = path.find('/', 1); end != std::string::npos;
         end = path.find('/', end + 1)) {
      const std::string group = path.substr(0, end);
      if (!made_.insert(group).second) continue;
      Id(H5Gcreate2(file_, group.c_str(), H5P_DEFAULT, creation_, H5P_DEFAULT), H5Gclose, place_)
          .close(place_);
    }
  }

 private:
  hid_t file_;
  const Place& place_;
  Id creation_;
  std::set<std::string> made_;
};

// Contiguous, with its place in the file from the start, and never filled.
Id dataset_creation(const Place& place) {
  Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, place);
  check(H5Pset_obj_track_times(creation, false), place);
  check(H5Pset_layout(creation, H5D_CONTIGUOUS), place);
  check(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), place);
  check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), place);
  return creation;
}

hid_t type_of(const std::string& dtype) {
  require(dtype == "f32", ExitCode::failed,
          "an HDF5 file holds tensors of f32; one of '" + dtype + "' needs a type in " + __FILE__);
  return H5T_IEEE_F32LE;
}

struct ByteRange {
  std::uint64_t begin;
  std::uint64_t end;
};

// Adds the dataset; where its bytes will lie.
ByteRange add_dataset(hid_t file, const Dataset& dataset, hid_t creation, const Place& place) {
  const hid_t type = type_of(dataset.dtype);
  const Id space = simple_space(dataset.shape, place);
  Id id(H5Dcreate2(file, dataset.path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
        H5Dclose, place);
  add_attributes(id, dataset.attributes, place);
  const haddr_t offset = H5Dget_offset(id);
  check(offset == HADDR_UNDEF ? -1 : 0, place);
  const hsize_t num_bytes = H5Dget_storage_size(id);
  id.close(place);
  return {offset, offset + num_bytes};
}

// What `taken` leaves of [0, num_bytes).
std::vector<FileLayout::Metadata> rest_of(const MemoryFile& memory, std::uint64_t num_bytes,
                                          std::vector<ByteRange> taken) {
  std::sort(taken.begin(), taken.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  taken.push_back({num_bytes, num_bytes});
  std::vector<FileLayout::Metadata> rest;
  std::uint64_t position = 0;
  for (const ByteRange& range : taken) {
    require(range.begin >= position, ExitCode::failed,
            fmt::format("HDF5 {} laid two datasets over one another at byte {}; use another "
                        "version of the library",
                        library_version(), range.begin));
    if (range.begin > position)
      rest.push_back({position, memory.read(position, range.begin - position)});
    position = range.end;
  }
  return rest;
}

void add_table(hid_t file, const Table& table, hid_t creation) {
  const Place place{ExitCode::failed, "cannot write " + table.path};
  const auto add = [&](hid_t type, hid_t memory_type, std::size_t size, const void* values) {
    const Id space = simple_space({size}, place);
    Id id(H5Dcreate2(file, table.path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
          H5Dclose, place);
    if (size > 0) check(H5Dwrite(id, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), place);
    id.close(place);
  };
  if (const auto* integers = std::get_if<std::vector<std::uint64_t>>(&table.values)) {
    add(H5T_STD_U64LE, H5T_NATIVE_UINT64, integers->size(), integers->data());
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&table.values)) {
    add(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, numbers->size(), numbers->data());
  } else {
    const auto& texts = std::get<std::vector<std::string>>(table.values);
    std::size_t length = 1;
    for (const std::string& text : texts) length = std::max(length, text.size());
    std::string rows(length * texts.size(), '\0');
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(&rows[i * length], length);
    const Id type = text_type(length, place);
    add(type, type, texts.size(), rows.data());
  }
}

// Of a source's name: %b would be a number there.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char letter : name) text += letter == '%' ? std::string("%%") : std::string(1, letter);
  return text;
}

void add_view(hid_t file, const VirtualDataset& dataset) {
  const Place place{ExitCode::failed, "cannot make a view of " + dataset.path};
  const hid_t type = type_of(dataset.dtype);
  const Id space = simple_space(dataset.shape, place);
  const Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, place);
  check(H5Pset_obj_track_times(creation, false), place);
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  check(H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &nothing), place);
  for (const VirtualDataset::Part& part : dataset.parts) {
    const std::vector<hsize_t> begin(part.begin.begin(), part.begin.end());
    const std::vector<hsize_t> shape(part.shape.begin(), part.shape.end());
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, shape.data(), nullptr),
          place);
    const Id source = simple_space(part.shape, place);
    check(H5Pset_virtual(creation, space, escaped(part.file).c_str(), escaped(part.path).c_str(),
                         source),
          place);
  }
  check(H5Sselect_all(space), place);
  Id(H5Dcreate2(file, dataset.path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
     H5Dclose, place)
      .close(place);
}

}  // namespace

bool is_built_in() { return true; }

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

namespace {

// They then lie side by side: who wants many of them finds them by one read.
std::vector<std::size_t> small_ones_first(const std::vector<Dataset>& datasets) {
  std::vector<std::size_t> order(datasets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
    std::uint64_t bytes = sizeof(float);
    for (const std::uint64_t extent : datasets[i].shape) bytes *= extent;
    return bytes < aligned_from;
  });
  return order;
}

}  // namespace

class Skeleton::File {
 public:
  File(const std::vector<Dataset>& datasets, const std::vector<Attribute>& root) {
    const Turn turn;
    start_library();
    const Place place{ExitCode::failed, "cannot lay out a file of tensors"};
    Id file = create_file(memory_, datasets.size(), place);
    add_attributes(file, root, place);
    Groups groups(file, place);
    const Id creation = dataset_creation(place);
    taken_.resize(datasets.size());
    layout_.offsets.resize(datasets.size());
    for (const std::size_t i : small_ones_first(datasets)) {
      const Dataset& dataset = datasets[i];
      groups.make_for(dataset.path);
      const Place of_dataset{ExitCode::failed, "cannot lay out " + dataset.path};
      taken_[i] = add_dataset(file, dataset, creation, of_dataset);
      layout_.offsets[i] = taken_[i].begin;
    }
    file.close(place);
    read_metadata();
  }

  const FileLayout& layout() const { return layout_; }

  void set_root(const std::vector<Attribute>& root) {
    const Turn turn;
    start_library();
    const Place place{ExitCode::failed, "cannot change a file of tensors"};
    {
      const Id access = tensor_file_access(place);
      Id file(H5Fopen(memory_.path().c_str(), H5F_ACC_RDWR, access), H5Fclose, place);
      write_attributes(file, root, Attributes::are_there, place);
      file.close(place);
    }
    read_metadata();
  }

 private:
  void read_metadata() {
    layout_.num_bytes = memory_.num_bytes();
    layout_.metadata = rest_of(memory_, layout_.num_bytes, taken_);
  }

  MemoryFile memory_;
  std::vector<ByteRange> taken_;  // by datasets
  FileLayout layout_;
};

Skeleton::Skeleton(const std::vector<Dataset>& datasets, const std::vector<Attribute>& root)
    : file_(std::make_unique<File>(datasets, root)) {}
Skeleton::~Skeleton() = default;
Skeleton::Skeleton(Skeleton&&) noexcept = default;
Skeleton& Skeleton::operator=(Skeleton&&) noexcept = default;

const FileLayout& Skeleton::layout() const { return file_->layout(); }

void Skeleton::set_root(const std::vector<Attribute>& root) { file_->set_root(root); }

std::string make_file(const std::vector<Table>& tables, const std::vector<Attribute>& root) {
  const Turn turn;
  start_library();
  const MemoryFile memory;
  const Place place{ExitCode::failed, "cannot make a file of tables"};
  Id file = create_file(memory, tables.size(), place);
  add_attributes(file, root, place);
  {
    Groups groups(file, place);
    const Id creation = dataset_creation(place);
    for (const Table& table : tables) {
      groups.make_for(table.path);
      add_table(file, table, creation);
    }
  }
  file.close(place);
  return memory.read(0, memory.num_bytes());
}

std::string make_view(const std::vector<VirtualDataset>& datasets,
                      const std::vector<Attribute>& root) {
  const Turn turn;
  start_library();
  const MemoryFile memory;
  const Place place{ExitCode::failed, "cannot make a file of views"};
  Id file = create_file(memory, datasets.size(), place);
  add_attributes(file, root, place);
  {
    Groups groups(file, place);
    for (const VirtualDataset& dataset : datasets) {
      groups.make_for(dataset.path);
      add_view(file, dataset);
    }
  }
  file.close(place);
  return memory.read(0, memory.num_bytes());
}

}  // namespace weft::hdf5
