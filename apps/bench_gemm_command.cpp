#include "apps/bench_gemm_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "core/kernels/gemm.hpp"
#include "core/kokkos_session.hpp"
#include "core/tensor.hpp"
#include "layers/linear_pieces.hpp"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;

// One product of a linear layer of the plan, as the layers call it (layers/linear_pieces.hpp):
// t rows, `out` and `in` features, of which one is cut in pieces.
struct Product {
  std::string name;
  enum class Kind { forward, input, weight } kind;
  index_t t, out, in;
  bool cuts_out;

  kernels::GemmCall call(index_t piece_out, index_t piece_in, float* x, float* w, float* y) const {
    if (kind == Kind::forward) return forward_product(t, piece_out, piece_in, x, w, y);
    if (kind == Kind::input) return input_product(t, piece_out, piece_in, y, w, x);
    return weight_product(t, piece_out, piece_in, y, x, w, false);
  }
};

std::vector<Product> products_of(const Plan& plan) {
  using enum Product::Kind;
  const index_t t = plan.rows_per_microbatch(), h = plan.model.hidden, f = plan.feed_forward();
  const index_t inputs = plan.features_per_token();
  std::vector<Product> products;
  // Tokens of a text have no features: an embedding is no product.
  if (inputs > 0) {
    products = {{"stem forward", forward, t, h, inputs, false},
                {"stem weight", weight, t, h, inputs, false}};
  }
  const std::vector<Product> of_blocks = {
      {"up forward", forward, t, f, h, true}, {"up input", input, t, f, h, true},
      {"up weight", weight, t, f, h, true},   {"down forward", forward, t, h, f, false},
      {"down input", input, t, h, f, false},  {"down weight", weight, t, h, f, false}};
  products.insert(products.end(), of_blocks.begin(), of_blocks.end());
  return products;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// GFLOP/s of one product, whole and in pieces.
struct Rates {
  double whole;
  double pieces;
};

// Medians over about 0.4 s, whole and in pieces by turns, so that a busy machine slows both alike.
Rates rates_of(Context& context, const Product& product, index_t num_pieces) {
  const Tensor x(context.arena, MemoryKind::workspace, {product.t * product.in});
  const Tensor w(context.arena, MemoryKind::workspace, {product.out * product.in});
  const Tensor y(context.arena, MemoryKind::workspace, {product.t * product.out});
  for (const Tensor& tensor : {x, w, y}) fill_zero(tensor.raw(), tensor.num_bytes());
  const auto seconds_of = [&](index_t pieces) {
    const auto begin = Clock::now();
    for (index_t s = 0; s < pieces; ++s) {
      // Each piece has its own block of w and of what is cut.
      const Range out = product.cuts_out ? part_of(s, pieces, product.out) : Range{0, product.out};
      const Range in = product.cuts_out ? Range{0, product.in} : part_of(s, pieces, product.in);
      const index_t w_begin = product.cuts_out ? out.begin * product.in : in.begin * product.out;
      kernels::gemm(context, product.call(out.size(), in.size(), x.data() + product.t * in.begin,
                                          w.data() + w_begin, y.data() + product.t * out.begin));
    }
    context.device.fence();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  seconds_of(1);  // first touch
  std::vector<double> whole, pieces;
  const auto end = Clock::now() + std::chrono::milliseconds(400);
  while (whole.size() < 5 || Clock::now() < end) {
    whole.push_back(seconds_of(1));
    pieces.push_back(seconds_of(num_pieces));
  }
  const double gflop = 2e-9 * static_cast<double>(product.t * product.out * product.in);
  return {gflop / median(whole), gflop / median(pieces)};
}

}  // namespace

int bench_gemm(const Plan& plan, bool json, std::ostream& text, std::ostream& out) {
  const KokkosSession kokkos(1);
  Context context(1, {});
  text << fmt::format("{}, one thread; products of {} rows, whole and in {} pieces\n\n",
                      kernels::blas_text(), plan.rows_per_microbatch(), plan.numerics.shards);
  text << fmt::format("{:<14} {:>22} {:>16} {:>17} {:>8}\n", "product", "rows x out x in",
                      "whole, GFLOP/s", "pieces, GFLOP/s", "price");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Product& product : products_of(plan)) {
    const auto [whole, pieces] = rates_of(context, product, plan.numerics.shards);
    text << fmt::format("{:<14} {:>22} {:>16.1f} {:>17.1f} {:>8.2f}\n", product.name,
                        fmt::format("{} x {} x {}", product.t, product.out, product.in), whole,
                        pieces, whole / pieces)
         << std::flush;
    rows.push_back({{"product", product.name},
                    {"rows", product.t},
                    {"out", product.out},
                    {"in", product.in},
                    {"whole_gflops", whole},
                    {"pieces_gflops", pieces},
                    {"price", whole / pieces}});
  }
  text
      << "\nprice: time in pieces over time as one product. Pieces wider than 96 keep it near 1.\n";
  if (json) {
    out << nlohmann::ordered_json{{"blas", kernels::blas_text()},
                                  {"shards", plan.numerics.shards},
                                  {"products", rows}}
               .dump()
        << std::endl;
  }
  return 0;
}

}  // namespace weft
