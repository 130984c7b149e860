// Crops, flips and normalisation against a slow form written here.
#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "io/augment.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;

namespace {

std::vector<std::uint8_t> picture(index_t image) {
  std::vector<std::uint8_t> pixels(3072);
  for (index_t i = 0; i < 3072; ++i) pixels[i] = test::small_pixel(image, i);
  return pixels;
}

float normalised(int channel, int byte) {
  const double mean[3] = {0.491400, 0.482158, 0.446531};
  const double std_dev[3] = {0.247032, 0.243485, 0.261588};
  return static_cast<float>((byte / 255.0 - mean[channel]) / std_dev[channel]);
}

// The padded image is built whole, cut, mirrored, normalised: one step after the other.
std::vector<float> slow_augment(const std::vector<std::uint8_t>& pixels, int dy, int dx,
                                bool flip) {
  std::vector<float> result;
  for (int c = 0; c < 3; ++c) {
    std::array<std::array<int, 40>, 40> padded{};
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) padded[y + 4][x + 4] = pixels[c * 1024 + y * 32 + x];
    }
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) {
        result.push_back(normalised(c, padded[y + dy][dx + (flip ? 31 - x : x)]));
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("all crops and flips equal the slow form", "[augment]") {
  const auto pixels = picture(3);
  const Normalization normalization;
  for (index_t dy = 0; dy <= 8; ++dy) {
    for (index_t dx = 0; dx <= 8; ++dx) {
      for (bool flip : {false, true}) {
        std::vector<float> x(3072, -99.0f);
        augment_into(ImagePixels(pixels), {dy, dx, flip}, normalization, ImageValues(x));
        REQUIRE(x == slow_augment(pixels, static_cast<int>(dy), static_cast<int>(dx), flip));
      }
    }
  }
}

TEST_CASE("the middle crop is the image", "[augment]") {
  const auto pixels = picture(5);
  const Normalization normalization;
  std::vector<float> plain(3072), crop(3072);
  normalise_into(ImagePixels(pixels), normalization, ImageValues(plain));
  augment_into(ImagePixels(pixels), Crop{}, normalization, ImageValues(crop));
  CHECK(plain == crop);
}

TEST_CASE("normalised values", "[augment]") {
  const Normalization normalization;
  for (int c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte)
      CHECK(normalization.channel(c)[byte] == normalised(c, byte));
  }
  // By hand: (0 - 0.4914) / 0.247032 and (1 - 0.446531) / 0.261588.
  CHECK(normalization.channel(0)[0] == Approx(-1.98921597).epsilon(1e-7));
  CHECK(normalization.channel(2)[255] == Approx(2.11580424).epsilon(1e-7));
}

TEST_CASE("a crop follows from seed, epoch and index alone", "[augment]") {
  // Any rank, any order: asked backwards, and twice.
  std::vector<Crop> forward;
  for (index_t i = 0; i < 200; ++i) forward.push_back(crop_of(1, 3, i));
  for (index_t i = 199; i >= 0; --i) CHECK(crop_of(1, 3, i) == forward[i]);
  index_t same_epoch = 0, same_seed = 0;
  for (index_t i = 0; i < 200; ++i) {
    same_epoch += crop_of(1, 4, i) == forward[i];
    same_seed += crop_of(2, 3, i) == forward[i];
  }
  CHECK(same_epoch < 10);  // one of 162 crops by chance
  CHECK(same_seed < 10);
}

TEST_CASE("all offsets are equally likely", "[augment]") {
  std::array<int, 9> dy{}, dx{};
  int flips = 0;
  for (index_t i = 0; i < 9000; ++i) {
    const Crop crop = crop_of(1, 0, i);
    REQUIRE((0 <= crop.dy && crop.dy <= 8 && 0 <= crop.dx && crop.dx <= 8));
    ++dy[crop.dy];
    ++dx[crop.dx];
    flips += crop.flip;
  }
  // 1000 +- 30 each; a bound of six of these.
  for (int i = 0; i < 9; ++i) {
    CHECK(std::abs(dy[i] - 1000) < 180);
    CHECK(std::abs(dx[i] - 1000) < 180);
  }
  CHECK(std::abs(flips - 4500) < 300);
}
