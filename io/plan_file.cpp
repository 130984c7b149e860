#include "io/plan_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"
#include "parallel/plan/nearest.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

namespace {

// Where something was said, and the order in which faults are listed: the file from its top, then
// overrides, then what is missing.
struct Place {
  std::int64_t line = std::numeric_limits<std::int64_t>::max();
  std::int64_t column = 0;
  std::string text;
};

struct Entry {
  std::optional<KeyValue> value;  // empty: of a type that no key has
  std::string found;              // "the integer 5"
  Place place;
};

// A list of numbers; integers where all of them are.
std::optional<KeyValue> list_value(const toml::array& array) {
  std::vector<index_t> integers;
  std::vector<double> numbers;
  for (const toml::node& node : array) {
    if (!node.is_number()) return std::nullopt;
    if (node.is_integer()) integers.push_back(*node.value<std::int64_t>());
    numbers.push_back(*node.value<double>());
  }
  if (integers.size() == numbers.size()) return KeyValue(std::move(integers));
  return KeyValue(std::move(numbers));
}

std::optional<KeyValue> key_value(const toml::node& node) {
  if (const auto* value = node.as_string()) return KeyValue(value->get());
  if (const auto* value = node.as_boolean()) return KeyValue(value->get());
  if (const auto* value = node.as_integer()) return KeyValue(index_t{value->get()});
  if (const auto* value = node.as_floating_point()) return KeyValue(value->get());
  if (const toml::array* array = node.as_array()) return list_value(*array);
  return std::nullopt;
}

std::string found_text(const toml::node& node) {
  if (const auto* value = node.as_string()) return "the string " + toml_string(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return fmt::format("the integer {}", value->get());
  if (const auto* value = node.as_floating_point())
    return "the number " + number_text(value->get());
  if (node.is_table()) return "a table";
  if (const auto* array = node.as_array()) {
    return fmt::format("an array of {} {}", array->size(), array->size() == 1 ? "value" : "values");
  }
  return "a date or time";
}

// Keys below a table: "train, validation, seed"; empty where no key is below it.
std::string keys_below(const std::string& table) {
  std::string names;
  for (const PlanKey& key : plan_keys()) {
    if (!key.name.starts_with(table + '.')) continue;
    names += (names.empty() ? "" : ", ") + key.name.substr(table.size() + 1);
  }
  return names;
}

bool is_later(const std::string& name) {
  const std::vector<std::string>& keys = later_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return name == key || name.starts_with(key + '.');
  });
}

// Gathers what a file and its overrides say, then turns it into a plan or one Error.
class PlanReader {
 public:
  explicit PlanReader(std::string file) : file_(std::move(file)) {}

  void read_document(std::string_view text) {
    try {
      const toml::table document = toml::parse(text);
      add_table("", document, nullptr);
    } catch (const toml::parse_error& error) {
      add_fault(place_of(error.source()), fmt::format("not TOML: {}", error.description()));
      throw_faults();  // what the rest of the file says is not known
    }
  }

  void apply_overrides(const std::vector<std::string>& overrides) {
    for (const std::string& setting : overrides) apply_override(setting);
  }

  Plan finish(std::optional<index_t> num_ranks);

 private:
  struct Fault {
    Place place;
    std::string text;
  };

  Place place_of(const toml::source_region& region) const {
    const auto [line, column] = region.begin;
    return {line, column, fmt::format("{}:{}:{}", file_, line, column)};
  }

  void add_fault(Place place, std::string text) {
    faults_.push_back({std::move(place), std::move(text)});
  }

  // `override_place`: of the override that holds the table; nullptr: keys have their own places.
  void add_table(const std::string& prefix, const toml::table& table, const Place* override_place);
  void add_node(const std::string& name, const toml::node& node, const Place& place,
                const Place* override_place);
  void add_unknown(const std::string& name, const Place& place);
  void apply_override(const std::string& setting);
  void forget(const std::string& name);

  void assign_entries(Plan& plan);
  void report_missing(const Plan& plan);
  void report_faults(const Plan& plan, std::optional<index_t> num_ranks);
  void report_unused(const Plan& plan);
  Place place_of_key(const PlanFault& fault) const;
  [[noreturn]] void throw_faults();

  std::string file_;
  std::map<std::string, Entry> entries_;  // by the key's full name
  std::vector<Fault> faults_;
  std::set<std::string> broken_;  // keys whose value is unknown, or that have a fault already
  std::int64_t num_overrides_ = 0;
};

void PlanReader::add_table(const std::string& prefix, const toml::table& table,
                           const Place* override_place) {
  for (const auto& [key, node] : table) {
    // A quoted key with a dot inside is one name, and no key of ours has one.
    const std::string part(key.str());
    const std::string shown = part.find('.') == std::string::npos ? part : toml_string(part);
    const std::string name = prefix.empty() ? shown : prefix + '.' + shown;
    add_node(name, node, override_place != nullptr ? *override_place : place_of(key.source()),
             override_place);
  }
}

void PlanReader::add_node(const std::string& name, const toml::node& node, const Place& place,
                          const Place* override_place) {
  const toml::table* table = node.as_table();
  if (is_later(name)) {
    add_fault(place, fmt::format("{}: not in this version; remove it", name));
  } else if (find_key(name) != nullptr) {
    entries_[name] = {key_value(node), found_text(node), place};
  } else if (const std::string keys = keys_below(name); !keys.empty() && table == nullptr) {
    add_fault(place, fmt::format("{}: expected a table with the keys {}; found {}", name, keys,
                                 found_text(node)));
  } else if (table != nullptr && (!keys.empty() || !table->empty())) {
    add_table(name, *table, override_place);
  } else {
    add_unknown(name, place);
  }
}

void PlanReader::add_unknown(const std::string& name, const Place& place) {
  std::vector<std::string> names;
  for (const PlanKey& key : plan_keys()) names.push_back(key.name);
  const std::size_t num_known = names.size();
  names.insert(names.end(), later_keys().begin(), later_keys().end());
  const std::size_t nearest = nearest_name(name, names);
  add_fault(place, fmt::format("{}: unknown key; did you mean {}{}?", name, names[nearest],
                               nearest < num_known ? "" : " (not in this version)"));
  // One slip, one fault: the key that was meant does not count as missing as well.
  broken_.insert(names[nearest]);
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The value of an override as a document with the one key "value".
toml::table override_document(const std::string& value) {
  try {
    toml::table document = toml::parse("value = " + value);
    if (document.size() == 1) return document;
  } catch (const toml::parse_error&) {
    // Not TOML: a string.
  }
  toml::table document;
  document.insert("value", value);
  return document;
}

void PlanReader::apply_override(const std::string& setting) {
  const Place place{std::numeric_limits<std::int64_t>::max() - 1, num_overrides_++,
                    "--set " + setting};
  const std::size_t equals = setting.find('=');
  const std::string name = trimmed(setting.substr(0, equals));
  if (equals == std::string::npos || name.empty()) {
    add_fault(place, "expected KEY=VALUE, such as --set layout.tp=2");
    return;
  }
  forget(name);
  // The two ways to give a run's length are one choice: an override of it replaces the file's.
  const std::string other = name == "run.steps" ? "run.epochs" : "run.steps";
  const bool is_length = name == "run.steps" || name == "run.epochs";
  if (is_length && entries_.contains(other) && entries_[other].place.line < place.line) {
    forget(other);
  }
  const toml::table document = override_document(trimmed(setting.substr(equals + 1)));
  add_node(name, *document.get("value"), place, &place);
}

void PlanReader::forget(const std::string& name) {
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.first == name || entry.first.starts_with(name + '.');
  });
}

void PlanReader::assign_entries(Plan& plan) {
  for (const auto& [name, entry] : entries_) {
    const PlanKey& key = *find_key(name);
    if (entry.value && assign(key, plan, *entry.value)) continue;
    broken_.insert(name);
    const std::string* word = entry.value ? std::get_if<std::string>(&*entry.value) : nullptr;
    const index_t* integer = entry.value ? std::get_if<index_t>(&*entry.value) : nullptr;
    if (word != nullptr && std::holds_alternative<Choices>(key.legal)) {
      add_fault(entry.place, name + ": " + value_fault(key, toml_string(*word)).message);
    } else if (integer != nullptr && std::holds_alternative<IntegerRange>(key.legal)) {
      add_fault(entry.place, name + ": " + value_fault(key, fmt::format("{}", *integer)).message);
    } else {
      const std::string example = key.example.empty() ? "" : ", such as " + key.example;
      add_fault(entry.place, fmt::format("{}: expected {}{}; found {}", name, expected_text(key),
                                         example, entry.found));
    }
  }
}

void PlanReader::report_missing(const Plan& plan) {
  for (const PlanKey& key : plan_keys()) {
    if (!key.required || entries_.contains(key.name) || broken_.contains(key.name)) continue;
    if (!is_used(key, plan) || broken_.contains(key.user_key)) continue;
    broken_.insert(key.name);
    add_fault({.text = file_}, fmt::format("{}: missing; expected {}, such as {}", key.name,
                                           expected_text(key), key.example));
  }
}

Place PlanReader::place_of_key(const PlanFault& fault) const {
  const auto own = entries_.find(fault.key);
  if (own != entries_.end()) return own->second.place;
  for (const std::string& key : fault.involved) {
    const auto entry = entries_.find(key);
    if (entry != entries_.end()) return entry->second.place;
  }
  return {.text = file_};
}

void PlanReader::report_faults(const Plan& plan, std::optional<index_t> num_ranks) {
  std::set<std::string> faulty;
  for (const PlanFault& fault : validate(plan, num_ranks)) {
    // A fault that only follows from a value which could not be read would mislead.
    const auto is_broken = [&](const std::string& key) { return broken_.contains(key); };
    if (is_broken(fault.key)) continue;
    if (std::any_of(fault.involved.begin(), fault.involved.end(), is_broken)) continue;
    add_fault(place_of_key(fault), fault.key + ": " + fault.message);
    faulty.insert(fault.key);
  }
  broken_.merge(faulty);
}

void PlanReader::report_unused(const Plan& plan) {
  for (const auto& [name, entry] : entries_) {
    const PlanKey& key = *find_key(name);
    if (is_used(key, plan) || broken_.contains(key.user_key) || broken_.contains(name)) continue;
    broken_.insert(name);
    add_fault(entry.place, name + ": " + unused_fault(key, plan).message);
  }
}

void PlanReader::throw_faults() {
  std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  std::string message;
  for (const Fault& fault : faults_) {
    message += fmt::format("{}{}: {}", message.empty() ? "" : "\n", fault.place.text, fault.text);
  }
  throw Error(ExitCode::usage, message);
}

Plan PlanReader::finish(std::optional<index_t> num_ranks) {
  Plan plan;
  plan.name = std::filesystem::path(file_).stem().string();
  assign_entries(plan);
  report_missing(plan);
  report_faults(plan, num_ranks);
  report_unused(plan);
  if (!faults_.empty()) throw_faults();
  return plan;
}

}  // namespace

Plan parse_plan(std::string_view text, const std::string& file,
                const std::vector<std::string>& overrides, std::optional<index_t> num_ranks) {
  PlanReader reader(file);
  reader.read_document(text);
  reader.apply_overrides(overrides);
  return reader.finish(num_ranks);
}

Plan load_plan(const std::filesystem::path& path, const std::vector<std::string>& overrides,
               std::optional<index_t> num_ranks) {
  std::error_code status;
  require(!std::filesystem::is_directory(path, status), ExitCode::usage,
          fmt::format("{}: expected a plan (a TOML file); found a folder", path.string()));
  std::ifstream file(path, std::ios::binary);
  require(file.good(), ExitCode::usage,
          fmt::format("{}: expected a plan (a TOML file); found no file that can be read",
                      path.string()));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_plan(text, path.string(), overrides, num_ranks);
}

}  // namespace weft
