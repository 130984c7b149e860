// Reading, from bytes that were verified.
#include <fmt/format.h>

#include <utility>

#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/hdf5_handles.hpp"
#include "io/checkpoint/memory_file.hpp"

namespace weft::hdf5 {

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

Reader::Reader(std::string bytes, std::string name) {
  const Turn turn;
  file_ = std::make_unique<File>(bytes, std::move(name));
}

Reader::~Reader() {
  const Turn turn;
  file_.reset();
}

std::vector<std::uint64_t> Reader::integers(const std::string& path) const {
  const Turn turn;
  return file_->values<std::uint64_t>(path, H5T_INTEGER, H5T_NATIVE_UINT64);
}

std::vector<double> Reader::numbers(const std::string& path) const {
  const Turn turn;
  return file_->values<double>(path, H5T_FLOAT, H5T_NATIVE_DOUBLE);
}

std::vector<std::string> Reader::texts(const std::string& path) const {
  const Turn turn;
  return file_->texts(path);
}

std::string Reader::root_text(const std::string& attribute) const {
  const Turn turn;
  return file_->root_text(attribute);
}

std::vector<std::uint64_t> Reader::root_integers(const std::string& attribute) const {
  const Turn turn;
  return file_->root_integers(attribute);
}

}  // namespace weft::hdf5
