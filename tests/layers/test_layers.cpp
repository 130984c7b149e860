// The layers that every model has, each through the battery (layer_battery.hpp).
#include <catch2/catch.hpp>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "layers/column_linear.hpp"
#include "layers/dropout.hpp"
#include "layers/layer_norm.hpp"
#include "layers/residual.hpp"
#include "layers/row_linear.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/layers/layer_battery.hpp"
#include "tests/oracle/dropout.hpp"
#include "tests/oracle/gelu.hpp"
#include "tests/oracle/layer_norm.hpp"
#include "tests/oracle/linear.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

Oracle linear_oracle(const LayerCase& what, const std::string& name, index_t in, index_t out) {
  const oracle::Matrix w = oracle_parameter(what, name + ".weight", out, in);
  const oracle::Matrix b = oracle_parameter(what, name + ".bias", 0, out);
  return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t) {
    oracle::LinearGradients g = oracle::linear_backward(x, w, dy);
    return LayerTruth{
        oracle::linear_forward(x, w, b), g.dx, {{name + ".weight", g.dw}, {name + ".bias", g.db}}};
  };
}

Oracle norm_oracle(const LayerCase& what, const std::string& name, index_t features) {
  const oracle::Matrix gain = oracle_parameter(what, name + ".gain", 0, features);
  const oracle::Matrix bias = oracle_parameter(what, name + ".bias", 0, features);
  return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t) {
    oracle::LayerNormGradients g = oracle::layer_norm_backward(x, gain, dy, 1e-5);
    return LayerTruth{oracle::layer_norm_forward(x, gain, bias, 1e-5),
                      g.dx,
                      {{name + ".gain", g.dgain}, {name + ".bias", g.dbias}}};
  };
}

Oracle gelu_oracle() {
  return [](const oracle::Matrix& x, const oracle::Matrix& dy, index_t) {
    return LayerTruth{oracle::gelu_forward(x), oracle::gelu_backward(x, dy), {}};
  };
}

constexpr double dropout_rate = 0.3;

Oracle dropout_oracle(const LayerCase& what, index_t layer) {
  return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t microbatch) {
    const oracle::Matrix mask = dropout_mask(RankGroup{}.seed, LayerCase::step, layer,
                                             what.first_sample + microbatch * what.num_samples,
                                             what.num_samples, what.in_features, dropout_rate);
    return LayerTruth{
        oracle::dropout(x, mask, dropout_rate), oracle::dropout(dy, mask, dropout_rate), {}};
  };
}

// The layers one after the other; `widths`: features between them, the last one's included.
Oracle chain(std::vector<Oracle> layers, std::vector<index_t> widths) {
  return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t microbatch) {
    std::vector<oracle::Matrix> inputs{x};
    for (std::size_t i = 0; i < layers.size(); ++i) {
      // An output does not depend on the gradient that is given with it.
      const oracle::Matrix any(x.rows, static_cast<std::size_t>(widths[i]));
      inputs.push_back(layers[i](inputs.back(), any, microbatch).y);
    }
    LayerTruth result{inputs.back(), dy, {}};
    for (std::size_t i = layers.size(); i-- > 0;) {
      LayerTruth layer = layers[i](inputs[i], result.dx, microbatch);
      result.dx = layer.dx;
      result.gradients.merge(layer.gradients);
    }
    return result;
  };
}

template <class L, class... Arguments>
auto maker(Arguments... arguments) {
  return [=](ParameterSet& parameters, TensorParallel& tp) -> std::unique_ptr<Layer> {
    if constexpr (std::is_same_v<L, LayerNorm>) {
      return std::make_unique<L>("l", parameters, arguments...);
    } else {
      return std::make_unique<L>("l", parameters, tp, arguments...);
    }
  };
}

}  // namespace

TEST_CASE("column linear", "[layers]") {
  // 29 inputs: odd; 26 outputs: uneven pieces.
  for (const index_t out : {24, 26}) {
    check_layer(
        [&](index_t) {
          return LayerCase{.name = "column",
                           .make = maker<ColumnLinear>(index_t{29}, out, out),
                           .in_features = 29,
                           .out_features = out};
        },
        [&](const LayerCase& what) { return linear_oracle(what, "l", 29, out); });
  }
}

TEST_CASE("column linear whose input has all rows also with sequence parallel", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{.name = "column of all rows",
                         .make = maker<ColumnLinear>(index_t{29}, index_t{24}, index_t{24}),
                         .in_features = 29,
                         .out_features = 24,
                         .input_has_all_rows = true};
      },
      [](const LayerCase& what) { return linear_oracle(what, "l", 29, 24); });
}

TEST_CASE("column linear with padded classes", "[layers]") {
  check_layer(
      [](index_t shards) {
        const index_t padded = round_up(10, shards);
        return LayerCase{.name = "head",
                         .make = maker<ColumnLinear>(index_t{29}, index_t{10}, padded),
                         .in_features = 29,
                         .out_features = padded,
                         .pads = padded - 10};
      },
      [](const LayerCase& what) { return linear_oracle(what, "l", 29, 10); });
}

TEST_CASE("row linear, with and without a gradient of its input", "[layers]") {
  for (const bool wants_gradient : {true, false}) {
    for (const index_t in : {24, 31}) {
      check_layer(
          [&](index_t) {
            return LayerCase{.name = "row",
                             .make = maker<RowLinear>(in, index_t{23}, wants_gradient),
                             .in_features = in,
                             .out_features = 23,
                             .input_is_cut = true,
                             .has_input_gradient = wants_gradient};
          },
          [&](const LayerCase& what) { return linear_oracle(what, "l", in, 23); });
    }
  }
}

TEST_CASE("layer norm", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{.name = "norm",
                         .make = maker<LayerNorm>(index_t{50}),
                         .in_features = 50,
                         .out_features = 50};
      },
      [](const LayerCase& what) { return norm_oracle(what, "l", 50); });
}

TEST_CASE("column linear that ends in gelu", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{
            .name = "column, gelu",
            .make = maker<ColumnLinear>(index_t{29}, index_t{26}, index_t{26}, Epilogue::bias_gelu),
            .in_features = 29,
            .out_features = 26};
      },
      [](const LayerCase& what) {
        return chain({linear_oracle(what, "l", 29, 26), gelu_oracle()}, {26, 26});
      });
}

TEST_CASE("dropout", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{.name = "dropout",
                         .make = [](ParameterSet&, TensorParallel&) -> std::unique_ptr<Layer> {
                           return std::make_unique<Dropout>(0.3f, 2, 1, 27);
                         },
                         .in_features = 27,
                         .out_features = 27,
                         .first_sample = 41};
      },
      [](const LayerCase& what) { return dropout_oracle(what, 2); });
}

TEST_CASE("a residual block", "[layers]") {
  const auto make = [](ParameterSet& parameters, TensorParallel& tp) -> std::unique_ptr<Layer> {
    std::vector<std::unique_ptr<Layer>> layers;
    layers.push_back(std::make_unique<LayerNorm>("norm", parameters, 25));
    layers.push_back(
        std::make_unique<ColumnLinear>("up", parameters, tp, 25, 36, 36, Epilogue::bias_gelu));
    layers.push_back(std::make_unique<RowLinear>("down", parameters, tp, 36, 25, true));
    layers.push_back(std::make_unique<Dropout>(0.3f, 1, 1, 25));
    return std::make_unique<Residual>(std::move(layers));
  };
  check_layer(
      [&](index_t) {
        return LayerCase{.name = "residual", .make = make, .in_features = 25, .out_features = 25};
      },
      [](const LayerCase& what) -> Oracle {
        const Oracle inner =
            chain({norm_oracle(what, "norm", 25), linear_oracle(what, "up", 25, 36), gelu_oracle(),
                   linear_oracle(what, "down", 36, 25), dropout_oracle(what, 1)},
                  {25, 36, 36, 25, 25});
        return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t microbatch) {
          LayerTruth truth = inner(x, dy, microbatch);
          truth.y = oracle::residual(x, truth.y);
          truth.dx = oracle::residual(dy, truth.dx);
          return truth;
        };
      });
}

TEST_CASE("dropout masks do not depend on microbatches, lanes or steps' other numbers",
          "[layers]") {
  // 24 samples in microbatches of every size: one mask, that of the global indices.
  constexpr index_t samples = 24, features = 27, layer = 3;
  const auto mask_of = [&](index_t micro, index_t step, index_t number, std::uint64_t seed) {
    Floats all;
    run_group({.seed = seed}, [&](TpRank& rank) {
      Dropout dropout(0.3f, number, 1, features);
      for (index_t first = 0; first < samples; first += micro) {
        const Activation ones = Activation::whole(rank.context, Rows::all(micro), features);
        std::fill_n(ones.data.data(), micro * features, 1.0f);
        Saved saved;
        const Pass pass{.step = step, .first_sample = first, .num_samples = micro};
        const Activation y = dropout.forward(rank.context, ones, saved, pass);
        const Activation dy = dropout.backward_input(rank.context, ones, saved, pass);
        if (bit_difference(y.data.data(), dy.data.data(),
                           static_cast<std::size_t>(micro * features)) != "") {
          throw std::runtime_error("forward and backward drop differently");
        }
        all.insert(all.end(), y.data.data(), y.data.data() + micro * features);
        Pass evaluation = pass;
        evaluation.training = false;
        if (dropout.forward(rank.context, ones, saved, evaluation).data.data() !=
            ones.data.data()) {
          throw std::runtime_error("dropout in an evaluation");
        }
      }
    });
    return all;
  };
  const oracle::Matrix mask = dropout_mask(77, 6, layer, 0, samples, features, 0.3);
  Floats expected;
  for (const double kept : mask.values) {
    expected.push_back(kept != 0.0 ? 1.0f / (1.0f - 0.3f) : 0.0f);
  }
  for (const index_t micro : {1, 2, 3, 4, 6, 8, 12, 24}) {
    CHECK(bit_difference(mask_of(micro, 6, layer, 77), expected) == "");
  }
  CHECK(bit_difference(mask_of(24, 7, layer, 77), expected) != "");
  CHECK(bit_difference(mask_of(24, 6, layer + 1, 77), expected) != "");
  CHECK(bit_difference(mask_of(24, 6, layer, 78), expected) != "");
}

TEST_CASE("a linear layer's products for the probe are those that it runs, beta 1 included",
          "[layers]") {
  run_group({.shards = 4}, [](TpRank& rank) {
    ParameterSet parameters;
    const ColumnLinear up("up", parameters, rank.tp, 48, 192, 192);
    const RowLinear down("down", parameters, rank.tp, 192, 48, true);
    const RowLinear first("first", parameters, rank.tp, 192, 48, false);
    const auto count = [](const std::vector<kernels::GemmCall>& calls, float beta) {
      return std::count_if(calls.begin(), calls.end(), [&](const kernels::GemmCall& call) {
        return call.beta == beta && (beta == 0.0f || (call.transpose_a && call.k == 16));
      });
    };
    const auto expect = [&](const Layer& layer, std::ptrdiff_t zeros, const char* what) {
      const std::vector<kernels::GemmCall> calls = layer.products(16, 1);
      if (count(calls, 0.0f) != zeros || count(calls, 1.0f) != 4) throw std::runtime_error(what);
    };
    expect(up, 12, "column-parallel");
    expect(down, 12, "row-parallel");
    expect(first, 8, "row-parallel without input gradient");
  });
}
