// The layers that know tokens, each through the battery (layer_battery.hpp): rows of a sample are
// five, nine or four, so that a rank's own rows begin anywhere inside one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core/error.hpp"

#include "layers/attention.hpp"
#include "layers/mean_pool.hpp"
#include "layers/patches.hpp"
#include "layers/position_embedding.hpp"
#include "layers/vocab_embedding.hpp"
#include "tests/layers/layer_battery.hpp"
#include "tests/oracle/attention.hpp"
#include "tests/oracle/text.hpp"
#include "tests/oracle/vit.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::size_t> oracle_lengths(const LayerCase& what, index_t microbatch) {
  const std::vector<std::int32_t> lengths = lengths_of(what, microbatch);
  return {lengths.begin(), lengths.end()};
}

std::vector<int> ids_of(const oracle::Matrix& x) { return {x.values.begin(), x.values.end()}; }

}  // namespace

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
    Sees sees = Sees::all;
  };
  for (const Heads heads : {Heads{5, 12, 2}, Heads{16, 12, 5}, Heads{5, 12, 2, Sees::earlier},
                            Heads{66, 12, 1, Sees::earlier}, Heads{5, 12, 3, Sees::real}}) {
    const index_t width = heads.count * heads.dim;
    const auto tokens = static_cast<std::size_t>(heads.tokens);
    const auto count = static_cast<std::size_t>(heads.count);
    check_layer(
        [&](index_t) {
          return LayerCase{
              .name = "attention",
              .make = [=](ParameterSet&, TensorParallel& tp) -> std::unique_ptr<Layer> {
                return std::make_unique<Attention>(tp, heads.count, heads.dim,
                                                   heads.sees);
              },
              .in_features = 3 * width,
              .out_features = width,
              .input_is_cut = true,
              .has_lengths = heads.sees == Sees::real,
              .in_tokens = heads.tokens,
              .out_tokens = heads.tokens};
        },
        [&](const LayerCase& what) -> Oracle {
          return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t microbatch) {
            oracle::AttentionMask mask{heads.sees == Sees::earlier, {}};
            if (what.has_lengths) mask.lengths = oracle_lengths(what, microbatch);
            return LayerTruth{oracle::attention_forward(x, tokens, count, mask),
                              oracle::attention_backward(x, dy, tokens, count, mask),
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
                   return std::make_unique<Attention>(tp, 12, 4);
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
                           return std::make_unique<MeanPool>("pool", tp, 70);
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

TEST_CASE("mean pooling of real tokens", "[layers]") {
  check_layer(
      [](index_t) {
        return LayerCase{.name = "masked mean_pool",
                         .make = [](ParameterSet&, TensorParallel& tp) -> std::unique_ptr<Layer> {
                           return std::make_unique<MeanPool>("pool", tp, 70, true);
                         },
                         .in_features = 70,
                         .out_features = 70,
                         .has_lengths = true,
                         .in_tokens = 9};
      },
      [](const LayerCase& what) -> Oracle {
        return [=](const oracle::Matrix& x, const oracle::Matrix& dy, index_t microbatch) {
          const auto lengths = oracle_lengths(what, microbatch);
          return LayerTruth{oracle::masked_mean_pool(x, 9, lengths),
                            oracle::masked_mean_pool_backward(dy, 9, lengths),
                            {}};
        };
      },
      {1, 5});
}

TEST_CASE("vocabulary embedding", "[layers]") {
  // Fewer words than pieces, a piece or more without any, and one word that is in every row.
  for (const index_t vocabulary : {1, 2, 11, 29}) {
    for (const bool has_lengths : {false, true}) {
      check_layer(
          [&](index_t shards) {
            return LayerCase{.name = "embedding of " + std::to_string(vocabulary) + " words",
                             .make = [=](ParameterSet& parameters,
                                         TensorParallel& tp) -> std::unique_ptr<Layer> {
                               return std::make_unique<VocabEmbedding>(
                                   "embedding", parameters, tp, vocabulary,
                                   round_up(vocabulary, shards), 23);
                             },
                             .in_features = 5,
                             .out_features = 23,
                             .has_input_gradient = false,
                             .vocabulary = vocabulary,
                             .has_lengths = has_lengths,
                             .out_tokens = 5};
          },
          [&](const LayerCase& what) -> Oracle {
            const oracle::Matrix table = oracle_parameter(what, "embedding.weight", vocabulary, 23);
            return [=](const oracle::Matrix& x, oracle::Matrix dy, index_t microbatch) {
              // Padding has no gradient, whatever dy is there.
              for (std::size_t t = 0; has_lengths && t < dy.rows; ++t) {
                if (t % 5 < oracle_lengths(what, microbatch)[t / 5]) continue;
                for (std::size_t k = 0; k < 23; ++k) dy(t, k) = 0.0;
              }
              return LayerTruth{
                  oracle::embed(ids_of(x), table),
                  {},
                  {{"embedding.weight", oracle::embedding_gradient(ids_of(x), dy, table.rows)}}};
            };
          },
          {1, 3, 7});
    }
  }
}

TEST_CASE("an embedding of -0 is +0 on every layout", "[layers]") {
  // Hostile tables have some; here all of it is (EXACT 3.9, 7.7).
  for (const index_t shards : {1, 2, 3}) {
    for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
      run_group({.shards = shards, .tp = tp}, [&](TpRank& rank) {
        ParameterSet parameters;
        VocabEmbedding layer("embedding", parameters, rank.tp, 6, 6, 4);
        parameters.allocate(rank.context);
        Parameter& table = *parameters.all().front();
        std::fill_n(table.value, table.spec.local_elements(), -0.0f);
        const Tensor ids(rank.context.arena, MemoryKind::input, {1, 6}, DType::i32);
        for (std::int32_t i = 0; i < 6; ++i) ids.data<std::int32_t>()[i] = i;
        Saved saved;
        const Activation y = layer.forward(
            rank.context, {ShardSpec::replicated({1, 6}), Rows::all(1), ids}, saved, {});
        const Floats got(y.data.data(), y.data.data() + 24);
        if (bit_difference(got, Floats(24, 0.0f)) != "") throw std::runtime_error("-0");
      });
    }
  }
}

TEST_CASE("a token outside the vocabulary is an error that names it", "[layers]") {
  for (const std::int32_t bad : {-1, 11, 300}) {
    run_group({.shards = 4}, [&](TpRank& rank) {
      ParameterSet parameters;
      VocabEmbedding layer("embedding", parameters, rank.tp, 11, 12, 4);
      parameters.allocate(rank.context);
      const Tensor ids(rank.context.arena, MemoryKind::input, {2, 3}, DType::i32);
      std::fill_n(ids.data<std::int32_t>(), 6, 10);
      ids.data<std::int32_t>()[4] = bad;
      Saved saved;
      const Activation x{ShardSpec::replicated({2, 3}), Rows::all(2), ids};
      std::string message;
      try {
        layer.forward(rank.context, x, saved, {.first_sample = 40, .num_samples = 2});
      } catch (const Error& error) {
        message = error.what();
        if (error.code() != ExitCode::data) throw;
      }
      CHECK(message.find("token 1 of sample 41") != std::string::npos);
      CHECK(message.find("is " + std::to_string(bad)) != std::string::npos);
      CHECK(message.find("vocabulary of 11") != std::string::npos);
    });
  }
}

TEST_CASE("embeddings begin small and decay", "[layers]") {
  run_group({.shards = 4}, [](TpRank& rank) {
    ParameterSet parameters;
    const VocabEmbedding layer("embedding", parameters, rank.tp, 61, 64, 50);
    parameters.allocate(rank.context);
    const Parameter& p = *parameters.all().front();
    double squares = 0.0;
    for (index_t s = 0; s < 4; ++s) {
      for (index_t i = 0; i < p.spec.block(s).num_elements(); ++i) {
        const double value = static_cast<double>(p.value_of(s)[i]);
        squares += value * value;
        if (i >= p.spec.valid(s).num_elements() && value != 0.0) throw std::runtime_error("pad");
      }
    }
    if (!p.decays) throw std::runtime_error("embeddings do not decay");
    // 3050 uniform numbers: their deviation is within 2 % of 0.02 at 2.5 standard errors.
    if (std::abs(std::sqrt(squares / (61 * 50)) - 0.02) > 4e-4) {
      throw std::runtime_error("standard deviation of embeddings");
    }
  });
}

TEST_CASE("rows and products of the layers that know tokens", "[layers]") {
  run_group({.shards = 4}, [](TpRank& rank) {
    const auto expect = [](bool condition, const char* what) {
      if (!condition) throw std::runtime_error(what);
    };
    Patches patches(rank.tp, {.channels = 3, .side = 32, .patch = 4});
    expect(patches.rows_after(16, 64) == 1024, "rows after patches");
    ParameterSet embedded;
    MeanPool pool("pool", rank.tp, 48);
    expect(pool.rows_after(1024, 64) == 16, "rows after pooling");
    // 16 samples, 64 tokens, 4 heads of 24.
    VocabEmbedding embedding("embedding", embedded, rank.tp, 256, 256, 48);
    expect(embedding.rows_after(16, 64) == 1024, "rows after an embedding");
    Attention causal(rank.tp, 4, 24, Sees::earlier);
    expect(causal.products(1024, 128).size() == 12, "products of causal attention");
    Attention attention(rank.tp, 4, 24);
    expect(attention.products(1024, 64).size() == 6, "products of attention");
    for (const kernels::GemmCall& call : attention.products(1024, 64)) {
      expect(call.m == 64 && call.n * call.k == 64 * 24, "shapes of attention's products");
    }
  });
}
