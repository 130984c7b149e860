#include "io/checkpoint/checkpoint_view.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/partial_file.hpp"
#include "io/file.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

std::vector<std::uint64_t> of_dims(const Shape& shape, index_t row, index_t col) {
  if (shape.num_dims() == 1) return {static_cast<std::uint64_t>(col)};
  return {static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(col)};
}

// `shards`: their folder, as the view's file names it.
std::vector<hdf5::VirtualDataset> datasets_of(const CheckpointIndex& index,
                                              const fs::path& shards) {
  std::vector<hdf5::VirtualDataset> datasets;
  for (const TensorRecord& tensor : index.tensors) {
    const Box whole = whole_box(tensor.global);
    datasets.push_back({.path = fmt::format("/{}/{}", tensor.kind, tensor.name),
                        .dtype = tensor.dtype,
                        .shape = of_dims(tensor.global, whole.rows.end, whole.cols.end),
                        .parts = {}});
  }
  std::map<std::pair<index_t, index_t>, int> count;  // of a tensor's pieces in a file
  for (const PieceRecord& piece : index.pieces) {
    hdf5::VirtualDataset& dataset = datasets[static_cast<std::size_t>(piece.tensor)];
    const Shape& global = index.tensors[static_cast<std::size_t>(piece.tensor)].global;
    const std::string& file = index.files[static_cast<std::size_t>(piece.file)].name;
    dataset.parts.push_back(
        {.file = (shards / file).string(),
         .path = fmt::format("{}/{}", dataset.path, count[{piece.tensor, piece.file}]++),
         .begin = of_dims(global, piece.box.rows.begin, piece.box.cols.begin),
         .shape = of_dims(global, piece.box.rows.size(), piece.box.cols.size())});
  }
  return datasets;
}

bool is_within(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

void write_new_file(const std::string& path, const std::string& bytes) {
  PartialFile file(path, path);
  OutputFile output(file.partial(), OutputFile::Mode::create);
  output.write(bytes);
  output.sync();
  output.close();
  file.commit();
}

}  // namespace

std::string default_view_path(const std::string& checkpoint) {
  const fs::path folder = (fs::absolute(checkpoint) / "").lexically_normal().parent_path();
  fs::path place = folder.parent_path();
  if (place.filename() == "checkpoints") place = place.parent_path();
  return (place / fmt::format("view-{}.h5", folder.filename().string())).string();
}

std::uint64_t write_view(const Checkpoint& checkpoint, const std::string& path) {
  std::error_code error;
  require(fs::symlink_status(path, error).type() == fs::file_type::not_found, ExitCode::usage,
          fmt::format("{}: expected a file that does not exist yet; it was not touched. Remove it, "
                      "or name another one with --out",
                      path));
  const fs::path parent = fs::absolute(path).parent_path();
  const fs::path place = fs::canonical(parent, error);
  require(!error && fs::is_directory(place, error), ExitCode::usage,
          fmt::format("{}: expected a folder in which the file is made, found {}; make it first",
                      parent.string(), fs::exists(parent, error) ? "a file" : "nothing"));
  const fs::path shards = fs::canonical(checkpoint.path);
  require(!is_within(place, shards), ExitCode::usage,
          fmt::format("{} lies in the checkpoint, which is never changed; name another file with "
                      "--out",
                      path));
  const std::string bytes = hdf5::make_view(
      datasets_of(checkpoint.index, shards.lexically_relative(place)),
      {{"format", "weft-view"},
       {"version", std::vector<std::uint64_t>{1, 0}},
       {"id", checkpoint.manifest.id},
       {"step", std::vector<std::uint64_t>{static_cast<std::uint64_t>(checkpoint.manifest.step)}}});
  write_new_file(path, bytes);
  return bytes.size();
}

}  // namespace weft
