// Tables in CSV form: what is legal, each fault and its place, what is skipped, any text that an
// independent writer makes.
#include <catch2/catch.hpp>

#include <random>
#include <thread>

#include "io/tables/csv_file.hpp"
#include "tests/io/tables/write_csv.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

CsvRows rows_of(const CsvTable& table) {
  CsvRows rows;
  CsvRow row;
  for (index_t r = 0; r < table.num_rows(); ++r) {
    table.read_into(r, row);
    rows.emplace_back(row.fields.begin(), row.fields.end());
  }
  return rows;
}

CsvRows rows_of(std::string_view text, const CsvFormat& format = {}) {
  return rows_of(CsvTable(text, "t.csv", format));
}

struct Faulty {
  std::string text;
  CsvFaultKind kind;
  index_t line, byte, column;
  CsvRows left;  // where it is skipped
};

const std::string two = "a,b\n";
const std::vector<Faulty> faulty_tables = {
    {two + "c\nd,e\n", CsvFaultKind::ragged_row, 2, 1, 2, {{"a", "b"}, {"d", "e"}}},
    {two + "c,d,e\nf,g", CsvFaultKind::ragged_row, 2, 1, 3, {{"a", "b"}, {"f", "g"}}},
    {two + "\nf,g", CsvFaultKind::ragged_row, 2, 1, 2, {{"a", "b"}, {"f", "g"}}},
    {two + "c,\"d\ne,f\n", CsvFaultKind::unclosed_quote, 2, 3, 2, {{"a", "b"}, {"e", "f"}}},
    {two + "\"c\"\"", CsvFaultKind::unclosed_quote, 2, 1, 1, {{"a", "b"}}},
    {two + "\"", CsvFaultKind::unclosed_quote, 2, 1, 1, {{"a", "b"}}},
    {two + "c,\"d\"e\nf,g\n", CsvFaultKind::text_after_quote, 2, 6, 2, {{"a", "b"}, {"f", "g"}}},
    {two + "c,\"d\" \n", CsvFaultKind::text_after_quote, 2, 6, 2, {{"a", "b"}}},
    {two + "c,\"d\"\r", CsvFaultKind::text_after_quote, 2, 6, 2, {{"a", "b"}}},
    // The quote is closed a line later than meant; the rows below it are sound.
    {two + "c,\"d\n\"e\",f\ng,h\n",
     CsvFaultKind::text_after_quote,
     3,
     2,
     2,
     {{"a", "b"}, {"e", "f"}, {"g", "h"}}},
    {two + "c,d\"e\"\nf,g\n", CsvFaultKind::quote_in_field, 2, 4, 2, {{"a", "b"}, {"f", "g"}}},
    {two + "c, \"e\"\nf,g\n", CsvFaultKind::quote_in_field, 2, 4, 2, {{"a", "b"}, {"f", "g"}}},
    {two + "c\rd,e\nf,g\n", CsvFaultKind::bare_return, 2, 2, 1, {{"a", "b"}, {"f", "g"}}},
    {two + "c,d\r", CsvFaultKind::bare_return, 2, 4, 2, {{"a", "b"}}},
    {two + "c,d\r\r\ne,f", CsvFaultKind::bare_return, 2, 4, 2, {{"a", "b"}, {"e", "f"}}},
    {two + std::string("c,d\0e\nf,g\n", 10),
     CsvFaultKind::nul_byte,
     2,
     4,
     2,
     {{"a", "b"}, {"f", "g"}}},
    {two + std::string("c,\"\n\0e\"\nf,g\n", 12),
     CsvFaultKind::nul_byte,
     3,
     1,
     2,
     {{"a", "b"}, {"f", "g"}}},
    {two + "c\xc3,d\nf,g\n", CsvFaultKind::invalid_utf8, 2, 2, 1, {{"a", "b"}, {"f", "g"}}},
    {two + "c,\xe2\x82", CsvFaultKind::invalid_utf8, 2, 3, 2, {{"a", "b"}}},
    // A character whose last byte a separator would be is none; rows keep their extent.
    {two + "caf\xe9,\"ole\"\nf,g\n", CsvFaultKind::invalid_utf8, 2, 4, 1, {{"a", "b"}, {"f", "g"}}},
};

}  // namespace

TEST_CASE("rows, fields, quotes and line ends", "[csv]") {
  CHECK(rows_of("a,b\nc,d\n") == CsvRows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of("a,b\nc,d") == CsvRows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of("a,b\r\nc,d\r\n") == CsvRows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of("a,b\r\nc,d\n") == CsvRows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of("\xef\xbb\xbf"
                "a,b\n") == CsvRows{{"a", "b"}});
  CHECK(rows_of("\xef\xbb\xbf\"a\",b\n") == CsvRows{{"a", "b"}});
  CHECK(rows_of("\"a\",\"b,\"\n\"c\r\nd\",\"\"\n") == CsvRows{{"a", "b,"}, {"c\r\nd", ""}});
  CHECK(rows_of("\"\"\"\",\"a\"\"b\"\"\",\"\"\"c\"\n") == CsvRows{{"\"", "a\"b\"", "\"c"}});
  CHECK(rows_of(",\n,\n") == CsvRows{{"", ""}, {"", ""}});
  CHECK(rows_of("\n\na\n") == CsvRows{{""}, {""}, {"a"}});
  CHECK(rows_of("a") == CsvRows{{"a"}});
  CHECK(rows_of(" a , b \n") == CsvRows{{" a ", " b "}});
  CHECK(rows_of("a;b,c\n", {.separator = ';'}) == CsvRows{{"a", "b,c"}});
  CHECK(rows_of("a\tb\n", {.separator = '\t'}) == CsvRows{{"a", "b"}});
  // 2, 3 and 4 bytes, both ends of each range and around the surrogates.
  const std::string edges =
      "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf"
      "\xbf";
  CHECK(rows_of(edges + ",b\n") == CsvRows{{edges, "b"}});
}

TEST_CASE("a header names the columns", "[csv]") {
  const CsvTable table("\"id\";\"a \"\"b\"\"\"\n1;2\n", "t.csv",
                       {.separator = ';', .has_header = true});
  CHECK(table.column_names() == std::vector<std::string>{"id", "a \"b\""});
  CHECK(table.column("a \"b\"") == 1);
  CHECK(rows_of(table) == CsvRows{{"1", "2"}});
  const auto missing = error_of([&] { table.column("age"); });
  REQUIRE(missing);
  CHECK(missing->code() == ExitCode::data);
  CHECK(says(missing, "t.csv has no column \"age\"; it has 2 columns: id, a \"b\""));
  CHECK(says(error_of([] { CsvTable("a,b", "t.csv", {}).column("a"); }), "has no header"));
  // A header alone is a table without rows.
  CHECK(CsvTable("a,b", "t.csv", {.has_header = true}).num_rows() == 0);
  CHECK(says(error_of([] { rows_of("a,b,a\n", {.has_header = true}); }),
             "t.csv, line 1, column 3: two columns are called \"a\""));
  // A wrong header is refused, whatever is done with faulty rows.
  const CsvFormat skip{.has_header = true, .faulty_row = CsvFormat::FaultyRow::skip};
  CHECK(says(error_of([&] { rows_of("a,\"b\n1,2\n", skip); }), "t.csv, line 1, byte 3, column 2"));
  CsvFormat three = skip;
  three.num_columns = 3;
  CHECK(says(error_of([&] { rows_of("a,b\n1,2\n", three); }), "expected 3 fields"));
}

TEST_CASE("each fault is refused with its place", "[csv]") {
  for (const Faulty& one : faulty_tables) {
    INFO(one.text);
    const auto error = error_of([&] { rows_of(one.text); });
    REQUIRE(error);
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, "t.csv, line " + std::to_string(one.line) + ", byte " +
                          std::to_string(one.byte) + ", column " + std::to_string(one.column) +
                          ": "));
  }
}

TEST_CASE("faulty rows are skipped where asked for, and counted", "[csv]") {
  const CsvFormat skip{.faulty_row = CsvFormat::FaultyRow::skip};
  for (const Faulty& one : faulty_tables) {
    INFO(one.text);
    const CsvTable table(one.text, "t.csv", skip);
    CHECK(rows_of(table) == one.left);
    const CsvSkipped& skipped = table.skipped();
    CHECK(skipped.count[static_cast<std::size_t>(one.kind)] >= 1);
    REQUIRE(!skipped.first.empty());
    CHECK(skipped.first[0].kind == one.kind);
    CHECK(skipped.first[0].line == one.line);
    CHECK(skipped.first[0].byte == one.byte);
    CHECK(skipped.first[0].column == one.column);
    CHECK(!skipped.first[0].what.empty());
    CHECK(!name_of(one.kind).empty());
  }
  // Many of one kind: all counted, the first few named.
  std::string many = "a,b\n";
  for (int i = 0; i < 100; ++i) many += i % 4 == 0 ? "x\n" : "c,d\n";
  const CsvTable table(many, "t.csv", skip);
  CHECK(table.num_rows() == 76);
  CHECK(table.skipped().total() == 25);
  REQUIRE(table.skipped().first.size() == CsvSkipped::num_places);
  CHECK(table.skipped().first[4].line == 18);
}

TEST_CASE("what is no table", "[csv]") {
  for (const char* text : {"", "\xef\xbb\xbf"}) {
    const auto error = error_of([&] { rows_of(text); });
    REQUIRE(error);
    CHECK(error->code() == ExitCode::data);
    CHECK(says(error, "t.csv is empty"));
  }
  for (const char separator : {'"', '\n', '\r', '\0', '\xe9'}) {
    const auto error = error_of([&] { rows_of("a,b\n", {.separator = separator}); });
    REQUIRE(error);
    CHECK(error->code() == ExitCode::usage);
  }
  const auto error = error_of([] { rows_of("a,b\n", {.num_columns = 3}); });
  CHECK(says(error,
             "t.csv, line 1, byte 1, column 3: expected 3 fields with ',' between them, found 2"));
}

TEST_CASE("ill-formed UTF-8 of every kind", "[csv]") {
  // A lone tail, overlong forms, surrogates, too large, cut off; Unicode table 3-7.
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82",
        "\xf0\x9f\x98", "\xe2\x28\xa1", "\xf0\x28\x8c\xbc", "\xc3\xc3\xa9"}) {
    for (const std::size_t lead : {0, 1, 7, 8, 9, 30}) {
      const std::string text = std::string(lead, 'x') + bad + ",y\n";
      const auto error = error_of([&] { rows_of(text); });
      INFO(lead << " " << text);
      CHECK(says(error, "line 1, byte " + std::to_string(lead + 1) + ", column 1: byte 0x"));
    }
  }
}

TEST_CASE("what an independent writer wrote is read", "[csv]") {
  std::mt19937 generator(20261130);
  const auto choose = [&](std::size_t n) { return generator() % n; };
  const std::vector<std::string> pieces = {"a",
                                           "bc",
                                           "\"",
                                           "\"\"",
                                           ",",
                                           ";",
                                           "\n",
                                           "\r",
                                           "\r\n",
                                           " ",
                                           "\xc3\xa9",
                                           "\xe2\x82\xac",
                                           "\xf0\x9f\x98\x80",
                                           "\\",
                                           "'",
                                           "0123456789abcdef"};
  for (int round = 0; round < 2000; ++round) {
    INFO("round " << round);
    CsvRows rows(1 + choose(6), std::vector<std::string>(1 + choose(4)));
    for (auto& row : rows) {
      for (std::string& field : row) {
        for (std::size_t n = choose(5); n > 0; --n) field += pieces[choose(pieces.size())];
      }
    }
    const char separator = choose(2) == 0 ? ',' : ';';
    const std::string text = write_csv(rows, separator, choose);
    INFO(text);
    REQUIRE(rows_of(text, {.separator = separator}) == rows);
  }
}

TEST_CASE("a file is read by several threads, and moved", "[csv]") {
  const TemporaryFolder folder;
  const std::string path = folder / "t.csv";
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += std::to_string(i) + ",\"a \"\"" + std::to_string(i) + "\"\"\"\n";
  write_all(path, text);
  CsvFile opened(path, {});
  const CsvFile file = std::move(opened);
  REQUIRE(file.table().num_rows() == 3000);
  CHECK(file.table().place_of(7, 1) == path + ", line 8, column 2");
  std::array<int, 4> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      CsvRow row;
      for (index_t i = 0; i < 3000; ++i) {
        const index_t r = (i * 7 + static_cast<index_t>(t) * 1001) % 3000;
        file.table().read_into(r, row);
        const std::string n = std::to_string(r);
        wrong[t] += row.fields[0] != n || row.fields[1] != "a \"" + n + "\"";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : wrong) CHECK(n == 0);
  CHECK(says(error_of([&] { CsvFile(folder / "none.csv", {}); }), "none.csv"));
}
