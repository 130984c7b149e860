// Drawing and writing synthetic CIFAR-10; see the header. All integers: sines of a C library may
// differ in the last bit between machines, triangle waves do not.
#include "io/synthetic_cifar10.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "io/cifar10.hpp"
#include "io/file.hpp"
#include "io/synthetic_set.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr int side = Cifar10::side;
constexpr const char* official_names =
    "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

// A plane wave. Angles are turns in units of 2^-16; at the image's middle the phase is `phase`.
struct Grating {
  int per_x = 0;  // turns per pixel
  int per_y = 0;
  int phase = 0;
  int amplitude = 0;

  // A triangle wave between -amplitude and amplitude, highest at whole turns.
  int at(int x, int y) const {
    // Half pixels: the middle lies between pixels 15 and 16.
    const int turn = (per_x * (2 * x - side + 1) + per_y * (2 * y - side + 1)) / 2 + phase;
    const int folded = std::abs(((turn & 0xffff) ^ 0x8000) - 0x8000);  // 0 .. 2^15
    return amplitude * (0x4000 - folded) / 0x4000;
  }
};

struct Disc {
  int x, y, radius;
  bool holds(int at_x, int at_y) const {
    return (at_x - x) * (at_x - x) + (at_y - y) * (at_y - y) <= radius * radius;
  }
};

constexpr int num_kinds = 5;
constexpr int cycle = 0x10000 / side;  // one turn over the image's width
constexpr int colours[num_kinds][3] = {
    {6, -3, -3}, {-3, 6, -3}, {-3, -3, 6}, {4, 4, -8}, {-6, 3, 3}};
constexpr int waves[num_kinds][2] = {{1, 0}, {0, 1}, {2, 0}, {0, 2}, {1, 1}};

// What one image is made of.
struct Scene {
  int label;
  int colour[3];       // of the whole image
  int disc_colour[3];  // on top of it
  int slope_x, slope_y;
  int noise;
  Grating own, other;
  Disc disc;
};

Grating own_grating(Draws& draws, int kind) {
  Grating wave;
  // A slant has no sign: the mirrored image must be of the same class.
  const int sign = draws.between(0, 1) == 0 ? -1 : 1;
  wave.per_x = sign * waves[kind][0] * cycle;
  wave.per_y = waves[kind][1] * cycle;
  // More than a quarter turn either way: a class's mean image is weak, a linear model sees little.
  wave.phase = draws.between(-0x5000, 0x5000);
  wave.amplitude = draws.between(6, 48);
  return wave;
}

Grating other_grating(Draws& draws) {
  Grating wave;
  wave.per_x = draws.between(-3 * cycle, 3 * cycle);
  wave.per_y = draws.between(-3 * cycle, 3 * cycle);
  wave.phase = draws.between(0, 0xffff);
  wave.amplitude = draws.between(0, 40);
  return wave;
}

Scene draw_scene(Draws& draws) {
  Scene scene{};
  scene.label = draws.between(0, Cifar10::num_classes - 1);
  const int* const colour = colours[scene.label / 2];
  const int strength = draws.between(0, 3);
  const int disc_strength = draws.between(0, 8);
  const int light = draws.between(-40, 40);
  for (int c = 0; c < 3; ++c) {
    scene.colour[c] = 124 + light + strength * colour[c] + draws.between(-16, 16);
    scene.disc_colour[c] = disc_strength * colour[c] + draws.between(-16, 16);
  }
  scene.slope_x = draws.between(-24, 24);
  scene.slope_y = draws.between(-24, 24);
  scene.noise = draws.between(8, 40);
  // Labels 2k and 2k + 1 share a colour, so their gratings must differ.
  scene.own = own_grating(draws, (scene.label + scene.label / num_kinds) % num_kinds);
  scene.other = other_grating(draws);
  scene.disc = {draws.between(6, 25), draws.between(6, 25), draws.between(3, 8)};
  return scene;
}

void paint(const Scene& scene, Draws& draws, std::uint8_t* pixels) {
  std::uint32_t bits = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int light = scene.own.at(x, y) + scene.other.at(x, y) +
                        (scene.slope_x * (2 * x - side) + scene.slope_y * (2 * y - side)) / side;
      const bool in_disc = scene.disc.holds(x, y);
      bits = draws.word();
      for (int c = 0; c < 3; ++c) {
        const int byte = static_cast<int>(bits >> (8 * c) & 0xff) - 128;
        const int value = scene.colour[c] + light + (in_disc ? scene.disc_colour[c] : 0) +
                          scene.noise * byte / 128;
        pixels[c * Cifar10::plane + y * side + x] =
            static_cast<std::uint8_t>(std::clamp(value, 0, 255));
      }
    }
  }
}

void check_request(const fs::path& folder, const SyntheticCifar10Options& options) {
  require(options.rows_per_file >= 1, ExitCode::usage,
          fmt::format("rows per file = {}: expected at least 1", options.rows_per_file));
  std::vector<std::string> names(Cifar10::file_names.begin(), Cifar10::file_names.end());
  names.emplace_back(Cifar10::names_file);
  check_new_set(folder.string(), names, options.seed);
}

}  // namespace

void synthetic_cifar10_row(std::uint64_t seed, index_t file, index_t row,
                           std::span<std::uint8_t, 3073> bytes) {
  Draws draws(seed, file, row);
  const Scene scene = draw_scene(draws);
  bytes[0] = static_cast<std::uint8_t>(scene.label);
  paint(scene, draws, bytes.data() + 1);
}

void make_synthetic_cifar10(const std::string& folder, const SyntheticCifar10Options& options,
                            const std::function<void(index_t, index_t)>& progress) {
  constexpr index_t rows_at_once = 500;
  check_request(folder, options);
  make_folder(folder);
  const index_t all_rows = Cifar10::num_files * options.rows_per_file;
  // Names are taken only when every file is complete, so that a stop leaves no part of a set.
  std::vector<std::unique_ptr<AtomicFile>> files;
  std::vector<std::uint8_t> block;
  for (index_t f = 0; f < Cifar10::num_files; ++f) {
    files.push_back(
        std::make_unique<AtomicFile>((fs::path(folder) / Cifar10::file_names[f]).string()));
    for (index_t begin = 0; begin < options.rows_per_file; begin += rows_at_once) {
      const index_t end = std::min(begin + rows_at_once, options.rows_per_file);
      block.resize((end - begin) * Cifar10::row_bytes);
      for (index_t row = begin; row < end; ++row) {
        std::uint8_t* const bytes = block.data() + (row - begin) * Cifar10::row_bytes;
        synthetic_cifar10_row(options.seed, f, row, std::span<std::uint8_t, 3073>(bytes, 3073));
      }
      files.back()->write({reinterpret_cast<const char*>(block.data()), block.size()});
      if (progress) progress(f * options.rows_per_file + end, all_rows);
    }
  }
  for (const auto& file : files) file->commit();
  write_file((fs::path(folder) / Cifar10::names_file).string(), official_names);
}

}  // namespace weft
