// Every byte of a checkpoint counts: altered one by one, each is found by verifying and by loading,
// and the file that it is in is named.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>

#include "io/checkpoint/verify.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace fs = std::filesystem;

namespace {

const SomeModel& tiny_model() {
  static const SomeModel model{{"up", cut({3, 4}, 0)}, {"norm", whole({5})}};
  return model;
}

// One byte of a file in place, put back at the end.
class AlteredByte {
 public:
  AlteredByte(std::fstream& file, std::streamoff at, int mask) : file_(file), at_(at) {
    file_.seekg(at_);
    byte_ = static_cast<char>(file_.get());
    put(static_cast<char>(byte_ ^ mask));
  }
  ~AlteredByte() { put(byte_); }
  AlteredByte(const AlteredByte&) = delete;
  AlteredByte& operator=(const AlteredByte&) = delete;

 private:
  void put(char byte) {
    file_.seekp(at_);
    file_.put(byte).flush();
  }

  std::fstream& file_;
  std::streamoff at_;
  char byte_ = 0;
};

// What verifying says of the checkpoint: "" where it finds it whole.
std::string fault_of(const std::string& path) {
  std::string fault;
  const auto error = error_of([&] {
    const VerifyReport report = verify_checkpoint(open_checkpoint(path));
    if (report.num_faults > 0) fault = report.faults.at(0);
  });
  if (!error) return fault;
  return error->code() == ExitCode::data ? error->what() : "another exit code";
}

// What an opened checkpoint's shards say to those who verify them, and to those who load them.
std::vector<std::string> shard_faults(const Checkpoint& checkpoint, StateRank& rank) {
  const VerifyReport report = verify_checkpoint(checkpoint);
  const auto error = error_of([&] { load_state(checkpoint, rank.state()); });
  return {report.num_faults > 0 ? report.faults.at(0) : "",
          error && error->code() == ExitCode::data ? error->what() : ""};
}

}  // namespace

TEST_CASE("no byte can change unseen", "[checkpoint][state][bytes]") {
  const TemporaryFolder folder;
  const std::string path = save_state(tiny_model(), {.shards = 2, .tp = 2}, folder.path(), 2, 1);
  REQUIRE(fault_of(path) == "");
  const Checkpoint checkpoint = open_checkpoint(path);
  std::vector<std::string> missed;
  std::size_t num_bytes = 0, num_files = 0;
  on_state_ranks(tiny_model(), {}, [&](StateRank& rank) {
    for (const auto& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      const auto size = static_cast<std::streamoff>(entry.file_size());
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const bool is_text = name == manifest_name;  // each of its bits: case, digits, spaces
      for (std::streamoff at = 0; at < size; ++at) {
        for (int bit = is_text ? 0 : static_cast<int>(at % 8); bit < 8; bit += is_text ? 1 : 8) {
          const AlteredByte altered(file, at, 1 << bit);
          const auto faults = name.starts_with("shard-") ? shard_faults(checkpoint, rank)
                                                         : std::vector{fault_of(path)};
          for (const std::string& fault : faults) {
            if (fault.find(name) != std::string::npos) continue;
            missed.push_back(name + " byte " + std::to_string(at) + " bit " + std::to_string(bit) +
                             ": '" + fault + "'");
          }
        }
      }
      num_bytes += static_cast<std::size_t>(size);
      ++num_files;
    }
  });
  CHECK(num_files == 4);
  CHECK(num_bytes > 1000);
  if (!missed.empty()) FAIL_CHECK(missed.size() << " missed, the first: " << missed[0]);
  CHECK(fault_of(path) == "");
}

TEST_CASE("no file can be cut, extended, missing or another's", "[checkpoint][state][bytes]") {
  const TemporaryFolder folder;
  const StateLayout layout{.shards = 2, .tp = 2};
  const std::string path = save_state(tiny_model(), layout, folder.path(), 2, 1);
  const std::string other = save_state(tiny_model(), layout, folder.path(), 3, 2);
  for (const char* name : {"MANIFEST", "index.h5", "shard-00000.h5", "shard-00001.h5"}) {
    INFO(name);
    const std::string file = path + "/" + name;
    const std::string bytes = read_all(file);
    for (const std::string& wrong :
         {bytes.substr(0, bytes.size() - 1), bytes + '\0', bytes + '\n', std::string(),
          bytes.substr(0, bytes.size() / 2), read_all(other + "/" + name)}) {
      write_all(file, wrong);
      CHECK_THAT(fault_of(path), Catch::Contains(path));
    }
    fs::remove(file);
    CHECK_THAT(fault_of(path), Catch::Contains(name));
    write_all(file, bytes);
    CHECK(fault_of(path) == "");
  }
}

TEST_CASE("a manifest whose hash fits must tell of the index that is there",
          "[checkpoint][state][bytes]") {
  struct Change {
    std::string what;
    std::function<void(Manifest&)> make;
  };
  const std::vector<Change> changes{
      {"its id", [](Manifest& m) { m.id[0] = m.id[0] == '0' ? '1' : '0'; }},
      {"its number of elements", [](Manifest& m) { ++m.num_elements; }},
      {"its state's fingerprint",
       [](Manifest& m) { m.state_fingerprint[31] = m.state_fingerprint[31] == '0' ? '1' : '0'; }},
      {"its list of files",
       [](Manifest& m) {
         m.files.push_back({"MORE", 4});
       }},
  };
  const TemporaryFolder folder;
  const std::string path = save_state(tiny_model(), {.shards = 2, .tp = 2}, folder.path(), 2, 1);
  const std::string file = path + "/" + manifest_name;
  write_all(path + "/MORE", "more");
  const std::string whole = read_all(file);
  const Manifest manifest = decode_manifest(whole, file);
  REQUIRE(encode(manifest) == whole);
  for (const Change& change : changes) {
    INFO(change.what);
    Manifest changed = manifest;
    change.make(changed);
    write_all(file, encode(changed));
    CHECK_THAT(fault_of(path), Catch::Contains(path + "/index.h5: " + change.what));
  }
  write_all(file, whole);
  CHECK(fault_of(path) == "");
}
