// The table of all keys of a plan: name, field, what is legal, who uses it. Reading, --set,
// printing, messages and the checks of single values all walk this one table, so a new key is one
// new row. It knows nothing of TOML's grammar (io/plan_file) and nothing of rules over several keys
// (plan_rules).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "parallel/plan/plan.hpp"

namespace weft {

// A field that holds two numbers under one key, such as betas = [0.9, 0.999].
struct NumberPair {
  double& (*first)(Plan&);
  double& (*second)(Plan&);
};

// A list of integers, or a word in its place.
struct IntegerList {
  std::vector<index_t>& (*values)(Plan&);
  std::string_view empty_word;  // how the empty list is written
  // Another word, which empties the list and sets this; empty: there is none.
  std::string_view flag_word = {};
  bool& (*flag)(Plan&) = nullptr;
};

// Where a key's value lives in a Plan; the alternative is also its type.
using PlanField =
    std::variant<std::string& (*)(Plan&), bool& (*)(Plan&), index_t& (*)(Plan&),
                 std::optional<index_t>& (*)(Plan&), std::uint64_t& (*)(Plan&), double& (*)(Plan&),
                 std::optional<double>& (*)(Plan&), NumberPair, IntegerList,
                 NumericsMode& (*)(Plan&), LastBatch& (*)(Plan&), TimeSpan& (*)(Plan&)>;

// layout.stages: cut by the range rule; so at first, then by measured times.
inline constexpr std::string_view even_word = "even";
inline constexpr std::string_view measured_word = "measured";

struct Choices {
  std::vector<std::string> now;         // legal in this version
  std::vector<std::string> later = {};  // known words of features that are not built yet
};
struct IntegerRange {
  index_t least;
  index_t most;
  index_t later_most = most;  // above `most`, up to here: values of features that are not built yet
};
// Ends belong to the range unless open; an infinite end is always open.
struct NumberRange {
  double low;
  double high;
  bool open_low = false;
  bool open_high = false;
};
using Legal = std::variant<std::monostate, Choices, IntegerRange, NumberRange>;

// What a key belongs to: `label`s name or place things, `result` decides bits, `layout` does not.
enum class KeyScope { label, result, layout };

struct PlanKey {
  std::string name;
  PlanField field;
  Legal legal = {};
  std::string example = {};  // a legal value, as TOML
  bool required = false;     // where the plan uses the key
  KeyScope scope = KeyScope::result;
  // The key means something only where `user_key` has one of `user_values`; empty: always.
  std::string user_key = {};
  std::vector<std::string> user_values = {};
};

// In the order in which they are printed.
const std::vector<PlanKey>& plan_keys();
const PlanKey* find_key(std::string_view name);  // nullptr: no such key

// Keys, or whole tables, of features that are not built yet.
const std::vector<std::string>& later_keys();

// A value as it comes from a file or a command line, before its type is checked.
using KeyValue = std::variant<std::string, bool, index_t, double, std::vector<index_t>,
                              std::vector<double>>;  // numbers that are not all integers

// Puts `value` into the plan. False where the type does not fit, or where an enumeration or an
// unsigned integer cannot hold it; ranges are checked by validate().
bool assign(const PlanKey& key, Plan& plan, const KeyValue& value);

// The value as TOML, such that reading it gives the same bits; empty where it is not set.
std::string value_text(const PlanKey& key, const Plan& plan);
std::string toml_string(std::string_view text);  // as a TOML string
std::string number_text(double value);           // as a TOML float, shortest that reads back
std::string list_text(const std::vector<index_t>& list);  // [1, 2, 3], or "even"

// What the key expects: "an integer from 1 to 64".
std::string expected_text(const PlanKey& key);

// Whether the plan uses the key, and the fault of giving it although it is not used.
bool is_used(const PlanKey& key, const Plan& plan);
PlanFault unused_fault(const PlanKey& key, const Plan& plan);

// The fault of a value outside of what is legal; `found` as TOML.
PlanFault value_fault(const PlanKey& key, const std::string& found);

// A fault from its parts: "expected E; found F; nearest legal: ...".
PlanFault make_fault(std::string key, const std::string& expected, const std::string& found,
                     std::vector<PlanFix> fixes);

// "batch.global = 64 or 128, or batch.micro = 25".
std::string fixes_text(const std::vector<PlanFix>& fixes);

// The check of each key by itself: legal value, and not given where it is not used.
std::vector<PlanFault> check_keys(const Plan& plan);

}  // namespace weft
