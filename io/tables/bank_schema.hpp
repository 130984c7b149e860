// What UCI's Bank Marketing files consist of: their columns, the categories that their own names
// files document, and how wide a row is once it is encoded. Facts of the published files; known
// without any data.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/range.hpp"

namespace weft {

enum class BankSchema {
  full,       // bank-full.csv: 16 columns and y
  additional  // bank-additional-full.csv: 20 columns and y
};

enum class BankColumnKind {
  number,
  days_since_contact,  // pdays: a number, or not_contacted() where the client never was
  category,
  label  // y: no, yes
};

struct BankColumn {
  std::string_view name;
  BankColumnKind kind = BankColumnKind::number;
  std::span<const std::string_view> categories = {};  // as documented; "unknown" is one of them
  // Known only after the call whose success is to be predicted: no feature, unless asked for.
  bool is_leak = false;

  // Features of an encoded row: a number has one; pdays has "contacted before" (0, 1) and the days;
  // a column of n categories has n + 1, the last one for every other category.
  constexpr index_t num_features() const {
    switch (kind) {
      case BankColumnKind::number:
        return 1;
      case BankColumnKind::days_since_contact:
        return 2;
      case BankColumnKind::category:
        return std::ssize(categories) + 1;
      case BankColumnKind::label:
        return 0;
    }
    return 0;
  }
};

// In the order of the official file; the last one is y.
std::span<const BankColumn> bank_columns(BankSchema schema);
// "bank-full.csv"
std::string_view bank_file_name(BankSchema schema);
// The value of pdays that means: not contacted before. -1 and 999.
constexpr double not_contacted(BankSchema schema) { return schema == BankSchema::full ? -1 : 999; }

// Features of an encoded row: 60 and 75, with `duration` 61 and 76.
index_t bank_num_features(BankSchema schema, bool allow_leak = false);

}  // namespace weft
