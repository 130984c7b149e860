// The readers of files and messages, each behind one entry that takes any bytes: for libFuzzer and
// for the test that replays the corpus. A reader may refuse by Error; what it takes must hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::test {

struct FuzzedReader {
  std::string name;  // also of its folder in corpus/
  // Throws std::logic_error, or what else is no Error, where the reader does something wrong.
  void (*take)(std::string_view bytes);
  std::vector<std::string> (*seeds)();  // inputs to begin with, most of them legal
};

const std::vector<FuzzedReader>& fuzzed_readers();

// In text_readers.cpp, index_readers.cpp, record_reader.cpp, safetensors_reader.cpp,
// csv_reader.cpp.
FuzzedReader manifest_reader();
FuzzedReader plan_reader();
FuzzedReader step_lines_reader();
FuzzedReader index_check_reader();
FuzzedReader index_file_reader();
FuzzedReader shard_record_reader();
FuzzedReader safetensors_header_reader();
FuzzedReader csv_reader();

}  // namespace weft::test
