// Drawn tables: reproducible, in the official form, with something to learn; never over something.
#include <catch2/catch.hpp>

#include <numeric>

#include "io/tables/bank_check.hpp"
#include "io/tables/bank_encoder.hpp"
#include "io/tables/synthetic_bank.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Rows = std::vector<index_t>;

// Of the rows that `is_chosen`, how many of a hundred say yes.
template <class IsChosen>
double yes_among(const Bank& data, index_t begin, index_t end, IsChosen&& is_chosen) {
  double rows = 0, yes = 0;
  for (index_t r = begin; r < end; ++r) {
    if (!is_chosen(r)) continue;
    ++rows;
    yes += data.labels()[static_cast<std::size_t>(r)];
  }
  REQUIRE(rows > 30);
  return 100 * yes / rows;
}

index_t column_of(const Bank& data, std::string_view name) {
  const auto columns = bank_columns(data.schema());
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const BankColumn& column) { return column.name == name; });
  return found - columns.begin();
}

}  // namespace

TEST_CASE("a drawn table is read by the reader of the official ones", "[synthetic_bank]") {
  const BankSchema schema = GENERATE(BankSchema::full, BankSchema::additional);
  const TemporaryFolder folder;
  make_synthetic_bank(folder / "new/set", {schema, 10000, 1});
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "new/set"), {}) == 1);
  const Bank data(folder / "new/set");
  CHECK(data.schema() == schema);
  CHECK(data.num_rows() == 10000);
  CHECK(data.skipped().total() == 0);
  const std::string bytes = read_all(data.path());
  CHECK((bytes.find("\r\n") != std::string::npos) == (schema == BankSchema::additional));
  Rows rows(10000);
  std::iota(rows.begin(), rows.end(), index_t{0});
  const BankEncoder encoder(data, rows);
  for (const index_t n : encoder.count_other(data, rows)) CHECK(n == 0);
  // Every number varies, so every feature has something to say.
  const std::string record = encoder.record();
  CHECK(record.find("\"deviation\":0.0") == std::string::npos);
  CHECK(record.find("in_no_training_row\":[\"") == std::string::npos);
  const double yes = yes_among(data, 0, 10000, [](index_t) { return true; });
  CHECK(yes > 9);
  CHECK(yes < 16);
  const Split split{.train = rows, .validation = {}, .test = {}};
  CHECK(check(data, split).in_some.groups.empty());
}

TEST_CASE("one column of a drawn table says more than chance", "[synthetic_bank]") {
  const BankSchema schema = GENERATE(BankSchema::full, BankSchema::additional);
  const TemporaryFolder folder;
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2));
  make_synthetic_bank(folder.path(), {schema, 10000, seed});
  const Bank data(folder.path());
  const auto rate = [&](std::string_view name, double from, double to) {
    const index_t column = column_of(data, name);
    return yes_among(data, 0, 10000, [&](index_t r) {
      const double value = data.number(r, column);
      return from <= value && value < to;
    });
  };
  const index_t outcome = column_of(data, "poutcome");
  const auto& outcomes = bank_columns(schema)[static_cast<std::size_t>(outcome)].categories;
  const auto after = [&](std::string_view name, index_t begin, index_t end) {
    return yes_among(data, begin, end, [&](index_t r) {
      return outcomes[static_cast<std::size_t>(data.category(r, outcome))] == name;
    });
  };
  // A rule that the first half shows holds for the second half.
  for (const auto& [begin, end] : {Range{0, 5000}, Range{5000, 10000}}) {
    CHECK(after("success", begin, end) > 40);
    CHECK(after("failure", begin, end) < 20);
  }
  if (schema == BankSchema::full)
    CHECK(rate("balance", 3000, 1e9) > 1.5 * rate("balance", -1e9, 3000));
  else
    CHECK(rate("euribor3m", 0, 2) > 1.5 * rate("euribor3m", 2, 9));
  // What is known after the call says more than all that: the leak that `duration` is.
  CHECK(rate("duration", 450.5, 1e9) == 100);
  CHECK(rate("duration", 0, 150) == 0);
}

TEST_CASE("the same seed draws the same table, whatever its length", "[synthetic_bank]") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, index_t rows, std::uint64_t seed) {
    make_synthetic_bank(folder / name, {BankSchema::full, rows, seed});
    return read_all(folder / name + "/bank-full.csv");
  };
  const std::string bytes = make("a", 600, 5);
  CHECK(std::count(bytes.begin(), bytes.end(), '\n') == 601);
  CHECK(make("b", 600, 5) == bytes);
  CHECK(make("longer", 700, 5).substr(0, bytes.size()) == bytes);
  CHECK(make("other", 600, 6) != bytes);
}

TEST_CASE("a drawn table is never written over something", "[synthetic_bank]") {
  const TemporaryFolder folder;
  write_all(folder / "bank-full.csv", "mine");
  const auto error = error_of([&] {
    make_synthetic_bank(folder.path(), {BankSchema::full, 5, 1});
  });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, folder / "bank-full.csv"));
  CHECK(read_all(folder / "bank-full.csv") == "mine");
  for (const SyntheticBankOptions& wrong :
       {SyntheticBankOptions{.rows = 0}, SyntheticBankOptions{.seed = std::uint64_t{1} << 56}}) {
    const auto refused = error_of([&] { make_synthetic_bank(folder / "x", wrong); });
    REQUIRE(refused);
    CHECK(refused->code() == ExitCode::usage);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}
