#include "io/safetensors_exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/logical_tensor.hpp"
#include "io/checkpoint/box_reader.hpp"
#include "io/checkpoint/partial_file.hpp"
#include "io/extent_reader.hpp"
#include "io/file.hpp"
#include "io/stream_writer.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr index_t window_elements = index_t{1} << 20;

// use(first element, box of at most a window) for all of a tensor, in order.
template <class Use>
void for_windows(const Shape& global, const Use& use) {
  const Box whole = whole_box(global);
  for (index_t at = 0; at < whole.num_elements(); at += window_elements) {
    index_t first = at;
    for (const Box& box :
         boxes_of(whole, {at, std::min(at + window_elements, whole.num_elements())})) {
      use(first, box);
      first += box.num_elements();
    }
  }
}

std::vector<std::uint64_t> extents_of(const Shape& global) {
  std::vector<std::uint64_t> extents;
  for (int dim = 0; dim < global.num_dims(); ++dim)
    extents.push_back(static_cast<std::uint64_t>(global[dim]));
  return extents;
}

// The name that messages have for `path`.
std::string name_of_target(const std::string& path) { return "--to " + path; }

void require_new(const std::string& path) {
  std::error_code error;
  require(fs::symlink_status(path, error).type() == fs::file_type::not_found, ExitCode::usage,
          name_of_target(path) + ": expected a file that does not exist yet; it was not touched");
}

class Export {
 public:
  Export(const Checkpoint& checkpoint, const NameTable& names, bool with_optimizer)
      : checkpoint_(checkpoint) {
    const auto& tensors = checkpoint.index.tensors;
    std::vector<std::string> ours;
    for (const TensorRecord& tensor : tensors) {
      if (tensor.kind == "value") ours.push_back(tensor.name);
    }
    std::sort(ours.begin(), ours.end());
    const std::vector<std::string> theirs = names.names_of(ours);
    std::map<std::string, std::string> name_of;
    for (std::size_t i = 0; i < ours.size(); ++i) name_of[ours[i]] = theirs[i];
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool is_value = tensors[i].kind == "value";
      if (is_value || with_optimizer)
        add(i, (is_value ? "" : moments_prefix + tensors[i].kind + ".") + name_of[tensors[i].name]);
    }
    std::uint64_t position = 0;
    for (const auto& [name, number] : by_name_) {
      const Shape& global = tensors[number].global;
      const auto bytes = static_cast<std::uint64_t>(global.num_elements()) * sizeof(float);
      tensors_.push_back({name, extents_of(global), position, position + bytes});
      position += bytes;
    }
    data_bytes_ = position;
  }

  std::uint64_t write(const std::string& path, const ByteProgress& progress) const {
    const std::string header = encode_safetensors_header(tensors_);
    require(header.size() - safetensors_length_bytes <= most_safetensors_header_bytes,
            ExitCode::usage,
            fmt::format("{}: its header would have {} bytes, more than the format allows",
                        checkpoint_.path, header.size()));
    StreamWriter file(path, header.size() + data_bytes_);
    file.write(header.data(), header.size());
    std::uint64_t done = 0;
    std::vector<std::uint32_t> bits;
    for (const auto& [name, number] : by_name_) {
      for_windows(record(number).global, [&](index_t, const Box& box) {
        bits.resize(static_cast<std::size_t>(box.num_elements()));
        read_box(checkpoint_, static_cast<index_t>(number), box, bits.data());
        file.write(bits.data(), bits.size() * sizeof(float));
        done += bits.size() * sizeof(float);
        if (progress) progress(done, data_bytes_);
      });
    }
    file.finish();
    return header.size() + data_bytes_;
  }

  // As another program will read it, from the disk.
  void compare(const std::string& path) const {
    drop_from_cache(path);
    const SafetensorsFile file(path);
    require(file.tensors() == tensors_, ExitCode::data,
            path + ": its header does not read back as it was written");
    std::vector<std::uint32_t> bits;
    std::size_t i = 0;
    for (const auto& [name, number] : by_name_) {
      std::uint64_t sum = 0;
      for_windows(record(number).global, [&](index_t first, const Box& box) {
        bits.resize(static_cast<std::size_t>(box.num_elements()));
        file.read_box(tensors_[i], box, bits.data());
        sum += fingerprint(bits.data(), box.num_elements(), first);
      });
      require(
          sum == record(number).fingerprint, ExitCode::data,
          fmt::format("{}: {} is not in the file as it was saved: look at the disk, the memory, "
                      "the system's log; the file was removed",
                      path, name));
      ++i;
    }
  }

  std::size_t num_tensors() const { return tensors_.size(); }

 private:
  const TensorRecord& record(std::size_t number) const { return checkpoint_.index.tensors[number]; }

  void add(std::size_t number, const std::string& name) {
    require(by_name_.try_emplace(name, number).second, ExitCode::usage,
            fmt::format("two tensors would have the name {} in the file: change the table", name));
  }

  const Checkpoint& checkpoint_;
  std::map<std::string, std::size_t> by_name_;  // numbers in the index
  std::vector<SafetensorsTensor> tensors_;      // by name
  std::uint64_t data_bytes_ = 0;
};

}  // namespace

ExportReport export_safetensors(const Checkpoint& checkpoint, const std::string& path,
                                const NameTable& names, bool with_optimizer,
                                const ByteProgress& progress) {
  require_new(path);
  PartialFile file(path, name_of_target(path));
  const Export to_write(checkpoint, names, with_optimizer);
  const std::uint64_t num_bytes = to_write.write(file.partial(), progress);
  to_write.compare(file.partial());
  file.commit();
  return {to_write.num_tensors(), num_bytes};
}

NewCheckpoint import_safetensors(const SafetensorsFile& file,
                                 const std::vector<TensorRecord>& values,
                                 const std::vector<std::string>& moments, const NameTable& names) {
  std::map<std::string, const SafetensorsTensor*> unused;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    if (!tensor.name.starts_with(moments_prefix)) unused[tensor.name] = &tensor;
  }
  std::vector<std::string> ours;
  for (const TensorRecord& value : values) ours.push_back(value.name);
  const std::vector<std::string> theirs = names.names_of(ours);

  NewCheckpoint checkpoint;
  std::vector<const SafetensorsTensor*> sources;  // null: zeros
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto found = unused.find(theirs[i]);
    require(
        found != unused.end(), ExitCode::usage,
        fmt::format("{}: expected the tensor {} for {}, found none: give the names by --names, or "
                    "the plan of the model that it is of",
                    file.path(), theirs[i], values[i].name));
    const auto expected = extents_of(values[i].global);
    require(found->second->shape == expected, ExitCode::usage,
            fmt::format("{}: expected the tensor {} with shape [{}], found [{}]: it is of another "
                        "model than the plan's",
                        file.path(), theirs[i], fmt::join(expected, ", "),
                        fmt::join(found->second->shape, ", ")));
    checkpoint.tensors.push_back(values[i]);
    sources.push_back(found->second);
    unused.erase(found);
    for (const std::string& kind : moments) {
      checkpoint.tensors.push_back({values[i].name, kind, "f32", values[i].global});
      sources.push_back(nullptr);
    }
  }
  require(
      unused.empty(), ExitCode::usage,
      fmt::format("{}: the plan's model has no place for {} ({} such tensors): it is of another "
                  "model, or needs --names",
                  file.path(), unused.empty() ? "" : unused.begin()->first, unused.size()));
  checkpoint.read = [&file, sources = std::move(sources)](index_t tensor, const Box& box,
                                                          std::uint32_t* out) {
    const SafetensorsTensor* const source = sources[static_cast<std::size_t>(tensor)];
    if (source) {
      file.read_box(*source, box, out);
    } else {
      std::memset(out, 0, static_cast<std::size_t>(box.num_elements()) * sizeof(float));
    }
  };
  checkpoint.identity.split = "{}";
  checkpoint.identity.data = imported_identity;
  checkpoint.identity.numerics = imported_identity;
  return checkpoint;
}

}  // namespace weft
