// A drawn Bank Marketing table in the form of either official file: something to train on where the
// real ones cannot be had. Learnable but not by everything; no stand-in for a real table in a
// result.
//
// Whether a client says yes depends on points, most of them for an earlier success, then for being
// a student or retired, for a low euribor (or a high balance), for a cellular phone; loans and many
// calls take some; noise is larger than all but the first. About one in eight says yes. The months
// and the economy go on every 500 rows, so the table is ordered by time, and `duration` is long
// where the answer was yes: a leak, as in the real tables.
#pragma once

#include <cstdint>
#include <string>

#include "core/range.hpp"
#include "io/tables/bank_schema.hpp"

namespace weft {

struct SyntheticBankOptions {
  BankSchema schema = BankSchema::additional;
  index_t rows = 10000;
  std::uint64_t seed = 1;
};

// A line with its line end: a function of its arguments, so a longer table begins as a shorter one.
std::string synthetic_bank_row(BankSchema schema, std::uint64_t seed, index_t row);

// Writes the file of the schema's name into `folder`, which is made if missing. Throws Error(usage)
// if it exists or an option is not legal, before anything is written.
void make_synthetic_bank(const std::string& folder, const SyntheticBankOptions& options);

}  // namespace weft
