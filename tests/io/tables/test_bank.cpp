// Bank Marketing: which file it is, what is refused, and rows as numbers, each worked out by hand.
#include <catch2/catch.hpp>

#include <cmath>
#include <map>

#include "io/tables/bank.hpp"
#include "io/tables/bank_encoder.hpp"
#include "tests/io/tables/small_bank.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Rows = std::vector<index_t>;

// A table in a folder of its own.
class Table {
 public:
  explicit Table(const std::string& text, const std::string& name = "some.csv")
      : path_(folder_ / name) {
    write_all(path_, text);
  }
  Bank open() const { return Bank(path_); }
  std::string path() const { return path_; }
  std::string folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

// By the feature's name, so that no place is counted twice by the same mistake.
std::map<std::string, float> encoded(const BankEncoder& encoder, const Bank& data, index_t row) {
  std::vector<float> x(static_cast<std::size_t>(encoder.num_features()), -7.0f);
  encoder.encode_into(data, row, x);
  std::map<std::string, float> named;
  for (std::size_t i = 0; i < x.size(); ++i) named[encoder.feature_names().at(i)] = x[i];
  REQUIRE(named.size() == x.size());
  return named;
}

const std::vector<std::string> additional_fields = {
    "56",          "housemaid", "married", "basic.4y", "no",    "no",   "no",
    "telephone",   "may",       "mon",     "261",      "1",     "999",  "0",
    "nonexistent", "1.1",       "93.994",  "-36.4",    "4.857", "5191", "yes"};

}  // namespace

TEST_CASE("the schemas are as wide as their documents say", "[bank]") {
  // full: age, balance, day, campaign, previous + pdays' 2 = 7; job 12, marital 3, education 4,
  // default, housing, loan 2 each, contact 3, month 12, poutcome 4 = 44, and 9 others.
  CHECK(bank_num_features(BankSchema::full) == 7 + 44 + 9);
  CHECK(bank_num_features(BankSchema::full, true) == 61);
  // additional: age, campaign, previous and 5 indicators + pdays' 2 = 10; job 12, marital 4,
  // education 8, default, housing, loan 3 each, contact 2, month 12, day_of_week 5, poutcome 3
  // = 55, and 10 others.
  CHECK(bank_num_features(BankSchema::additional) == 10 + 55 + 10);
  CHECK(bank_num_features(BankSchema::additional, true) == 76);
  CHECK(bank_columns(BankSchema::full).size() == 17);
  CHECK(bank_columns(BankSchema::additional).size() == 21);
}

TEST_CASE("a table is told by its header", "[bank]") {
  const Table full(bank_text({{.age = "31"}, {.y = "yes"}}));
  CHECK(full.open().schema() == BankSchema::full);
  CHECK(full.open().num_rows() == 2);
  CHECK(full.open().labels() == std::vector<int>{0, 1});
  const Table additional(bank_line(additional_header) + bank_line(additional_fields));
  const Bank data = additional.open();
  CHECK(data.schema() == BankSchema::additional);
  CHECK(data.number(0, 0) == 56);
  CHECK(data.number(0, 16) == 93.994);
  CHECK(data.labels() == std::vector<int>{1});
  CHECK(bank_columns(BankSchema::additional)[3]
            .categories[static_cast<std::size_t>(data.category(0, 3))] == "basic.4y");

  // Another order of columns is the same table.
  std::string moved;
  for (const auto& fields : {additional_header, additional_fields})
    moved += bank_line(std::vector<std::string>(fields.rbegin(), fields.rend()));
  const Bank again = Table(moved).open();
  CHECK(again.number(0, 16) == 93.994);
  CHECK(again.fingerprint() != data.fingerprint());
  CHECK(again.fingerprint().size() == 32);
}

TEST_CASE("files are found in folders", "[bank]") {
  const Table full(bank_text({{}}), "bank-full.csv");
  CHECK(Bank(full.folder()).path() == full.path());
  const TemporaryFolder outer;
  std::filesystem::create_directories(outer / "bank");
  CHECK(says(error_of([&] { Bank(outer.path()); }), "no Bank Marketing in " + outer.path()));
  write_all(outer / "bank/bank-additional-full.csv",
            bank_line(additional_header) + bank_line(additional_fields));
  CHECK(Bank(outer.path()).schema() == BankSchema::additional);
  write_all(outer / "bank/bank-full.csv", bank_text({{}}));
  CHECK(says(error_of([&] { Bank(outer.path()); }), "holds both tables"));
  CHECK(Bank(outer / "bank/bank-full.csv").schema() == BankSchema::full);
  CHECK(says(error_of([&] { Bank(outer / "none"); }), "does not exist"));
}

TEST_CASE("what is no such table is refused by name", "[bank]") {
  const auto refused = [](const std::string& text, const std::vector<std::string>& parts) {
    const Table table(text);
    const auto error = error_of([&] { table.open(); });
    INFO(text);
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, table.path()));
    for (const std::string& part : parts) CHECK(says(error, part));
  };
  std::vector<std::string> header = full_header, row = FullRow{}.fields();
  header.erase(header.begin() + 5);
  row.erase(row.begin() + 5);
  refused(bank_line(header) + bank_line(row),
          {"bank-full.csv (17 columns", "missing columns: balance; columns too many: none"});
  header = additional_header;
  row = additional_fields;
  header.emplace_back("customer");
  row.emplace_back("1");
  refused(bank_line(header) + bank_line(row),
          {"bank-additional-full.csv (21", "missing columns: none; columns too many: customer"});
  header = full_header;
  header[1] = "jobs";
  refused(bank_line(header) + bank_line(FullRow{}.fields()),
          {"missing columns: job; columns too many: jobs"});
  refused(bank_line(full_header), {"a header and no sound row"});
  refused("age,job\n1,2\n", {"missing columns: age, job"});
  refused(bank_text({{}, {.y = "maybe"}}),
          {"line 3, column 17 (y): expected yes or no, found \"maybe\""});
  for (const char* bad : {"", "x", "1x", " 1", "1 ", "0x10", "inf", "nan", "1e999", "1,5", "+1"})
    refused(bank_text({{}, {}, {.balance = bad}}),
            {"line 4, column 6 (balance): expected a number, found \"" + std::string(bad) + "\""});
  // The CSV form, with its place.
  refused(bank_text({{}}) + "1;2\n", {"line 3, byte 1, column 3: expected 17 fields"});
}

TEST_CASE("rows that break the form are left out where asked for", "[bank]") {
  const Table table(bank_text({{.age = "1"}}) + "1;2\n" + bank_line(FullRow{.age = "3"}.fields()));
  const Bank data(table.path(), CsvFormat::FaultyRow::skip);
  CHECK(data.num_rows() == 2);
  CHECK(data.number(1, 0) == 3);
  CHECK(data.labels().size() == 2);
  CHECK(data.skipped().total() == 1);
  CHECK(data.skipped().first.at(0).line == 3);
}

TEST_CASE("numbers are standardized by the training rows alone", "[bank]") {
  // Balances 1, 3, 5, 7 to train: mean 4, squares 9 + 1 + 1 + 9 = 20, deviation sqrt(5). The last
  // row is not of them, however large it is.
  const Bank data = Table(bank_text({{.balance = "1"},
                                     {.balance = "3"},
                                     {.balance = "1000000"},
                                     {.balance = "5"},
                                     {.balance = "7"}}))
                        .open();
  const BankEncoder encoder(data, Rows{0, 1, 3, 4});
  CHECK(encoder.num_features() == 60);
  CHECK(encoded(encoder, data, 0)["balance"] == static_cast<float>(-3 / std::sqrt(5.0)));
  CHECK(encoded(encoder, data, 4)["balance"] == static_cast<float>(3 / std::sqrt(5.0)));
  CHECK(encoded(encoder, data, 2)["balance"] == static_cast<float>(999996 / std::sqrt(5.0)));
  // Others do not matter: the same without the fifth row.
  const Bank less =
      Table(bank_text({{.balance = "1"}, {.balance = "3"}, {.balance = "5"}, {.balance = "7"}}))
          .open();
  const BankEncoder again(less, Rows{0, 1, 2, 3});
  CHECK(encoded(again, data, 2) == encoded(encoder, data, 2));
  CHECK(again.record() == encoder.record());
}

TEST_CASE("a constant column is 0, also where it was not constant later", "[bank]") {
  // Three times 0.1 does not sum to 0.3: a mean taken for the value would leave a deviation.
  const Bank data =
      Table(
          bank_text({{.balance = "0.1"}, {.balance = "0.1"}, {.balance = "0.1"}, {.balance = "9"}}))
          .open();
  const BankEncoder encoder(data, Rows{0, 1, 2});
  for (index_t row = 0; row < 4; ++row) CHECK(encoded(encoder, data, row)["balance"] == 0.0f);
}

TEST_CASE("pdays: contacted or not, then days among the contacted", "[bank]") {
  // Contacted: 10 and 30, mean 20, deviation 10. -1 is no number of days.
  const Bank data = Table(bank_text({{.pdays = "-1"},
                                     {.pdays = "10"},
                                     {.pdays = "30"},
                                     {.pdays = "-1"},
                                     {.pdays = "50"}}))
                        .open();
  const BankEncoder encoder(data, Rows{0, 1, 2, 3});
  const auto check = [&](index_t row, float contacted, float days) {
    auto x = encoded(encoder, data, row);
    CHECK(x["pdays:contacted"] == contacted);
    CHECK(x["pdays"] == days);
  };
  check(0, 0, 0);
  check(1, 1, -1);
  check(2, 1, 1);
  check(4, 1, 3);
  // Nobody was: no mean to take, no fault.
  const BankEncoder none(data, Rows{0, 3});
  CHECK(encoded(none, data, 4)["pdays:contacted"] == 1);
  CHECK(encoded(none, data, 4)["pdays"] == 0);

  // In the other table it is 999 that means so, and -1 would be a number.
  std::vector<std::string> fields = additional_fields;
  std::string text = bank_line(additional_header) + bank_line(fields);
  for (const char* days : {"3", "5", "-1"}) {
    fields[12] = days;
    text += bank_line(fields);
  }
  const Bank other = Table(text).open();
  const BankEncoder fitted(other, Rows{0, 1, 2});
  CHECK(encoded(fitted, other, 0)["pdays:contacted"] == 0);
  CHECK(encoded(fitted, other, 1)["pdays"] == -1);
  CHECK(encoded(fitted, other, 2)["pdays"] == 1);
  CHECK(encoded(fitted, other, 3)["pdays:contacted"] == 1);
  CHECK(encoded(fitted, other, 3)["pdays"] == -5);
}

TEST_CASE("categories: one place each, the last for what training has not seen", "[bank]") {
  const Bank data = Table(bank_text({{.job = "services"},
                                     {.job = "unknown"},
                                     {.job = "student"},    // documented, in no training row
                                     {.job = "astronaut"},  // not documented
                                     {.job = "astronaut"},
                                     {.job = "services", .marital = "unknown"}}))
                        .open();
  const Rows train = {0, 1, 3};
  const BankEncoder encoder(data, train);
  const auto job = [&](index_t row) {
    std::string ones;
    for (const auto& [name, value] : encoded(encoder, data, row)) {
      if (!name.starts_with("job=")) continue;
      CHECK((value == 0 || value == 1));
      if (value == 1) ones += name + ";";
    }
    return ones;
  };
  CHECK(job(0) == "job=services;");
  CHECK(job(1) == "job=unknown;");
  CHECK(job(2) == "job=(other);");
  CHECK(job(3) == "job=(other);");
  CHECK(job(4) == "job=(other);");
  CHECK(encoded(encoder, data, 5)["marital=(other)"] == 1);
  CHECK(encoded(encoder, data, 5)["marital=single"] == 0);

  const std::vector<index_t> in_training = encoder.count_other(data, train);
  const std::vector<index_t> elsewhere = encoder.count_other(data, Rows{2, 4, 5});
  REQUIRE(elsewhere.size() == 17);
  for (std::size_t c = 0; c < 17; ++c) {
    CHECK(in_training[c] == (c == 1 ? 1 : 0));
    CHECK(elsewhere[c] == (c == 1 ? 2 : c == 2 ? 1 : 0));
  }
  // Every row has a single 1 in each of nine columns.
  for (index_t row = 0; row < data.num_rows(); ++row) {
    float ones = 0;
    for (const auto& [name, value] : encoded(encoder, data, row))
      if (name.find('=') != std::string::npos) ones += value;
    CHECK(ones == 9);
  }
}

TEST_CASE("duration is no feature unless asked for", "[bank]") {
  const Bank data = Table(bank_text({{.duration = "10"}, {.duration = "30"}})).open();
  const BankEncoder honest(data, Rows{0, 1});
  CHECK(encoded(honest, data, 0).count("duration") == 0);
  CHECK(honest.record().find("duration") == std::string::npos);
  // Rows that differ in it alone are the same row.
  CHECK(encoded(honest, data, 0) == encoded(honest, data, 1));
  const BankEncoder leaking(data, Rows{0, 1}, true);
  CHECK(leaking.num_features() == 61);
  CHECK(encoded(leaking, data, 0)["duration"] == -1);
  CHECK(leaking.record().find("\"allow_leak\":true") != std::string::npos);
}

TEST_CASE("an encoder is fitted on increasing rows, each once", "[bank]") {
  const Bank data = Table(bank_text({{}, {}, {}})).open();
  for (const Rows& rows : {Rows{}, Rows{0, 0}, Rows{1, 0}, Rows{-1, 0}, Rows{1, 3}}) {
    const auto error = error_of([&] { BankEncoder(data, rows); });
    REQUIRE(error);
    CHECK(error->code() == ExitCode::usage);
  }
}

TEST_CASE("groups are rows of equal text; there is no customer", "[bank]") {
  const Bank data =
      Table(bank_text(
                {{.job = "student"}, {.job = "retired"}, {.job = "student"}, {.job = "admin."}}))
          .open();
  CHECK(data.groups("job") == Rows{0, 1, 0, 2});
  CHECK(data.groups("day") == Rows{0, 0, 0, 0});
  const auto error = error_of([&] { data.groups("customer"); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, "a split by customer cannot be made"));
}
