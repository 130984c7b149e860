// MANIFEST: what is written is read, and everything else is refused by name.
#include <catch2/catch.hpp>

#include "core/hash.hpp"
#include "io/checkpoint/manifest.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

Manifest example() {
  return {.id = "0123456789abcdef0123456789abcdef",
          .step = 200,
          .written = "2026-11-30T04:05:06Z",
          .program = "0.1.0",
          .plan_name = "größer",
          .plan_hash = "00112233445566778899aabbccddeeff",
          .layout = "tp 2 x dp 2 x pp 1, zero 1",
          .state_fingerprint = "ffeeddccbbaa99887766554433221100",
          .num_elements = std::uint64_t{1} << 63,
          .index_hash = {0x8000000000000001, 0x0000000000000002},
          .files = {{"shard-00000.h5", 18446744073709551615u}, {"index.h5", 0}}};
}

// `text` with one part replaced, and a hash line that is right again: what a writer other than this
// one might have made.
std::string rewritten(const std::string& from, const std::string& to) {
  std::string text = encode(example());
  text.resize(text.rfind("xxh3-128 "));
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return text + "xxh3-128 " + hash128(text.data(), text.size()).text() + "\n";
}

// The message of the Error(data) that reading it must give.
std::string fault_of(const std::string& text) {
  const auto error = error_of([&] { decode_manifest(text, "a/MANIFEST"); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::data);
  CHECK(says(error, "a/MANIFEST"));
  return error->what();
}

}  // namespace

TEST_CASE("a manifest survives writing and reading", "[manifest]") {
  CHECK(decode_manifest(encode(example()), "MANIFEST") == example());
}

TEST_CASE("a manifest's form does not change", "[manifest]") {
  Manifest small = example();
  small.plan_name = "vit";
  small.num_elements = 7;
  small.files = {{"index.h5", 9}};
  const std::string object = R"({
  "format": "weft-checkpoint",
  "version": [
    1,
    0
  ],
  "id": "0123456789abcdef0123456789abcdef",
  "step": 200,
  "written": "2026-11-30T04:05:06Z",
  "program": "0.1.0",
  "plan_name": "vit",
  "plan_hash": "00112233445566778899aabbccddeeff",
  "layout": "tp 2 x dp 2 x pp 1, zero 1",
  "state_fingerprint": "ffeeddccbbaa99887766554433221100",
  "num_elements": 7,
  "index_hash": "80000000000000010000000000000002",
  "files": [
    {
      "name": "index.h5",
      "num_bytes": 9
    }
  ]
}
)";
  CHECK(encode(small) ==
        object + "xxh3-128 " + hash128(object.data(), object.size()).text() + "\n");
}

TEST_CASE("a manifest cut off at any byte is refused", "[manifest]") {
  const std::string text = encode(example());
  CHECK_THAT(fault_of(""), Catch::Contains("empty file"));
  for (std::size_t size = 1; size < text.size(); ++size) {
    INFO(size << " of " << text.size() << " bytes");
    CHECK_THAT(fault_of(text.substr(0, size)), Catch::Contains("cut off"));
  }
}

TEST_CASE("a manifest with any bit altered is refused", "[manifest]") {
  const std::string text = encode(example());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    INFO("bit " << bit % 8 << " of byte " << bit / 8);
    std::string altered = text;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    CHECK(fault_of(altered) != "");
  }
  CHECK_THAT(fault_of(text + "\n"), Catch::Contains("altered"));
  std::string step = text;
  step[step.find("200")] = '3';
  CHECK_THAT(fault_of(step), Catch::Contains("altered") && Catch::Contains("has the hash"));
}

TEST_CASE("other formats and later versions are named", "[manifest]") {
  CHECK_THAT(fault_of("plain text\n"), Catch::Contains("no manifest"));
  CHECK_THAT(fault_of(rewritten("weft-checkpoint", "warp-checkpoint")),
             Catch::Contains("'warp-checkpoint'") && Catch::Contains("'weft-checkpoint'"));
  CHECK_THAT(fault_of(rewritten("1,\n    0", "2,\n    3")),
             Catch::Contains("2.3") && Catch::Contains("reads 1.x") && Catch::Contains("0.1.0"));
  CHECK_THAT(fault_of(rewritten("1,\n    0", "0,\n    9")), Catch::Contains("0.9"));
  CHECK_THAT(fault_of(rewritten("1,\n    0", "1")), Catch::Contains("two counts"));
  // A later minor version, with something new in it.
  CHECK(decode_manifest(rewritten("1,\n    0", "1,\n    7"), "MANIFEST") == example());
  CHECK(decode_manifest(rewritten("\"step\"", "\"mood\": \"good\",\n  \"step\""), "MANIFEST") ==
        example());
}

TEST_CASE("a manifest with lists in lists is refused, however deep", "[manifest]") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK_THAT(fault_of(rewritten("\"0.1.0\"", deep)),
             Catch::Contains("\"program\" must be a text, and is a list of 1"));
  CHECK_THAT(fault_of(rewritten("200", deep)), Catch::Contains("\"step\" must be a count"));
  CHECK_THAT(
      fault_of(rewritten("{\n      \"name\": \"index.h5\"", deep + ",{\"name\": \"index.h5\"")),
      Catch::Contains("must be an object, found a list of 1"));
  CHECK(fault_of(rewritten("200", "\"" + std::string(1'000'000, 'x') + "\"")).size() < 300);
}

TEST_CASE("what a manifest lacks or has of a wrong type is named", "[manifest]") {
  CHECK_THAT(fault_of(rewritten("\"step\"", "\"stop\"")), Catch::Contains("no \"step\""));
  CHECK_THAT(fault_of(rewritten("200", "-200")), Catch::Contains("\"step\" must be a count"));
  CHECK_THAT(fault_of(rewritten("200", "2e2")), Catch::Contains("\"step\" must be a count"));
  CHECK_THAT(fault_of(rewritten("200", "18446744073709551615")), Catch::Contains("a step"));
  CHECK_THAT(fault_of(rewritten("\"0.1.0\"", "1")), Catch::Contains("\"program\" must be a text"));
  CHECK_THAT(fault_of(rewritten("80000000", "8000000x")), Catch::Contains("hexadecimal"));
  CHECK_THAT(fault_of(rewritten("80000000", "8")), Catch::Contains("hexadecimal"));
  CHECK_THAT(fault_of(rewritten("\"step\": 200", "\"step\": 2 0 0")),
             Catch::Contains("no JSON object"));
}

TEST_CASE("a manifest's files are plain names, each once", "[manifest]") {
  for (const std::string name :
       {"", "../shard-00000.h5", "/etc/passwd", ".", "..", ".lease", "MANIFEST", "a\\u0000b"}) {
    INFO(name);
    CHECK_THAT(fault_of(rewritten("shard-00000.h5", name)), Catch::Contains("cannot be a file"));
  }
  CHECK_THAT(fault_of(rewritten("shard-00000.h5", "index.h5")), Catch::Contains("twice"));
  CHECK_THAT(fault_of(rewritten("index.h5", "other.h5")), Catch::Contains("not name index.h5"));
}
