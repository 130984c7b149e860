#include "io/checkpoint/hdf5_file.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "core/error.hpp"
#include "io/checkpoint/memory_file.hpp"

namespace weft::hdf5 {
namespace {

// What to say, and with which exit code, where a call fails.
struct Place {
  ExitCode code;
  std::string text;
};

herr_t keep_innermost(unsigned, const H5E_error2_t* entry, void* text) {
  if (entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

[[noreturn]] void fail(const Place& place) {
  // The last entry of this direction is the call nearest to the fault.
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Error(place.code, fmt::format("{}: HDF5 {} says '{}'", place.text, library_version(),
                                      reason.empty() ? "nothing more" : reason));
}

// Every status of the library goes through here.
template <class Status>
Status check(Status status, const Place& place) {
  if (status < 0) [[unlikely]]
    fail(place);
  return status;
}

// Owns one of the library's handles.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id(hid_t id, Close closer, const Place& place) : id_(check(id, place)), close_(closer) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  // Some faults are told only when a handle is closed.
  void close(const Place& place) { check(close_(std::exchange(id_, -1)), place); }

 private:
  hid_t id_;
  Close close_;
};

// The library's own handler at exit crashes after failed writes, and its printed stacks are no
// message for a user.
void start_library() {
  static const bool started = [] {
    const Place place{ExitCode::failed, "cannot start HDF5"};
    check(H5dont_atexit(), place);
    check(H5open(), place);
    return true;
  }();
  assert(started);
  (void)started;
  // In every call: a library that knows threads keeps this for each of them.
  check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), {ExitCode::failed, "cannot start HDF5"});
}

// For files in memory: the other drivers look for the file that a path in /proc links to.
Id file_access(H5F_close_degree_t close_degree, const Place& place) {
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, place);
  check(H5Pset_fapl_stdio(access), place);
  check(H5Pset_fclose_degree(access, close_degree), place);
  return access;
}

// --- Writing

constexpr hsize_t alignment = 4096;
constexpr hsize_t aligned_from = 64 * 1024;
// A dataset with its group and three attributes takes about 900 bytes.
constexpr hsize_t metadata_bytes_per_object = 1024;

// A file whose bytes follow from its content alone (no times), in the format of HDF5 1.10, in which
// every piece of metadata has a checksum.
Id create_file(const MemoryFile& memory, std::size_t num_objects, const Place& place) {
  const Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, place);
  check(H5Pset_obj_track_times(creation, false), place);
  // SEMI: to close a file of which something is still open is a fault.
  const Id access = file_access(H5F_CLOSE_SEMI, place);
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), place);
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

void add_attribute(hid_t object, const std::string& name, hid_t type, hid_t memory_type,
                   hid_t space, const void* value, const Place& place) {
  Id attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
               place);
  check(H5Awrite(attribute, memory_type, value), place);
  attribute.close(place);
}

void add_attributes(hid_t object, const std::vector<Attribute>& attributes, const Place& place) {
  for (const Attribute& attribute : attributes) {
    if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      const Id type = text_type(text->size(), place);
      const Id space(H5Screate(H5S_SCALAR), H5Sclose, place);
      // c_str(): an empty text is written as one zero.
      add_attribute(object, attribute.name, type, type, space, text->c_str(), place);
    } else {
      const auto& numbers = std::get<std::vector<std::uint64_t>>(attribute.value);
      const Id space = simple_space({numbers.size()}, place);
      const std::uint64_t none = 0;  // the library takes no null pointer, not even to no numbers
      add_attribute(object, attribute.name, H5T_STD_U64LE, H5T_NATIVE_UINT64, space,
                    numbers.empty() ? &none : numbers.data(), place);
    }
  }
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

}  // namespace

bool is_built_in() { return true; }

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

FileLayout lay_out(const std::vector<Dataset>& datasets, const std::vector<Attribute>& root) {
  start_library();
  const MemoryFile memory;
  FileLayout layout;
  std::vector<ByteRange> taken;
  {
    const Place place{ExitCode::failed, "cannot lay out a file of tensors"};
    Id file = create_file(memory, datasets.size(), place);
    add_attributes(file, root, place);
    Groups groups(file, place);
    const Id creation = dataset_creation(place);
    for (const Dataset& dataset : datasets) {
      groups.make_for(dataset.path);
      const Place of_dataset{ExitCode::failed, "cannot lay out " + dataset.path};
      taken.push_back(add_dataset(file, dataset, creation, of_dataset));
      layout.offsets.push_back(taken.back().begin);
    }
    file.close(place);
  }
  layout.num_bytes = memory.num_bytes();
  layout.metadata = rest_of(memory, layout.num_bytes, std::move(taken));
  return layout;
}

std::string make_file(const std::vector<Table>& tables, const std::vector<Attribute>& root) {
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

// --- Reading

class Reader::File {
 public:
  File(const std::string& bytes, std::string name)
      : name_(std::move(name)), num_bytes_(bytes.size()), id_(open(bytes)) {}

  // All values of a dataset that is of this class of types.
  template <class T>
  std::vector<T> values(const std::string& path, H5T_class_t wanted, hid_t memory_type) const {
    const Place place = at(path);
    const Id dataset = open_dataset(path);
    const Id type(H5Dget_type(dataset), H5Tclose, place);
    require_class(type, wanted, path);
    const Id space(H5Dget_space(dataset), H5Sclose, place);
    std::vector<T> values(count(space, H5Tget_size(type), path));
    if (!values.empty())
      check(H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), place);
    return values;
  }

  std::vector<std::string> texts(const std::string& path) const {
    const Place place = at(path);
    const Id dataset = open_dataset(path);
    const Id type(H5Dget_type(dataset), H5Tclose, place);
    require_class(type, H5T_STRING, path);
    const std::size_t length = H5Tget_size(type);
    const Id space(H5Dget_space(dataset), H5Sclose, place);
    std::vector<std::string> texts(count(space, length, path));
    if (texts.empty()) return texts;
    std::string rows(texts.size() * length, '\0');
    check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), place);
    for (std::size_t i = 0; i < texts.size(); ++i)
      texts[i] = without_padding(rows.substr(i * length, length));
    return texts;
  }

  std::string root_text(const std::string& name) const {
    const Place place = at("attribute " + name);
    const Id attribute(H5Aopen(id_, name.c_str(), H5P_DEFAULT), H5Aclose, place);
    const Id type(H5Aget_type(attribute), H5Tclose, place);
    require_class(type, H5T_STRING, name);
    const Id space(H5Aget_space(attribute), H5Sclose, place);
    const std::size_t length = H5Tget_size(type);
    require(count(space, length, name) == 1, ExitCode::data,
            place.text + ": expected one text, found several; this is another kind of file");
    std::string text(length, '\0');
    check(H5Aread(attribute, type, text.data()), place);
    return without_padding(std::move(text));
  }

  std::vector<std::uint64_t> root_integers(const std::string& name) const {
    const Place place = at("attribute " + name);
    const Id attribute(H5Aopen(id_, name.c_str(), H5P_DEFAULT), H5Aclose, place);
    const Id type(H5Aget_type(attribute), H5Tclose, place);
    require_class(type, H5T_INTEGER, name);
    const Id space(H5Aget_space(attribute), H5Sclose, place);
    std::vector<std::uint64_t> values(count(space, H5Tget_size(type), name));
    if (!values.empty()) check(H5Aread(attribute, H5T_NATIVE_UINT64, values.data()), place);
    return values;
  }

 private:
  Place at(const std::string& path) const { return {ExitCode::data, name_ + ": " + path}; }

  Id open(const std::string& bytes) const {
    start_library();
    memory_.append(bytes);
    const Place place{ExitCode::data, name_ + " is no HDF5 file, or is cut off"};
    const Id access = file_access(H5F_CLOSE_STRONG, place);
    return Id(H5Fopen(memory_.path().c_str(), H5F_ACC_RDONLY, access), H5Fclose, place);
  }

  Id open_dataset(const std::string& path) const {
    return Id(H5Dopen2(id_, path.c_str(), H5P_DEFAULT), H5Dclose, at("no dataset " + path));
  }

  // Number of values; no more than this file has bytes for, whatever it claims.
  std::size_t count(hid_t space, std::size_t bytes_each, const std::string& path) const {
    const hssize_t n = check(H5Sget_simple_extent_npoints(space), at(path));
    const auto found = static_cast<std::uint64_t>(n);
    require(bytes_each > 0 && found <= num_bytes_ / bytes_each, ExitCode::data,
            fmt::format("{}: {} claims {} values of {} bytes in a file of {} bytes; the file is "
                        "altered",
                        name_, path, found, bytes_each, num_bytes_));
    return found;
  }

  void require_class(hid_t type, H5T_class_t wanted, const std::string& path) const {
    const bool is_wanted = check(H5Tget_class(type), at(path)) == wanted;
    const bool is_signed = wanted == H5T_INTEGER && is_wanted && H5Tget_sign(type) != H5T_SGN_NONE;
    const bool is_variable =
        wanted == H5T_STRING && is_wanted && check(H5Tis_variable_str(type), at(path)) > 0;
    require(is_wanted && !is_signed && !is_variable, ExitCode::data,
            fmt::format("{}: {} is not made of {}; this is another kind of file", name_, path,
                        wanted == H5T_INTEGER ? "unsigned integers"
                        : wanted == H5T_FLOAT ? "floating-point numbers"
                                              : "texts of fixed length"));
  }

  static std::string without_padding(std::string text) {
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }

  std::string name_;
  std::uint64_t num_bytes_;
  MemoryFile memory_;
  Id id_;
};

Reader::Reader(std::string bytes, std::string name)
    : file_(std::make_unique<File>(bytes, std::move(name))) {}
Reader::~Reader() = default;

std::vector<std::uint64_t> Reader::integers(const std::string& path) const {
  return file_->values<std::uint64_t>(path, H5T_INTEGER, H5T_NATIVE_UINT64);
}

std::vector<double> Reader::numbers(const std::string& path) const {
  return file_->values<double>(path, H5T_FLOAT, H5T_NATIVE_DOUBLE);
}

std::vector<std::string> Reader::texts(const std::string& path) const { return file_->texts(path); }

std::string Reader::root_text(const std::string& attribute) const {
  return file_->root_text(attribute);
}

std::vector<std::uint64_t> Reader::root_integers(const std::string& attribute) const {
  return file_->root_integers(attribute);
}

}  // namespace weft::hdf5
