#include "io/checkpoint/checkpoint_index.hpp"

#include <fmt/format.h>
// For the CPU that this is built for: twice as fast as the library, which is for all.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/index_check.hpp"
#include "io/checkpoint/manifest.hpp"

namespace weft {
namespace {

constexpr const char* format_name = "weft-checkpoint-index";

using Integers = std::vector<std::uint64_t>;
using Texts = std::vector<std::string>;

// --- Columns

// field(record) of all records, as what a column holds.
template <class Record, class Field>
auto column(const std::vector<Record>& records, Field field) {
  using Value = std::decay_t<decltype(field(records[0]))>;
  if constexpr (std::is_same_v<Value, std::string>) {
    Texts out;
    for (const Record& record : records) out.push_back(field(record));
    return out;
  } else {
    Integers out;
    for (const Record& record : records) out.push_back(static_cast<std::uint64_t>(field(record)));
    return out;
  }
}

using Tables = std::vector<hdf5::Table>;

void add_tensors(const std::vector<TensorRecord>& all, Tables& to) {
  using R = TensorRecord;
  to.push_back({"/tensors/name", column(all, [](const R& t) { return t.name; })});
  to.push_back({"/tensors/kind", column(all, [](const R& t) { return t.kind; })});
  to.push_back({"/tensors/dtype", column(all, [](const R& t) { return t.dtype; })});
  to.push_back({"/tensors/num_dims", column(all, [](const R& t) { return t.global.num_dims(); })});
  to.push_back(
      {"/tensors/rows", column(all, [](const R& t) { return whole_box(t.global).rows.size(); })});
  to.push_back(
      {"/tensors/cols", column(all, [](const R& t) { return whole_box(t.global).cols.size(); })});
  to.push_back({"/tensors/fingerprint", column(all, [](const R& t) { return t.fingerprint; })});
}

void add_pieces(const std::vector<PieceRecord>& all, Tables& to) {
  using R = PieceRecord;
  to.push_back({"/pieces/tensor", column(all, [](const R& p) { return p.tensor; })});
  to.push_back({"/pieces/file", column(all, [](const R& p) { return p.file; })});
  to.push_back({"/pieces/row_begin", column(all, [](const R& p) { return p.box.rows.begin; })});
  to.push_back({"/pieces/row_end", column(all, [](const R& p) { return p.box.rows.end; })});
  to.push_back({"/pieces/col_begin", column(all, [](const R& p) { return p.box.cols.begin; })});
  to.push_back({"/pieces/col_end", column(all, [](const R& p) { return p.box.cols.end; })});
  to.push_back({"/pieces/first_block", column(all, [](const R& p) { return p.first_block; })});
}

void add_files(const CheckpointIndex& index, Tables& to) {
  using F = FileRecord;
  using B = BlockRecord;
  to.push_back({"/files/name", column(index.files, [](const F& f) { return f.name; })});
  to.push_back({"/files/num_bytes", column(index.files, [](const F& f) { return f.num_bytes; })});
  to.push_back(
      {"/files/first_block", column(index.files, [](const F& f) { return f.blocks.begin; })});
  to.push_back({"/files/end_block", column(index.files, [](const F& f) { return f.blocks.end; })});
  to.push_back({"/blocks/offset", column(index.blocks, [](const B& b) { return b.offset; })});
  to.push_back({"/blocks/num_bytes", column(index.blocks, [](const B& b) { return b.num_bytes; })});
  to.push_back({"/blocks/checksum", column(index.blocks, [](const B& b) { return b.checksum; })});
}

// Reads one index.h5; every fault names the file.
class Decoder {
 public:
  Decoder(std::string bytes, const std::string& path)
      : path_(path), expect_{path}, file_(std::move(bytes), path) {}

  CheckpointIndex decode();

 private:
  index_t to_index(std::uint64_t value, const char* what) const {
    expect_(value <= std::uint64_t{std::numeric_limits<index_t>::max()},
            [&] { return fmt::format("{} is {}", what, value); });
    return static_cast<index_t>(value);
  }
  index_t root_index(const char* name) const;
  std::string one_text(const std::string& path) const;

  // A column of `size` values.
  template <class Values>
  Values sized(Values values, std::size_t size, const char* path) const {
    expect_(values.size() == size, [&] {
      return fmt::format("{} has {} values where its first column has {}", path, values.size(),
                         size);
    });
    return values;
  }
  Integers integers(const char* path, std::size_t size) const {
    return sized(file_.integers(path), size, path);
  }
  Texts texts(const char* path, std::size_t size) const {
    return sized(file_.texts(path), size, path);
  }

  void check_format() const;
  void read_progress();
  void read_tensors();
  void read_pieces();
  void read_files();
  void read_blocks();

  const std::string& path_;
  IndexExpectation expect_;
  hdf5::Reader file_;
  CheckpointIndex index_;
};

CheckpointIndex Decoder::decode() {
  check_format();
  read_progress();
  read_tensors();
  read_pieces();
  read_files();
  read_blocks();
  require_consistent(index_, path_);
  return std::move(index_);
}

// --- Reading

void Decoder::check_format() const {
  const std::string format = file_.root_text("format");
  require(format == format_name, ExitCode::data,
          fmt::format("{} is of the format '{}', expected '{}': this is no index of a checkpoint",
                      path_, format, format_name));
  const Integers version = file_.root_integers("version");
  require(version.size() == 2 && version[0] == Manifest::major_version, ExitCode::data,
          fmt::format("{} is of version {} of the format and this weft reads {}.x: use the weft "
                      "that wrote it",
                      path_, fmt::join(version, "."), Manifest::major_version));
}

index_t Decoder::root_index(const char* name) const {
  const Integers values = file_.root_integers(name);
  expect_(values.size() == 1,
          [&] { return fmt::format("attribute {} has {} values, not one", name, values.size()); });
  return to_index(values[0], name);
}

std::string Decoder::one_text(const std::string& path) const {
  const Texts values = file_.texts(path);
  expect_(values.size() == 1,
          [&] { return fmt::format("{} has {} texts, not one", path, values.size()); });
  return values[0];
}

void Decoder::read_progress() {
  index_.id = file_.root_text("id");
  index_.progress.step = root_index("step");
  index_.progress.epoch = root_index("epoch");
  index_.progress.losses = file_.numbers("/progress/losses");
  index_.identity.plan = one_text("/identity/plan");
  index_.identity.plan_hash = one_text("/identity/plan_hash");
  index_.identity.split = one_text("/identity/split");
  index_.identity.data = one_text("/identity/data");
  index_.identity.numerics = one_text("/identity/numerics");
}

void Decoder::read_tensors() {
  const Texts names = file_.texts("/tensors/name");
  const std::size_t size = names.size();
  const Texts kinds = texts("/tensors/kind", size);
  const Texts dtypes = texts("/tensors/dtype", size);
  const Integers num_dims = integers("/tensors/num_dims", size);
  const Integers rows = integers("/tensors/rows", size);
  const Integers cols = integers("/tensors/cols", size);
  const Integers fingerprints = integers("/tensors/fingerprint", size);
  for (std::size_t i = 0; i < size; ++i) {
    expect_(num_dims[i] == 2 || (num_dims[i] == 1 && rows[i] == 1), [&] {
      return fmt::format("tensor {} has {} dims and {} rows", names[i], num_dims[i], rows[i]);
    });
    const index_t num_cols = to_index(cols[i], "a tensor's number of columns");
    const Shape global = num_dims[i] == 1
                             ? Shape{num_cols}
                             : Shape{to_index(rows[i], "a tensor's number of rows"), num_cols};
    index_.tensors.push_back({names[i], kinds[i], dtypes[i], global, fingerprints[i]});
  }
}

void Decoder::read_pieces() {
  const Integers tensors = file_.integers("/pieces/tensor");
  const std::size_t size = tensors.size();
  const Integers files = integers("/pieces/file", size);
  const Integers row_begins = integers("/pieces/row_begin", size);
  const Integers row_ends = integers("/pieces/row_end", size);
  const Integers col_begins = integers("/pieces/col_begin", size);
  const Integers col_ends = integers("/pieces/col_end", size);
  const Integers first_blocks = integers("/pieces/first_block", size);
  index_.pieces.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = [&](const Integers& values) { return to_index(values[i], "a piece's number"); };
    index_.pieces.push_back(
        {.tensor = at(tensors),
         .file = at(files),
         .box = {{at(row_begins), at(row_ends)}, {at(col_begins), at(col_ends)}},
         .first_block = at(first_blocks)});
  }
}

void Decoder::read_files() {
  const Texts names = file_.texts("/files/name");
  const std::size_t size = names.size();
  const Integers num_bytes = integers("/files/num_bytes", size);
  const Integers begins = integers("/files/first_block", size);
  const Integers ends = integers("/files/end_block", size);
  for (std::size_t i = 0; i < size; ++i)
    index_.files.push_back(
        {names[i], num_bytes[i], {to_index(begins[i], "a block"), to_index(ends[i], "a block")}});
}

void Decoder::read_blocks() {
  const Integers offsets = file_.integers("/blocks/offset");
  const std::size_t size = offsets.size();
  const Integers num_bytes = integers("/blocks/num_bytes", size);
  const Integers checksums = integers("/blocks/checksum", size);
  index_.blocks.reserve(size);
  for (std::size_t i = 0; i < size; ++i)
    index_.blocks.push_back({offsets[i], num_bytes[i], checksums[i]});
}

}  // namespace

bool have_same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

bool operator==(const RunProgress& a, const RunProgress& b) {
  return a.step == b.step && a.epoch == b.epoch && have_same_bits(a.losses, b.losses);
}

std::uint64_t block_checksum(const void* bytes, std::size_t size) {
  return XXH3_64bits(bytes, size);
}

index_t num_blocks(const Box& box) {
  return (box.num_elements() - 1) / BlockRecord::most_elements + 1;
}

Range blocks_of(const PieceRecord& piece) {
  return {piece.first_block, piece.first_block + num_blocks(piece.box)};
}

Range blocks_of(const PieceRecord& piece, Range elements) {
  return {piece.first_block + elements.begin / BlockRecord::most_elements,
          piece.first_block + (elements.end - 1) / BlockRecord::most_elements + 1};
}

Range elements_of(const PieceRecord& piece, index_t block) {
  const index_t first = (block - piece.first_block) * BlockRecord::most_elements;
  return {first, std::min(first + BlockRecord::most_elements, piece.box.num_elements())};
}

index_t CheckpointIndex::num_elements() const {
  index_t sum = 0;
  for (const TensorRecord& tensor : tensors) sum += tensor.global.num_elements();
  return sum;
}

std::string CheckpointIndex::state_fingerprint() const {
  // A sum, since stages list their tensors in any order.
  Hash128 sum;
  for (const TensorRecord& tensor : tensors) {
    const std::string text = fmt::format("{} {} {} {} {:016x}", tensor.kind, tensor.name,
                                         tensor.dtype, tensor.global.text(), tensor.fingerprint);
    sum += hash128(text.data(), text.size());
  }
  return sum.text();
}

std::string encode(const CheckpointIndex& index) {
  Tables tables;
  tables.push_back({"/progress/losses", index.progress.losses});
  tables.push_back({"/identity/plan", Texts{index.identity.plan}});
  tables.push_back({"/identity/plan_hash", Texts{index.identity.plan_hash}});
  tables.push_back({"/identity/split", Texts{index.identity.split}});
  tables.push_back({"/identity/data", Texts{index.identity.data}});
  tables.push_back({"/identity/numerics", Texts{index.identity.numerics}});
  add_tensors(index.tensors, tables);
  add_pieces(index.pieces, tables);
  add_files(index, tables);
  return hdf5::make_file(tables,
                         {{"format", std::string(format_name)},
                          {"version", Integers{Manifest::major_version, Manifest::minor_version}},
                          {"id", index.id},
                          {"step", Integers{static_cast<std::uint64_t>(index.progress.step)}},
                          {"epoch", Integers{static_cast<std::uint64_t>(index.progress.epoch)}}});
}

CheckpointIndex decode_index(std::string bytes, const std::string& path) {
  return Decoder(std::move(bytes), path).decode();
}

}  // namespace weft
