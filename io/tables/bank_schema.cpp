// The columns, as bank-names.txt and bank-additional-names.txt list them.
#include "io/tables/bank_schema.hpp"

#include <array>

namespace weft {

namespace {

using Name = std::string_view;
using enum BankColumnKind;

constexpr std::array<Name, 12> months = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};

namespace full {
constexpr std::array<Name, 12> jobs = {"admin.",        "unknown",      "unemployed", "management",
                                       "housemaid",     "entrepreneur", "student",    "blue-collar",
                                       "self-employed", "retired",      "technician", "services"};
constexpr std::array<Name, 3> maritals = {"married", "divorced", "single"};
constexpr std::array<Name, 4> educations = {"unknown", "secondary", "primary", "tertiary"};
constexpr std::array<Name, 2> binary = {"yes", "no"};
constexpr std::array<Name, 3> contacts = {"unknown", "telephone", "cellular"};
constexpr std::array<Name, 4> outcomes = {"unknown", "other", "failure", "success"};
constexpr std::array<BankColumn, 17> columns = {{{"age"},
                                                 {"job", category, jobs},
                                                 {"marital", category, maritals},
                                                 {"education", category, educations},
                                                 {"default", category, binary},
                                                 {"balance"},
                                                 {"housing", category, binary},
                                                 {"loan", category, binary},
                                                 {"contact", category, contacts},
                                                 {"day"},
                                                 {"month", category, months},
                                                 {"duration", number, {}, true},
                                                 {"campaign"},
                                                 {"pdays", days_since_contact},
                                                 {"previous"},
                                                 {"poutcome", category, outcomes},
                                                 {"y", label}}};
}  // namespace full

namespace additional {
constexpr std::array<Name, 12> jobs = {"admin.",     "blue-collar", "entrepreneur",  "housemaid",
                                       "management", "retired",     "self-employed", "services",
                                       "student",    "technician",  "unemployed",    "unknown"};
constexpr std::array<Name, 4> maritals = {"divorced", "married", "single", "unknown"};
constexpr std::array<Name, 8> educations = {
    "basic.4y",          "basic.6y", "basic.9y", "high.school", "illiterate", "professional.course",
    "university.degree", "unknown"};
constexpr std::array<Name, 3> ternary = {"no", "yes", "unknown"};
constexpr std::array<Name, 2> contacts = {"cellular", "telephone"};
constexpr std::array<Name, 5> days = {"mon", "tue", "wed", "thu", "fri"};
constexpr std::array<Name, 3> outcomes = {"failure", "nonexistent", "success"};
constexpr std::array<BankColumn, 21> columns = {{{"age"},
                                                 {"job", category, jobs},
                                                 {"marital", category, maritals},
                                                 {"education", category, educations},
                                                 {"default", category, ternary},
                                                 {"housing", category, ternary},
                                                 {"loan", category, ternary},
                                                 {"contact", category, contacts},
                                                 {"month", category, months},
                                                 {"day_of_week", category, days},
                                                 {"duration", number, {}, true},
                                                 {"campaign"},
                                                 {"pdays", days_since_contact},
                                                 {"previous"},
                                                 {"poutcome", category, outcomes},
                                                 {"emp.var.rate"},
                                                 {"cons.price.idx"},
                                                 {"cons.conf.idx"},
                                                 {"euribor3m"},
                                                 {"nr.employed"},
                                                 {"y", label}}};
}  // namespace additional

}  // namespace

std::span<const BankColumn> bank_columns(BankSchema schema) {
  if (schema == BankSchema::full) return full::columns;
  return additional::columns;
}

std::string_view bank_file_name(BankSchema schema) {
  return schema == BankSchema::full ? "bank-full.csv" : "bank-additional-full.csv";
}

index_t bank_num_features(BankSchema schema, bool allow_leak) {
  index_t features = 0;
  for (const BankColumn& column : bank_columns(schema)) {
    if (!column.is_leak || allow_leak) features += column.num_features();
  }
  return features;
}

}  // namespace weft
