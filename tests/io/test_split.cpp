// The division in training and validation part.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "io/random_order.hpp"
#include "io/split.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("the official split has each image at most once", "[split]") {
  const Split split = make_split(50000, 45000, 5000, 7);
  CHECK(split.train.size() == 45000);
  CHECK(split.validation.size() == 5000);
  std::set<index_t> all(split.train.begin(), split.train.end());
  all.insert(split.validation.begin(), split.validation.end());
  CHECK(all.size() == 50000);
  CHECK(*all.begin() == 0);
  CHECK(*all.rbegin() == 49999);
  CHECK(std::is_sorted(split.train.begin(), split.train.end()));
  CHECK(std::is_sorted(split.validation.begin(), split.validation.end()));
  // Random, not a block: about 1000 of every file.
  for (index_t file = 0; file < 5; ++file) {
    const auto count = std::count_if(split.validation.begin(), split.validation.end(),
                                     [&](index_t i) { return i / 10000 == file; });
    CHECK(count > 850);
    CHECK(count < 1150);
  }
}

TEST_CASE("a split is a function of its seed", "[split]") {
  CHECK(split_record(make_split(500, 400, 100, 7)) == split_record(make_split(500, 400, 100, 7)));
  CHECK(make_split(500, 400, 100, 7).validation != make_split(500, 400, 100, 8).validation);
}

TEST_CASE("a smaller training part leaves the validation part alone", "[split]") {
  CHECK(make_split(500, 400, 100, 7).validation == make_split(500, 50, 100, 7).validation);
}

TEST_CASE("the validation part is the images with the smallest numbers", "[split]") {
  // By a selection of its own: an image is in it if fewer than 20 have a smaller number.
  const Split split = make_split(100, 80, 20, 3);
  for (index_t i = 0; i < 100; ++i) {
    index_t smaller = 0;
    for (index_t j = 0; j < 100; ++j) {
      smaller += random_bits(3, Stream::split, 0, j) < random_bits(3, Stream::split, 0, i);
    }
    const bool in = std::binary_search(split.validation.begin(), split.validation.end(), i);
    CHECK(in == (smaller < 20));
  }
}

TEST_CASE("illegal counts name the numbers and the nearest legal ones", "[split]") {
  const auto too_many = error_of([] { make_split(1000, 45000, 5000, 7); });
  REQUIRE(too_many.has_value());
  CHECK(too_many->code() == ExitCode::usage);
  CHECK(says(too_many, "45000"));
  CHECK(says(too_many, "has 1000 images"));
  CHECK(says(too_many, "train = 900, validation = 100"));
  CHECK(error_of([] { make_split(10, 0, 5, 7); })->code() == ExitCode::usage);
  CHECK(error_of([] { make_split(10, 5, -1, 7); })->code() == ExitCode::usage);
  CHECK(error_of([] { make_split(10, 1, 10, 7); })->code() == ExitCode::usage);
  CHECK_FALSE(error_of([] { make_split(10, 9, 1, 7); }).has_value());
}

TEST_CASE("the record tells a split apart", "[split]") {
  const std::string record = split_record(make_split(50, 40, 10, 7));
  CHECK(record.starts_with(R"({"seed":7,"train":40,"validation":10,"test":0,"train_hash":")"));
  CHECK(record.find('\n') == std::string::npos);
  CHECK(record != split_record(make_split(50, 40, 10, 9)));
}
