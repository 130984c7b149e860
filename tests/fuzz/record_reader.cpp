// The record of a shard that ranks send to the one that commits.
#include "io/checkpoint/index_check.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/index_cover.hpp"
#include "tests/fuzz/readers.hpp"

namespace weft::test {

namespace {

void take_shard_record(std::string_view bytes) {
  const std::string text(bytes);
  ShardRecord record;
  if (!is_taken(ExitCode::failed, [&] { record = unpack_shard_record(text); })) return;
  expect(pack(record) == text, "a record changes its form");
  // What the rank that commits makes of one, and of two.
  for (const std::vector<ShardRecord>& records :
       {std::vector{record}, std::vector{record, record}}) {
    CheckpointIndex index;
    index.id = std::string(32, '0');
    join(index, records);
    const bool taken = is_taken(ExitCode::data, [&] { require_consistent(index, "index.h5"); });
    constexpr index_t most_elements = index_t{1} << 20;  // that are counted one by one
    if (!taken || index.num_elements() > most_elements) continue;
    const std::string fault = cover_fault(index);
    expect(fault.empty(), "taken, but " + fault);
  }
}

std::vector<std::string> shard_record_seeds() {
  const ShardRecord empty{.name = "shard-00001.h5", .num_bytes = 0};
  const ShardRecord two{
      .name = "shard-00000.h5",
      .num_bytes = 4096 + 65536 + 40 + 12,
      .pieces = {{"a.weight", "value", {2, 8197}, {{0, 2}, {0, 8197}}, 7, 1},
                 {"b", "exp_avg", {3}, {{0, 1}, {0, 3}}, 8, 3}},
      .blocks = {{0, 4096, 1}, {4096, 65536, 2}, {4096 + 65536, 40, 3}, {4096 + 65576, 12, 4}}};
  return {pack(empty), pack(two)};
}

}  // namespace

FuzzedReader shard_record_reader() {
  return {"shard_record", take_shard_record, shard_record_seeds};
}

const std::vector<FuzzedReader>& fuzzed_readers() {
  static const std::vector<FuzzedReader> all = {
      manifest_reader(),   plan_reader(),         step_lines_reader(),         index_check_reader(),
      index_file_reader(), shard_record_reader(), safetensors_header_reader(), csv_reader()};
  return all;
}

}  // namespace weft::test
