// The index: consistent ones with a few wrong numbers, as records for index_check and as tables of
// an HDF5 file. Altered bytes of index.h5 reach no parser, since MANIFEST has its hash; so they are
// no input here (tests/io/checkpoint/test_altered_index.cpp tries them all the same).
#include <algorithm>

#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/index_check.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/index_cover.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/io/checkpoint/some_index.hpp"

namespace weft::test {

namespace {

CheckpointIndex chosen_index(Choices& choices) {
  std::vector<Shape> shapes;
  const std::size_t num_tensors = 1 + choices.below(4);
  for (std::size_t t = 0; t < num_tensors; ++t) {
    const auto extent = [&] { return index_t{1} + choices.byte() % 40; };
    // The last one has pieces of several blocks.
    if (const std::size_t kind = choices.below(3); kind == 0) {
      shapes.push_back({extent()});
    } else {
      shapes.push_back({extent(), kind == 1 ? extent() : 4000});
    }
  }
  const std::size_t pieces_each = 1 + choices.below(5);
  const int num_files = 1 + static_cast<int>(choices.below(3));
  return some_index(shapes, pieces_each, num_files, choices.byte());
}

template <class Record>
void alter_list(std::vector<Record>& list, Choices& choices) {
  if (list.empty()) return;
  const std::size_t at = choices.below(list.size());
  switch (choices.below(3)) {
    case 0:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      list.push_back(list[at]);
      break;
    default:
      std::swap(list[at], list[choices.below(list.size())]);
  }
}

void alter_piece(PieceRecord& piece, Choices& choices) {
  index_t* const numbers[] = {&piece.tensor,       &piece.file,           &piece.box.rows.begin,
                              &piece.box.rows.end, &piece.box.cols.begin, &piece.box.cols.end,
                              &piece.first_block};
  index_t& number = *numbers[choices.below(std::size(numbers))];
  number = choices.instead_of(number);
}

void alter_number(std::uint64_t& number, Choices& choices) {
  number = static_cast<std::uint64_t>(choices.instead_of(static_cast<std::int64_t>(number)));
}

void alter(CheckpointIndex& index, Choices& choices) {
  const auto one_of = [&](auto& list) -> auto& { return list[choices.below(list.size())]; };
  switch (choices.below(12)) {
    case 0:
      alter_list(index.tensors, choices);
      return;
    case 1:
      alter_list(index.pieces, choices);
      return;
    case 2:
      alter_list(index.files, choices);
      return;
    case 3:
      alter_list(index.blocks, choices);
      return;
    case 4:
      index.progress.step = choices.instead_of(index.progress.step);
      return;
    case 5:
      index.id = std::string(choices.below(40), '0');
      return;
    default:
      break;
  }
  if (index.tensors.empty() || index.pieces.empty() || index.files.empty() || index.blocks.empty())
    return;
  switch (choices.below(6)) {
    case 0: {
      Shape& shape = one_of(index.tensors).global;
      index_t& extent = shape[static_cast<int>(choices.below(2)) % std::max(shape.num_dims(), 1)];
      extent = choices.instead_of(extent);
      return;
    }
    case 1:
      one_of(index.files).blocks = {choices.instead_of(0), choices.instead_of(4)};
      return;
    case 2:
      alter_number(one_of(index.files).num_bytes, choices);
      return;
    case 3:
      alter_number(one_of(index.blocks).offset, choices);
      return;
    case 4:
      alter_number(one_of(index.blocks).num_bytes, choices);
      return;
    default:
      alter_piece(one_of(index.pieces), choices);
  }
}

void take_index_check(std::string_view bytes) {
  Choices choices(bytes);
  CheckpointIndex index = chosen_index(choices);
  const CheckpointIndex before = index;
  for (int i = 0; i < 8 && !choices.is_at_end(); ++i) alter(index, choices);
  const bool taken = is_taken(ExitCode::data, [&] { require_consistent(index, "index.h5"); });
  const std::string fault = taken ? cover_fault(index) : "";
  expect(fault.empty(), "taken, but " + fault);
  expect(taken || index != before, "a consistent index is refused");
}

// --- As a file: FORMAT.md's tables, written here once more, with tables that are wrong.

using Integers = std::vector<std::uint64_t>;
using Texts = std::vector<std::string>;

template <class Record, class Field>
hdf5::Table integers(const char* path, const std::vector<Record>& records, Field field) {
  Integers values;
  for (const Record& record : records) values.push_back(static_cast<std::uint64_t>(field(record)));
  return {path, values};
}

template <class Record>
hdf5::Table texts(const char* path, const std::vector<Record>& records,
                  std::string Record::*field) {
  Texts values;
  for (const Record& record : records) values.push_back(record.*field);
  return {path, values};
}

std::vector<hdf5::Table> tables_of(const CheckpointIndex& index) {
  using T = TensorRecord;
  using P = PieceRecord;
  using F = FileRecord;
  using B = BlockRecord;
  const auto& [plan, plan_hash, split, data, numerics] = index.identity;
  return {
      {"/progress/losses", index.progress.losses},
      {"/identity/plan", Texts{plan}},
      {"/identity/plan_hash", Texts{plan_hash}},
      {"/identity/split", Texts{split}},
      {"/identity/data", Texts{data}},
      {"/identity/numerics", Texts{numerics}},
      texts("/tensors/name", index.tensors, &T::name),
      texts("/tensors/kind", index.tensors, &T::kind),
      texts("/tensors/dtype", index.tensors, &T::dtype),
      integers("/tensors/num_dims", index.tensors, [](const T& t) { return t.global.num_dims(); }),
      integers("/tensors/rows", index.tensors,
               [](const T& t) { return t.global.num_dims() == 1 ? 1 : t.global[0]; }),
      integers("/tensors/cols", index.tensors,
               [](const T& t) { return t.global[t.global.num_dims() - 1]; }),
      integers("/tensors/fingerprint", index.tensors, [](const T& t) { return t.fingerprint; }),
      integers("/pieces/tensor", index.pieces, [](const P& p) { return p.tensor; }),
      integers("/pieces/file", index.pieces, [](const P& p) { return p.file; }),
      integers("/pieces/row_begin", index.pieces, [](const P& p) { return p.box.rows.begin; }),
      integers("/pieces/row_end", index.pieces, [](const P& p) { return p.box.rows.end; }),
      integers("/pieces/col_begin", index.pieces, [](const P& p) { return p.box.cols.begin; }),
      integers("/pieces/col_end", index.pieces, [](const P& p) { return p.box.cols.end; }),
      integers("/pieces/first_block", index.pieces, [](const P& p) { return p.first_block; }),
      texts("/files/name", index.files, &F::name),
      integers("/files/num_bytes", index.files, [](const F& f) { return f.num_bytes; }),
      integers("/files/first_block", index.files, [](const F& f) { return f.blocks.begin; }),
      integers("/files/end_block", index.files, [](const F& f) { return f.blocks.end; }),
      integers("/blocks/offset", index.blocks, [](const B& b) { return b.offset; }),
      integers("/blocks/num_bytes", index.blocks, [](const B& b) { return b.num_bytes; }),
      integers("/blocks/checksum", index.blocks, [](const B& b) { return b.checksum; })};
}

void alter(std::vector<hdf5::Table>& tables, Choices& choices) {
  const std::size_t at = choices.below(tables.size());
  hdf5::Table& table = tables[at];
  auto* const numbers = std::get_if<Integers>(&table.values);
  switch (choices.below(8)) {
    case 0:
      tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 1:
      table.values = Integers(choices.below(9), 1);
      return;
    case 2:
      table.values = std::vector<double>(choices.below(9), 1.5);
      return;
    case 3:
      table.values = Texts(choices.below(9), "a text");
      return;
    case 4:
      std::visit([](auto& values) { values.resize(values.empty() ? 1 : values.size() - 1); },
                 table.values);
      return;
    default:
      break;
  }
  if (numbers != nullptr && !numbers->empty())
    alter_number((*numbers)[choices.below(numbers->size())], choices);
}

void take_index_file(std::string_view bytes) {
  Choices choices(bytes);
  const CheckpointIndex index = chosen_index(choices);
  std::vector<hdf5::Table> tables = tables_of(index);
  std::vector<hdf5::Attribute> root{
      {"format", std::string("weft-checkpoint-index")},
      {"version", Integers{1, choices.byte()}},
      {"id", index.id},
      {"step", Integers{static_cast<std::uint64_t>(index.progress.step)}},
      {"epoch", Integers{static_cast<std::uint64_t>(index.progress.epoch)}}};
  const bool is_altered = !choices.is_at_end();
  for (int i = 0; i < 4 && !choices.is_at_end(); ++i) alter(tables, choices);
  if (!choices.is_at_end())
    root.erase(root.begin() + static_cast<std::ptrdiff_t>(choices.below(5)));
  CheckpointIndex found;
  const bool taken = is_taken(
      ExitCode::data, [&] { found = decode_index(hdf5::make_file(tables, root), "index.h5"); });
  expect(taken || is_altered, "a consistent index is refused");
  if (!taken) return;
  const std::string fault = cover_fault(found);
  expect(fault.empty(), "taken, but " + fault);
  expect(is_altered || found == index, "an index changes on its way through a file");
}

// Sizes of a few indexes, and alterations of them. In the last two one of two pieces is shifted by
// an element: one is in both, another in none, and all sizes are right.
std::vector<std::string> seeds() {
  return {
      std::string("\x00\x00\x07\x01\x00\x05", 6),
      std::string("\x03\x01\x10\x08\x00\x22\x02\x05\x01\x09\x09\x03\x02\x01", 14),
      std::string("\x02\x01\x10\x08\x02\x22\x00\x03\x02\x02\x07\x06\x05\x00\x02\x41\x08\x01\xc0",
                  19),
      std::string("\x01\x02\x27\x01\x04\x09\x04\x02\x05\x01\x02\x00\x0b\x05\x01\x03\x41\x09", 18),
      std::string("\x00\x00\x13\x01\x00\x05\x0b\x05\x00\x04\x41\x0b\x05\x00\x05\x41", 16),
      std::string("\x00\x00\x13\x01\x00\x05\x0b\x05\x01\x04\x41\x0b\x05\x01\x05\x41", 16)};
}

}  // namespace

FuzzedReader index_check_reader() { return {"index_check", take_index_check, seeds}; }
FuzzedReader index_file_reader() { return {"index_file", take_index_file, seeds}; }

}  // namespace weft::test
