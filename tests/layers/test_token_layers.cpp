// The layers that know tokens, each through the battery (layer_battery.hpp): rows of a sample are
// five, nine or four, so that a rank's own rows begin anywhere inside one.
#include <catch2/catch.hpp>

#include <cmath>
#include <stdexcept>

#include "layers/attention.hpp"
#include "layers/mean_pool.hpp"
#include "layers/patches.hpp"
#include "layers/position_embedding.hpp"
#include "tests/layers/layer_battery.hpp"
#include "tests/oracle/attention.hpp"
#include "tests/oracle/vit.hpp"

using namespace weft;
using namespace weft::testing;

TEST_CASE("patches", "[layers]") {
  // 27 features in uneven pieces, cut inside rows of a patch; and patches of a power of two.
  struct Image {
    index_t side, patch;
  };
  for (const Image image : {Image{6, 3}, Image{6, 2}, Image{8, 4}}) {
    const kernels::PatchShape shape{.channels = 3, .side = image.side, .patch = image.patch};
    check_layer(
        [&](index_t) {
          return LayerCase{
              .name = "patches",
              .make = [=](ParameterSet&, TensorParallel& tp) -> std::unique_ptr<Layer> {
                return std::make_unique<Patches>(tp, shape);
              },
              .in_features = shape.pixels(),
              .out_features = shape.features(),
              .input_has_all_rows = true,
              .has_input_gradient = false,
              .out_tokens = shape.tokens()};
        },
        [&](const LayerCase&) -> Oracle {
          const oracle::VitShape of_oracle{.side = static_cast<std::size_t>(image.side),
                                           .patch = static_cast<std::size_t>(image.patch)};
          return [=](const oracle::Matrix& x, const oracle::Matrix&, index_t) {
            return LayerTruth{oracle::patches_of(x, of_oracle), {}, {}};
          };
        },
        {1, 5});
  }
}

TEST_CASE("position embedding", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{
            .name = "position",
            .make = [](ParameterSet& parameters, TensorParallel& tp) -> std::unique_ptr<Layer> {
              return std::make_unique<PositionEmbedding>("position", parameters, tp, 5, 23);
            },
            .in_features = 23,
            .out_features = 23,
            .in_tokens = 5,
            .out_tokens = 5};
      },
      [](const LayerCase& what) -> Oracle {
        const oracle::Matrix position = oracle_parameter(what, "position", 5, 23);
        return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t) {
          return LayerTruth{oracle::add_position(x, position),
                            dy,
                            {{"position", oracle::position_gradient(dy, 5)}}};
        };
      },
      {1, 3, 7});
}

TEST_CASE("positions begin small and do not decay", "[layers]") {
  run_group({}, [](TpRank& rank) {
    ParameterSet parameters;
    const PositionEmbedding layer("position", parameters, rank.tp, 64, 48);
    parameters.allocate(rank.context);
    const Parameter& p = *parameters.all().front();
    double squares = 0.0;
    for (index_t i = 0; i < 64 * 48; ++i) {
      const double value = static_cast<double>(p.value[i]);
      squares += value * value;
    }
    if (p.decays) throw std::runtime_error("positions decay");
    // 3072 uniform numbers: their deviation is within 2 % of 0.02 at 2.5 standard errors.
    if (std::abs(std::sqrt(squares / (64 * 48)) - 0.02) > 4e-4) {
      throw std::runtime_error("standard deviation of positions");
    }
  });
}

TEST_CASE("attention", "[layers]") {
  struct Heads {
    index_t tokens, count, dim;
  };
  for (const Heads heads : {Heads{5, 12, 2}, Heads{16, 12, 5}}) {
    const index_t width = heads.count * heads.dim;
    const auto tokens = static_cast<std::size_t>(heads.tokens);
    const auto count = static_cast<std::size_t>(heads.count);
    check_layer(
        [&](index_t) {
          return LayerCase{
              .name = "attention",
              .make = [=](ParameterSet&, TensorParallel& tp) -> std::unique_ptr<Layer> {
                return std::make_unique<Attention>(tp, heads.tokens, heads.count, heads.dim);
              },
              .in_features = 3 * width,
              .out_features = width,
              .input_is_cut = true,
              .in_tokens = heads.tokens,
              .out_tokens = heads.tokens};
        },
        [&](const LayerCase&) -> Oracle {
          return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t) {
            return LayerTruth{oracle::attention_forward(x, tokens, count),
                              oracle::attention_backward(x, dy, tokens, count),
                              {}};
          };
        },
        {1, 3});
  }
}

TEST_CASE("attention has the same bits for every number of pieces", "[layers]") {
  // A head's arithmetic does not see the width of its piece: S changes no bit either.
  LayerCase what{.name = "attention",
                 .make = [](ParameterSet&, TensorParallel& tp) -> std::unique_ptr<Layer> {
                   return std::make_unique<Attention>(tp, 16, 12, 4);
                 },
                 .in_features = 144,
                 .out_features = 48,
                 .input_is_cut = true,
                 .num_samples = 2,
                 .in_tokens = 16,
                 .out_tokens = 16};
  const LayerOutcome base = run_layer(what, {.shards = 1});
  for (const index_t shards : {2, 3, 4, 6, 12}) {
    INFO("S = " << shards);
    CHECK(difference(run_layer(what, {.shards = shards}), base) == "");
  }
}

TEST_CASE("mean pooling", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{.name = "mean_pool",
                         .make = [](ParameterSet&, TensorParallel& tp) -> std::unique_ptr<Layer> {
                           return std::make_unique<MeanPool>("pool", tp, 9, 70);
                         },
                         .in_features = 70,
                         .out_features = 70,
                         .in_tokens = 9};
      },
      [](const LayerCase&) -> Oracle {
        return [](const oracle::Matrix& x, const oracle::Matrix& dy, index_t) {
          return LayerTruth{oracle::mean_pool(x, 9), oracle::mean_pool_backward(dy, 9), {}};
        };
      },
      {1, 5});
}

TEST_CASE("rows and products of the layers that know tokens", "[layers]") {
  run_group({.shards = 4}, [](TpRank& rank) {
    const auto expect = [](bool condition, const char* what) {
      if (!condition) throw std::runtime_error(what);
    };
    Patches patches(rank.tp, {.channels = 3, .side = 32, .patch = 4});
    expect(patches.rows_after(16) == 1024, "rows after patches");
    MeanPool pool("pool", rank.tp, 64, 48);
    expect(pool.rows_after(1024) == 16, "rows after pooling");
    // 16 samples, 64 tokens, 4 heads of 24.
    Attention attention(rank.tp, 64, 4, 24);
    expect(attention.products(1024).size() == 6, "products of attention");
    for (const kernels::GemmCall& call : attention.products(1024)) {
      expect(call.m == 64 && call.n * call.k == 64 * 24, "shapes of attention's products");
    }
  });
}
