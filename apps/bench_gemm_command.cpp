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
#include "io/cifar10.hpp"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;

// One product of the plan, and how the pieces cut it.
struct Product {
  std::string name;
  index_t m, n, k;
  char cut;  // 'n' or 'k'
};

std::vector<Product> products_of(const Plan& plan) {
  const index_t t = plan.batch.micro, h = plan.model.hidden, f = plan.feed_forward();
  return {{"stem forward", t, h, Cifar10::image_bytes, 'k'},
          {"stem weight", h, Cifar10::image_bytes, t, 'n'},
          {"up forward", t, f, h, 'n'},
          {"up input", t, h, f, 'k'},
          {"up weight", f, h, t, 'm'},
          {"down forward", t, h, f, 'k'},
          {"down input", t, f, h, 'n'},
          {"down weight", h, f, t, 'n'}};
}

// Median GFLOP/s of one product done as `pieces` calls, repeated for about 0.2 s.
double rate_of(Context& context, const Product& product, index_t pieces) {
  const Tensor a(context.arena, MemoryKind::workspace, {product.m * product.k});
  const Tensor b(context.arena, MemoryKind::workspace, {product.k * product.n});
  const Tensor c(context.arena, MemoryKind::workspace, {product.m * product.n});
  fill_zero(a.raw(), a.num_bytes());
  fill_zero(b.raw(), b.num_bytes());
  const auto run = [&] {
    for (index_t s = 0; s < pieces; ++s) {
      kernels::GemmCall call{.m = product.m, .n = product.n, .k = product.k};
      index_t& width = product.cut == 'm' ? call.m : product.cut == 'n' ? call.n : call.k;
      width = part_of(s, pieces, width).size();
      call.a = a.data();
      call.lda = call.k;
      call.b = b.data();
      call.ldb = call.n;
      call.c = c.data();
      call.ldc = call.n;
      kernels::gemm(context, call);
    }
    context.device.fence();
  };
  run();
  std::vector<double> seconds;
  const auto end = Clock::now() + std::chrono::milliseconds(200);
  while (seconds.size() < 5 || Clock::now() < end) {
    const auto begin = Clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(),
                   seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  const double flops =
      2.0 * static_cast<double>(product.m) * static_cast<double>(product.n * product.k);
  return flops / seconds[seconds.size() / 2] * 1e-9;
}

}  // namespace

int bench_gemm(const Plan& plan, bool json, std::ostream& text, std::ostream& out) {
  const KokkosSession kokkos(1);
  Context context(1, {});
  text << fmt::format("{}, one thread; products of {} rows, whole and in {} pieces\n\n",
                      kernels::blas_text(), plan.batch.micro, plan.numerics.shards);
  text << fmt::format("{:<14} {:>22} {:>16} {:>17} {:>8}\n", "product", "m x n x k",
                      "whole, GFLOP/s", "pieces, GFLOP/s", "price");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Product& product : products_of(plan)) {
    const double whole = rate_of(context, product, 1);
    const double pieces = rate_of(context, product, plan.numerics.shards);
    text << fmt::format("{:<14} {:>22} {:>16.1f} {:>17.1f} {:>8.2f}\n", product.name,
                        fmt::format("{} x {} x {}", product.m, product.n, product.k), whole, pieces,
                        whole / pieces)
         << std::flush;
    rows.push_back({{"product", product.name},
                    {"m", product.m},
                    {"n", product.n},
                    {"k", product.k},
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
