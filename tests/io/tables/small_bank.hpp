// Small Bank Marketing tables, written without weft's code.
#pragma once

#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"

namespace weft::test {

inline const std::vector<std::string> full_header = {
    "age", "job",   "marital",  "education", "default", "balance",  "housing",  "loan", "contact",
    "day", "month", "duration", "campaign",  "pdays",   "previous", "poutcome", "y"};
inline const std::vector<std::string> additional_header = {
    "age",       "job",         "marital",  "education",    "default",        "housing",
    "loan",      "contact",     "month",    "day_of_week",  "duration",       "campaign",
    "pdays",     "previous",    "poutcome", "emp.var.rate", "cons.price.idx", "cons.conf.idx",
    "euribor3m", "nr.employed", "y"};

inline std::string bank_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    const bool is_number =
        !field.empty() && field.find_first_not_of("-.0123456789") == std::string::npos;
    if (!line.empty()) line += ';';
    line += is_number ? field : '"' + field + '"';
  }
  return line + "\n";
}

// A row of bank-full.csv with what a test is about; all else is the same in each.
struct FullRow {
  std::string age = "40", job = "services", balance = "100", pdays = "-1", y = "no";
  std::string duration = "60", marital = "single";
  std::vector<std::string> fields() const {
    return {age, job,   marital,  "primary", "no",  balance, "yes",     "no", "unknown",
            "5", "may", duration, "1",       pdays, "0",     "unknown", y};
  }
};

inline std::string bank_text(const std::vector<FullRow>& rows) {
  std::string text = bank_line(full_header);
  for (const FullRow& row : rows) text += bank_line(row.fields());
  return text;
}

}  // namespace weft::test
