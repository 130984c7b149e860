// A table of names for tensors of other programs: what it maps, and what it refuses.
#include <catch2/catch.hpp>

#include "io/name_table.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Names = std::vector<std::string>;

Names mapped(const std::string& table, const Names& ours) {
  return NameTable::parse("[names]\n" + table, "t.toml").names_of(ours);
}

// The message of a refusal, whose code is that of bad usage.
std::string refusal(const std::string& text, const Names& ours = {"a", "b"}) {
  const auto error = error_of([&] { NameTable::parse(text, "t.toml").names_of(ours); });
  if (!error) return "no error";
  CHECK(error->code() == ExitCode::usage);
  return error->what();
}

}  // namespace

TEST_CASE("names by a table", "[name_table]") {
  CHECK(NameTable().names_of({"a", "b.c"}) == Names{"a", "b.c"});
  CHECK(mapped("\"a\" = \"x.y\"", {"a", "b"}) == Names{"x.y", "b"});
  // The number goes over; what is no number is no match.
  CHECK(
      mapped("\"block.*.q\" = \"layer.*.query\"", {"block.0.q", "block.17.q", "block.x.q", "q"}) ==
      Names{"layer.0.query", "layer.17.query", "block.x.q", "q"});
  CHECK(mapped("\"b.*.q\" = \"l.*\"\n\"b.1.q\" = \"one\"", {"b.0.q", "b.1.q"}) ==
        Names{"l.0", "one"});
  CHECK(mapped("\"b.*.q\" = \"l.*\"\n\"b.1.q\" = \"one\"", {"b.1.q", "b.2.q"}) ==
        Names{"one", "l.2"});
  // Names may change places.
  CHECK(mapped("a = \"b\"\nb = \"a\"", {"a", "b"}) == Names{"b", "a"});
}

TEST_CASE("a table that cannot be meant", "[name_table]") {
  using Catch::Contains;
  CHECK_THAT(refusal("[names]\na = "), Contains("t.toml:2"));
  CHECK_THAT(refusal("a = \"x\""), Contains("one table [names]"));
  CHECK_THAT(refusal("[names]\n[more]\n"), Contains("one table [names]"));
  CHECK_THAT(refusal("[names]\na = 1"), Contains("t.toml:2: a") && Contains("in quotes"));
  CHECK_THAT(refusal("[names]\na.b = \"x\""), Contains("quoted, too"));
  CHECK_THAT(refusal("[names]\n\"a.*\" = \"x\""), Contains("one * on both sides"));
  CHECK_THAT(refusal("[names]\n\"*.*\" = \"*.*\""), Contains("one * on both sides"));
  CHECK_THAT(refusal("[names]\na = \"b\""), Contains("a and b would both be b"));
  CHECK_THAT(refusal("[names]\nc = \"d\""), Contains("c is the name of no tensor"));
  for (const char* theirs : {"__metadata__", "optimizer.exp_avg.a", "optimizer."})
    CHECK_THAT(refusal("[names]\na = \"" + std::string(theirs) + "\""),
               Contains("t.toml:2: a: expected a parameter's name, found " + std::string(theirs)));
  // Of two lines for many the order would decide; a line for the one name does.
  const std::string two = "[names]\n\"b.*.q\" = \"l.*\"\n\"b.1*.q\" = \"m.*\"\n";
  CHECK_THAT(refusal(two, {"b.2.q", "b.12.q"}),
             Contains("b.*.q and b.1*.q are both for b.12.q") ||
                 Contains("b.1*.q and b.*.q are both for b.12.q"));
  CHECK(NameTable::parse(two + "\"b.12.q\" = \"one\"", "t.toml").names_of({"b.12.q", "b.2.q"}) ==
        Names{"one", "l.2"});
  const TemporaryFolder folder;
  CHECK(says(error_of([&] { NameTable::read(folder / "none"); }), folder / "none"));
}
