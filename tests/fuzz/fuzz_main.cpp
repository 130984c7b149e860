// libFuzzer's entry for all readers; WEFT_FUZZ_READER says which. With WEFT_FUZZ_SEEDS=FOLDER it
// first writes the reader's seeds there.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/fuzz/readers.hpp"

// HDF5 1.10 does not free an object header in which it finds a fault.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }

namespace {

void write_seeds(const weft::test::FuzzedReader& reader, const std::string& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : reader.seeds())
    std::ofstream(folder + "/seed-" + std::to_string(number++), std::ios::binary) << seed;
}

const weft::test::FuzzedReader& chosen() {
  const char* const name = std::getenv("WEFT_FUZZ_READER");
  for (const auto& reader : weft::test::fuzzed_readers())
    if (name != nullptr && reader.name == name) return reader;
  std::cerr << "WEFT_FUZZ_READER must be one of:";
  for (const auto& reader : weft::test::fuzzed_readers()) std::cerr << ' ' << reader.name;
  std::cerr << '\n';
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* folder = std::getenv("WEFT_FUZZ_SEEDS")) write_seeds(chosen(), folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const weft::test::FuzzedReader& reader = chosen();
  reader.take({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
