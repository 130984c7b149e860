// Repeated texts of small sets, each worked out by hand.
#include <catch2/catch.hpp>

#include "io/text/news_check.hpp"
#include "tests/io/equal_rows.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("texts are equal in all bytes, up to white space, or in their description",
          "[news_check]") {
  const TemporaryFolder folder;
  write_all(folder / "train.csv",
            "\"1\",\"One\",\"some  text\"\n"        // 0
            "\"2\",\"Two\",\"more text\"\n"         // 1
            "\"3\",\" One\",\"some text \"\n"       // 2: 0 up to white space, another class
            "\"4\",\"Two more\",\"text\"\n"         // 3: not 1, a title ends where it ends
            "\"1\",\"One\",\"sometext\"\n"          // 4: not 0, a space is not nothing
            "\"1\",\"Two\",\"more\xc2\xa0text\"\n"  // 5: not 1, no ASCII space
            "\"2\",\"Three\",\"more\ttext\"\n");    // 6: description of 1
  write_all(folder / "test.csv",
            "\"2\",\"Two\",\"more text\"\n"     // 7: 1 in every byte
            "\"2\",\"Four\",\"more\n text\"\n"  // 8: description of 1
            "\"4\",\"Five\",\"other\"\n");      // 9
  const AgNews data(folder.path());
  Split split{.train = {0, 1, 3, 4, 5, 6}, .validation = {2}, .test = {7, 8, 9}};
  const RowCheck found = check(data, split);
  CHECK(found.class_counts[0] == Rows{3, 2, 0, 1});
  CHECK(found.class_counts[1] == Rows{0, 0, 1, 0});
  CHECK(found.class_counts[2] == Rows{0, 2, 0, 1});
  CHECK(found.class_counts[3] == Rows{0, 0, 0, 0});
  CHECK(rows_of(found.exact) == std::vector<Rows>{{1, 7}});
  CHECK(rows_of(found.but_space) == std::vector<Rows>{{0, 2}, {1, 7}});
  CHECK(rows_of(found.in_some) == std::vector<Rows>{{0, 2}, {1, 6, 7, 8}});
  CHECK(found.num_leaks() == 2);
  CHECK(found.exact.num_contradicting() == 0);
  CHECK(found.but_space.num_contradicting() == 1);
  CHECK(found.in_some.num_rows(DataPart::train) == 3);
  CHECK(found.in_some.num_rows(DataPart::test) == 2);
  // Who leaves text 2 out and keeps text 0 has no leak there.
  split.validation.clear();
  CHECK(check(data, split).num_leaks() == 1);
}
