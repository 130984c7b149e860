// Readers of text: the manifest behind a hash line that is right, plans with overrides, logs of
// steps.
#include <fstream>
#include <iterator>

#include "core/hash.hpp"
#include "io/checkpoint/manifest.hpp"
#include "io/plan_file.hpp"
#include "io/step_lines.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/readers.hpp"

namespace weft::test {

namespace {

// --- Manifest

std::string with_hash_line(std::string object) {
  if (!object.ends_with('\n')) object += '\n';
  return object + "xxh3-128 " + hash128(object.data(), object.size()).text() + "\n";
}

void take_manifest(std::string_view bytes) {
  const std::string text(bytes);
  is_taken(ExitCode::data, [&] { decode_manifest(text, "MANIFEST"); });
  Manifest manifest;
  if (!is_taken(ExitCode::data,
                [&] { manifest = decode_manifest(with_hash_line(text), "MANIFEST"); }))
    return;
  expect(decode_manifest(encode(manifest), "MANIFEST") == manifest, "a manifest changes its form");
  bool has_index = false;
  for (const Manifest::File& file : manifest.files) {
    expect(file.name.find('/') == std::string::npos && file.name.front() != '.',
           "a manifest names a file elsewhere: " + file.name);
    has_index = has_index || file.name == "index.h5";
  }
  expect(has_index, "a manifest without index.h5");
}

std::vector<std::string> manifest_seeds() {
  const Manifest manifest{.id = "0123456789abcdef0123456789abcdef",
                          .step = 200,
                          .written = "2026-11-30T04:05:06Z",
                          .program = "0.1.0",
                          .plan_name =
                              "gr\xc3\xb6\xc3\x9f"
                              "er",
                          .plan_hash = "00112233445566778899aabbccddeeff",
                          .layout = "tp 2 x dp 2 x pp 1, zero 1",
                          .state_fingerprint = "ffeeddccbbaa99887766554433221100",
                          .num_elements = 1u << 31,
                          .index_hash = {1, 2},
                          .files = {{"shard-00000.h5", 4096}, {"index.h5", 512}}};
  std::string object = encode(manifest);
  object.resize(object.rfind("xxh3-128 "));
  // The second is of a minor version that is not known yet, with a member of it.
  std::string later = object;
  later.replace(later.find("    0\n"), 6, "    9\n");
  later.replace(later.find("\"step\""), 0, "\"more\": [{}, null, 1e3],\n  ");
  return {object, later, encode(manifest)};
}

// --- Plans: lines that begin with "--set " are overrides, all others are the file.

void take_plan(std::string_view bytes) {
  std::string text;
  std::vector<std::string> overrides;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, size);
    bytes.remove_prefix(std::min(size + 1, bytes.size()));
    if (line.starts_with("--set ")) {
      overrides.emplace_back(line.substr(6));
    } else {
      text.append(line) += '\n';
    }
  }
  is_taken(ExitCode::usage, [&] { parse_plan(text, "plan.toml", overrides, 4); });
  Plan plan;
  if (!is_taken(ExitCode::usage, [&] { plan = parse_plan(text, "plan.toml", overrides, {}); }))
    return;
  const Plan again = parse_plan(to_toml(plan), "plan.toml", {}, {});
  expect(to_toml(again) == to_toml(plan), "a plan's text changes:\n" + to_toml(plan));
  expect(plan_fingerprint(again, FingerprintOf::result) ==
             plan_fingerprint(plan, FingerprintOf::result),
         "a plan's fingerprint changes:\n" + to_toml(plan));
}

std::vector<std::string> plan_seeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"cifar10-vit", "cifar10-mlp", "cifar10-vit-12"}) {
    std::ifstream file(WEFT_PLANS "/" + std::string(name) + ".toml", std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    expect(!seeds.back().empty(), "no plan " + std::string(name));
    // What is said beside the keys is no food for a fuzzer.
    std::string keys;
    for (std::size_t at = 0; at < seeds.back().size();) {
      const std::size_t end = std::min(seeds.back().find('\n', at), seeds.back().size());
      const std::string line = seeds.back().substr(at, end - at);
      keys += line.substr(0, line.find('#')) + "\n";
      at = end + 1;
    }
    seeds.back() = keys;
  }
  seeds.push_back(seeds[0] +
                  "--set layout.tp=2\n--set optimizer.schedule.kind=\"constant\"\n"
                  "--set run.time_limit=1h30m\n--set layout.stages=[1, 2, 3]\n");
  return seeds;
}

// --- Logs of steps: the first byte is the last step that counts.

void take_step_lines(std::string_view bytes) {
  if (bytes.empty()) return;
  const index_t last_step = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  for (const LinesPerStep lines : {LinesPerStep::one, LinesPerStep::several}) {
    const std::string kept = lines_until(bytes, last_step, lines);
    expect(kept.empty() || kept.ends_with('\n'), "half a line is kept");
    expect(kept.size() <= bytes.size() + 1, "lines appear from nowhere");
    expect(lines_until(kept, last_step, lines) == kept, "cutting twice cuts more");
  }
}

std::vector<std::string> step_lines_seeds() {
  return {"\x05{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":2.25}\n{\"step\":9}\n",
          "\x09{\"step\":3}\n{\"step\":2}\n{\"step\":2}\n{\"sco\":[1]}\n{\"step\":"
          "18446744073709551615}\n{\"st"};
}

}  // namespace

FuzzedReader manifest_reader() { return {"manifest", take_manifest, manifest_seeds}; }
FuzzedReader plan_reader() { return {"plan", take_plan, plan_seeds}; }
FuzzedReader step_lines_reader() { return {"step_lines", take_step_lines, step_lines_seeds}; }

}  // namespace weft::test
