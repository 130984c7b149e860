#include "io/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"

namespace weft {
namespace {

constexpr const char* format_name = "weft-checkpoint";
constexpr std::string_view hash_prefix = "xxh3-128 ";
constexpr std::size_t hash_line_bytes = hash_prefix.size() + 32 + 1;  // with the line's end

std::string hash_line(const std::string& object) {
  return fmt::format("{}{}\n", hash_prefix, hash128(object.data(), object.size()).text());
}

// The object's text, once its hash has proved it whole.
std::string verified_object(const std::string& text, const std::string& path) {
  require(text.starts_with('{'), ExitCode::data,
          path + " is no manifest of a checkpoint: expected a JSON object, found " +
              (text.empty() ? "an empty file" : "another kind of file"));
  const bool has_line =
      text.size() > hash_line_bytes && text.back() == '\n' &&
      text.compare(text.size() - hash_line_bytes, hash_prefix.size(), hash_prefix) == 0 &&
      text[text.size() - hash_line_bytes - 1] == '\n';
  require(has_line, ExitCode::data,
          path + " is cut off or altered: its last line must be '" + std::string(hash_prefix) +
              "' and a hash; use another checkpoint");
  const std::string object = text.substr(0, text.size() - hash_line_bytes);
  const std::string expected = hash_line(object);
  require(text.ends_with(expected), ExitCode::data,
          fmt::format("{} is altered: its text has the hash {}, its last line says {}; use another "
                      "checkpoint",
                      path, expected.substr(hash_prefix.size(), 32),
                      text.substr(text.size() - 33, 32)));
  return object;
}

// For a message: short, and without recursion, which lists in lists would drive off the stack.
std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {} members", value.size());
  const std::string text = value.dump();
  constexpr std::size_t most_bytes = 80;
  return text.size() <= most_bytes ? text : fmt::format("a text of {} bytes", text.size());
}

// Reads members of one object, and says where one is missing or of another type.
class Members {
 public:
  Members(const nlohmann::json& object, const std::string& path) : object_(object), path_(path) {}

  std::string text(const char* key) const {
    const nlohmann::json& value = at(key);
    require_type(value.is_string(), key, "a text");
    return value.get<std::string>();
  }
  std::uint64_t count(const char* key) const {
    const nlohmann::json& value = at(key);
    require_type(value.is_number_unsigned(), key, "a count");
    return value.get<std::uint64_t>();
  }
  const nlohmann::json& list(const char* key) const {
    const nlohmann::json& value = at(key);
    require_type(value.is_array(), key, "a list");
    return value;
  }

 private:
  const nlohmann::json& at(const char* key) const {
    const auto found = object_.find(key);
    require(found != object_.end(), ExitCode::data,
            fmt::format("{} has no \"{}\": it was not written by weft", path_, key));
    return *found;
  }
  void require_type(bool is_right, const char* key, const char* expected) const {
    if (is_right) return;
    throw Error(ExitCode::data, fmt::format("{}: \"{}\" must be {}, and is {}", path_, key,
                                            expected, shown(object_.at(key))));
  }

  const nlohmann::json& object_;
  const std::string& path_;
};

void require_known_version(const Members& members, const std::string& path) {
  const std::string format = members.text("format");
  require(format == format_name, ExitCode::data,
          fmt::format("{} is of the format '{}', expected '{}': this is no checkpoint of weft",
                      path, format, format_name));
  const nlohmann::json& version = members.list("version");
  require(version.size() == 2 && version[0].is_number_unsigned() && version[1].is_number_unsigned(),
          ExitCode::data, path + ": \"version\" must be two counts, and is " + shown(version));
  require(version[0].get<std::uint64_t>() == Manifest::major_version, ExitCode::data,
          fmt::format("{} is of version {}.{} of the format and this weft reads {}.x: use the weft "
                      "that wrote it, \"{}\"",
                      path, version[0].dump(), version[1].dump(), Manifest::major_version,
                      members.text("program")));
}

Hash128 hash_from(const std::string& text, const std::string& path) {
  require(text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos,
          ExitCode::data,
          fmt::format("{}: a hash has 32 hexadecimal digits, found '{}'", path, text));
  return {std::stoull(text.substr(0, 16), nullptr, 16), std::stoull(text.substr(16), nullptr, 16)};
}

// A name leads to a file of this folder and nowhere else.
bool is_file_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name != "MANIFEST" &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

std::vector<Manifest::File> files_from(const nlohmann::json& list, const std::string& path) {
  std::vector<Manifest::File> files;
  std::set<std::string> names;
  for (const nlohmann::json& entry : list) {
    require(entry.is_object(), ExitCode::data,
            path + ": each of \"files\" must be an object, found " + shown(entry));
    const Members members(entry, path);
    files.push_back({members.text("name"), members.count("num_bytes")});
    const std::string& name = files.back().name;
    require(is_file_name(name), ExitCode::data,
            fmt::format("{}: {} cannot be a file of a checkpoint", path, shown(entry.at("name"))));
    require(names.insert(name).second, ExitCode::data, path + " names " + name + " twice");
  }
  require(names.contains("index.h5"), ExitCode::data, path + " does not name index.h5");
  return files;
}

}  // namespace

std::string encode(const Manifest& manifest) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const Manifest::File& file : manifest.files)
    files.push_back({{"name", file.name}, {"num_bytes", file.num_bytes}});
  const nlohmann::ordered_json object{
      {"format", format_name},
      {"version", {Manifest::major_version, Manifest::minor_version}},
      {"id", manifest.id},
      {"step", static_cast<std::uint64_t>(manifest.step)},
      {"written", manifest.written},
      {"program", manifest.program},
      {"plan_name", manifest.plan_name},
      {"plan_hash", manifest.plan_hash},
      {"layout", manifest.layout},
      {"state_fingerprint", manifest.state_fingerprint},
      {"num_elements", manifest.num_elements},
      {"index_hash", manifest.index_hash.text()},
      {"files", files}};
  const std::string text =
      object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return text + hash_line(text);
}

Manifest decode_manifest(const std::string& text, const std::string& path) {
  const std::string object = verified_object(text, path);
  const nlohmann::json json = nlohmann::json::parse(object, nullptr, false);
  require(json.is_object(), ExitCode::data, path + " holds no JSON object: weft did not write it");
  const Members members(json, path);
  require_known_version(members, path);

  Manifest manifest;
  manifest.id = members.text("id");
  const std::uint64_t step = members.count("step");
  require(step <= std::uint64_t{std::numeric_limits<index_t>::max()}, ExitCode::data,
          fmt::format("{}: {} cannot be a step", path, step));
  manifest.step = static_cast<index_t>(step);
  manifest.written = members.text("written");
  manifest.program = members.text("program");
  manifest.plan_name = members.text("plan_name");
  manifest.plan_hash = members.text("plan_hash");
  manifest.layout = members.text("layout");
  manifest.state_fingerprint = members.text("state_fingerprint");
  manifest.num_elements = members.count("num_elements");
  manifest.index_hash = hash_from(members.text("index_hash"), path);
  manifest.files = files_from(members.list("files"), path);
  return manifest;
}

}  // namespace weft
