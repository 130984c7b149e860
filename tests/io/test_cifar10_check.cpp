// Damaged rows, equal images and leaks, put into a small set by hand.
#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "io/cifar10_check.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr index_t rows = 20;

// 100 training images and 20 test images, all different; any of them may be altered.
class Altered {
 public:
  Altered() { write_small_cifar10(folder_.path(), rows); }

  // Images count through the six files: 100 is the first of the test.
  void set_label(index_t image, int label) { change(image, 0, std::string(1, char(label))); }
  void set_pixels(index_t image, const std::string& pixels) { change(image, 1, pixels); }
  std::string pixels(index_t image) const {
    return read_all(path_of(image)).substr(offset(image) + 1, 3072);
  }
  void copy_pixels(index_t from, index_t to) { set_pixels(to, pixels(from)); }

  Cifar10Check check(const Split& split) const {
    return weft::check(Cifar10(folder_.path()), split);
  }

 private:
  std::string path_of(index_t image) const {
    return folder_ / Cifar10::file_names[static_cast<std::size_t>(image / rows)];
  }
  static std::size_t offset(index_t image) { return static_cast<std::size_t>(image % rows) * 3073; }
  void change(index_t image, std::size_t at, const std::string& bytes) {
    std::string file = read_all(path_of(image));
    file.replace(offset(image) + at, bytes.size(), bytes);
    write_all(path_of(image), file);
  }
  TemporaryFolder folder_;
};

// Which images are where is said here, not drawn: 0..79 to train, 80..89 to validate, ten unused.
Split plain_split() {
  Split split;
  for (index_t i = 0; i < 80; ++i) split.train.push_back(i);
  for (index_t i = 80; i < 90; ++i) split.validation.push_back(i);
  return split;
}

using Images = std::vector<index_t>;
Images images_of(const EqualImages& group) {
  Images images;
  for (const ImagePlace& place : group.places) images.push_back(place.file * rows + place.row);
  return images;
}

}  // namespace

TEST_CASE("a sound set has nothing but its classes", "[cifar10_check]") {
  const Cifar10Check found = Altered().check(plain_split());
  CHECK(found.damaged.empty());
  CHECK(found.equal.empty());
  CHECK(found.num_leaks() == 0);
  const auto all = [](index_t count) {
    Cifar10Check::Counts counts;
    counts.fill(count);
    return counts;
  };
  CHECK(found.class_counts[0] == all(8));
  CHECK(found.class_counts[1] == all(1));
  CHECK(found.class_counts[2] == all(2));
  CHECK(found.class_counts[3] == all(1));
}

TEST_CASE("equal images are found inside splits and across them", "[cifar10_check]") {
  struct Case {
    Images images;  // the first one's pixels go to the others
    bool is_leak;
    bool labels_differ;
  };
  // Labels are the image's number mod 10.
  const std::vector<Case> cases = {
      {{3, 13}, false, false},    {{3, 14}, false, true},          {{81, 84}, false, true},
      {{107, 117}, false, false}, {{5, 85}, true, false},          {{79, 80}, true, true},
      {{6, 106}, true, false},    {{82, 102}, true, false},        {{7, 97}, false, false},
      {{95, 105}, false, false},  {{8, 18, 98, 108}, true, false}, {{1, 2, 3, 4}, false, true},
      {{0, 119}, true, true},     {{90, 99}, false, true},         {{19, 20}, false, true},
      {{9, 99, 109}, true, false}};
  for (const Case& one : cases) {
    Altered set;
    for (const index_t image : one.images) set.copy_pixels(one.images.front(), image);
    const Cifar10Check found = set.check(plain_split());
    INFO(one.images.front() << " " << one.images.back());
    REQUIRE(found.equal.size() == 1);
    CHECK(images_of(found.equal[0]) == one.images);
    CHECK(found.equal[0].spans_parts() == one.is_leak);
    CHECK(found.equal[0].labels_differ() == one.labels_differ);
    CHECK(found.num_leaks() == (one.is_leak ? 1 : 0));
    CHECK(found.damaged.empty());
  }
}

TEST_CASE("groups come in the order of their first images", "[cifar10_check]") {
  Altered set;
  const std::vector<Images> groups = {{2, 55}, {3, 118}, {30, 31, 32}, {60, 101}};
  for (const Images& group : groups) {
    for (const index_t image : group) set.copy_pixels(group.front(), image);
  }
  const Cifar10Check found = set.check(plain_split());
  REQUIRE(found.equal.size() == groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) CHECK(images_of(found.equal[i]) == groups[i]);
  CHECK(found.num_leaks() == 2);
}

TEST_CASE("images that differ in one byte are not equal", "[cifar10_check]") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{1500}, std::size_t{3071}}) {
    Altered set;
    std::string pixels = set.pixels(3);
    pixels[at] = static_cast<char>(pixels[at] ^ 1);
    set.set_pixels(44, pixels);
    CHECK(set.check(plain_split()).equal.empty());
  }
}

TEST_CASE("each damaged row is named, and the others are still looked at", "[cifar10_check]") {
  Altered set;
  set.set_label(4, 10);
  set.set_label(85, 255);
  set.set_pixels(21, std::string(3072, '\0'));
  set.set_pixels(110, std::string(3072, '\x4d'));
  set.set_pixels(111, std::string(3072, '\x4d'));  // blank, not equal images
  set.set_pixels(112, std::string(3071, '\x4d') + '\x4e');
  set.set_label(33, 11);
  set.set_pixels(33, std::string(3072, '\xff'));
  set.copy_pixels(50, 119);
  const Cifar10Check found = set.check(plain_split());
  struct Expected {
    index_t image;
    DataPart part;
    int label;
    bool has_label, is_blank;
  };
  const std::vector<Expected> expected = {
      {4, DataPart::train, 10, false, false}, {21, DataPart::train, 1, true, true},
      {33, DataPart::train, 11, false, true}, {85, DataPart::validation, 255, false, false},
      {110, DataPart::test, 0, true, true},   {111, DataPart::test, 1, true, true}};
  REQUIRE(found.damaged.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const DamagedRow& row = found.damaged[i];
    INFO(expected[i].image);
    CHECK(row.place.file * rows + row.place.row == expected[i].image);
    CHECK(row.place.part == expected[i].part);
    CHECK(row.place.label == expected[i].label);
    CHECK(row.has_label == expected[i].has_label);
    CHECK(row.is_blank == expected[i].is_blank);
  }
  REQUIRE(found.equal.size() == 1);
  CHECK(images_of(found.equal[0]) == Images{50, 119});
  CHECK(found.class_counts[0] == Cifar10Check::Counts{8, 8, 8, 7, 7, 8, 8, 8, 8, 8});
  CHECK(found.class_counts[1] == Cifar10Check::Counts{1, 1, 1, 1, 1, 0, 1, 1, 1, 1});
}
