#include "tests/layers/layer_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

#include "core/hash.hpp"
#include "tests/core/shard_values.hpp"

namespace weft::testing {

namespace {

// A tensor as one rank holds it.
struct Part {
  ShardSpec spec;
  Rows rows;
  Floats local;
};

struct RankOutcome {
  std::vector<Part> y, dx;
  std::map<std::string, Part> gradients;
};

Floats floats_of(const LayerCase& what, const std::string& name, index_t n) {
  const std::uint64_t seed = hash64(name) + what.seed;
  const auto size = static_cast<std::size_t>(n);
  return what.hostile ? hostile_floats(size, seed) : random_floats(size, seed);
}

Part copy_of(const ShardSpec& spec, const float* local) {
  Part part{spec, Rows::all(spec.global()[0]),
            Floats(static_cast<std::size_t>(spec.local_elements()))};
  // Of gaps nothing is promised, so they are not even read.
  for_each_held(spec,
                [&](index_t, index_t at) { part.local[static_cast<std::size_t>(at)] = local[at]; });
  return part;
}

Part copy_of(const Activation& x) {
  if (!x.rows.is_cut) return copy_of(x.spec, x.data.data());
  return {x.spec, x.rows, Floats(x.data.data(), x.data.data() + x.data.num_elements())};
}

// Puts the rank's part of `global` into x.
Activation filled(Activation x, const Floats& global) {
  if (x.data.dtype() == DType::i32) {
    std::transform(global.begin(), global.end(), x.data.data<std::int32_t>(),
                   [](float id) { return static_cast<std::int32_t>(id); });
  } else if (x.rows.is_cut) {
    const auto n = x.num_features();
    std::copy_n(global.begin() + x.rows.mine.begin * n, x.rows.mine.size() * n, x.data.data());
  } else {
    scatter(x.spec, global, x.data.data());
  }
  return x;
}

Activation input_layout(const LayerCase& what, TpRank& rank) {
  if (what.vocabulary > 0) {
    const Shape shape{what.in_rows(), what.in_features};
    return {ShardSpec::replicated(shape), Rows::all(what.in_rows()),
            Tensor(rank.context.arena, MemoryKind::input, shape, DType::i32)};
  }
  if (what.input_is_cut)
    return Activation::cut(rank.context, rank.tp, what.in_rows(), what.in_features);
  const Rows rows =
      what.input_has_all_rows ? Rows::all(what.in_rows()) : rank.tp.owned_rows(what.in_rows());
  return Activation::whole(rank.context, rows, what.in_features);
}

// Microbatches [0, num_microbatches) as one lane; what goes in is that of `what`.
void run_lane(const LayerCase& what, TpRank& rank, Layer& layer, const ParameterSet& parameters,
              RankOutcome& out) {
  const auto count = static_cast<std::size_t>(what.num_microbatches);
  std::vector<Saved> saved(count);
  std::vector<std::vector<std::int32_t>> lengths(count);
  for (std::size_t m = 0; what.has_lengths && m < count; ++m)
    lengths[m] = lengths_of(what, static_cast<index_t>(m));
  const auto pass_of = [&](std::size_t m) {
    return Pass{.step = LayerCase::step,
                .first_sample = what.first_sample + static_cast<index_t>(m) * what.num_samples,
                .num_samples = what.num_samples,
                .first_of_lane = m == 0,
                .lengths = what.has_lengths ? lengths[m].data() : nullptr};
  };
  // Each piece of a parameter is told of once a microbatch; what is summed by token blocks never.
  std::map<std::pair<std::string, index_t>, std::size_t> told;
  const GradientReady ready = [&](const Parameter& p, index_t shard) { ++told[{p.name, shard}]; };
  for (std::size_t m = 0; m < count; ++m) {
    const auto index = static_cast<index_t>(m);
    const Activation x = filled(input_layout(what, rank), input_of(what, index));
    const Activation y = layer.forward(rank.context, x, saved[m], pass_of(m));
    out.y.push_back(copy_of(y));
    const Activation dy = filled(y.like(rank.context), output_gradient_of(what, index));
    const Activation dx = layer.backward_input(rank.context, dy, saved[m], pass_of(m));
    if (what.has_input_gradient) out.dx.push_back(copy_of(dx));
    if (what.has_input_gradient != static_cast<bool>(dx.data)) {
      throw std::runtime_error("gradient of the input");
    }
    if (!what.weights_last) layer.backward_weight(rank.context, saved[m], pass_of(m), ready);
  }
  for (std::size_t m = 0; what.weights_last && m < count; ++m) {
    layer.backward_weight(rank.context, saved[m], pass_of(m), ready);
  }
  for (const auto& p : parameters.all()) {
    for (index_t shard = p->spec.owned().begin; shard < p->spec.owned().end; ++shard) {
      const std::size_t expected = p->rows == GradientRows::all ? count : 0;
      if (told[{p->name, shard}] != expected) throw std::runtime_error("ready: " + p->name);
    }
  }
}

RankOutcome run_rank(const LayerCase& what, TpRank& rank) {
  ParameterSet parameters;
  const auto layer = what.make(parameters, rank.tp);
  parameters.allocate(rank.context);
  // Gradients begin as what is never right.
  Floats gradients(static_cast<std::size_t>(parameters.flat_elements()), NAN);
  parameters.clear_gaps(gradients.data());
  parameters.bind_gradients(gradients.data());
  for (const auto& p : parameters.all()) {
    scatter(p->spec, parameter_of(what, p->name, p->spec.global().num_elements()), p->value);
  }

  std::fill_n(parameters.partials(),
              rank.context.numerics.token_blocks.size() * parameters.token_block_range().size(),
              NAN);

  RankOutcome out;
  const auto end_lane = [&] {
    rank.fold_token_blocks(parameters);
    parameters.clear_gaps(gradients.data());
  };
  if (what.lane_before) {
    LayerCase other = what;
    other.seed += 1000;
    RankOutcome ignored;
    run_lane(other, rank, *layer, parameters, ignored);
    end_lane();
  }
  run_lane(what, rank, *layer, parameters, out);
  end_lane();
  for (const auto& p : parameters.all()) out.gradients[p->name] = copy_of(p->spec, p->gradient);
  return out;
}

// Adds a rank's part to the whole; copies must be equal.
void merge(const std::string& name, const Part& part, bool is_first, Floats& global) {
  if (part.rows.is_cut) {
    global.resize(static_cast<std::size_t>(part.spec.global().num_elements()));
    std::copy(part.local.begin(), part.local.end(),
              global.begin() + part.rows.mine.begin * part.spec.global()[1]);
    return;
  }
  Floats whole =
      is_first ? Floats(static_cast<std::size_t>(part.spec.global().num_elements())) : global;
  gather(part.spec, part.local.data(), whole);
  if (!is_first && part.spec.is_replicated()) {
    const std::string fault = bit_difference(whole, global);
    if (!fault.empty()) throw std::runtime_error(name + ": copies differ: " + fault);
  }
  global = std::move(whole);
}

oracle::Matrix matrix_of(const Floats& values, index_t rows, index_t cols) {
  return {static_cast<std::size_t>(rows),
          static_cast<std::size_t>(cols),
          {values.begin(), values.end()}};
}

}  // namespace

Floats input_of(const LayerCase& what, index_t microbatch) {
  if (what.vocabulary > 0) {
    Floats ids = random_floats(static_cast<std::size_t>(what.in_rows() * what.in_features),
                               static_cast<std::uint64_t>(microbatch) + what.seed, 0.0f,
                               static_cast<float>(what.vocabulary));
    for (float& id : ids) id = static_cast<float>(static_cast<int>(id));
    return ids;
  }
  return floats_of(what, "x" + std::to_string(microbatch), what.in_rows() * what.in_features);
}

Floats output_gradient_of(const LayerCase& what, index_t microbatch) {
  Floats dy =
      floats_of(what, "dy" + std::to_string(microbatch), what.out_rows() * what.out_features);
  for (index_t i = 0; i < what.out_rows() * what.out_features; ++i) {
    const index_t feature = i % what.out_features;
    if (feature >= what.out_features - what.pads) dy[static_cast<std::size_t>(i)] = 0.0f;
  }
  return dy;
}

std::vector<std::int32_t> lengths_of(const LayerCase& what, index_t microbatch) {
  std::vector<std::int32_t> lengths;
  for (index_t i = 0; i < what.num_samples; ++i) {
    lengths.push_back(
        static_cast<std::int32_t>((3 * i + 2 * microbatch + 4) % (what.tokens() + 1)));
  }
  return lengths;
}

Floats parameter_of(const LayerCase& what, const std::string& name, index_t num_elements) {
  return floats_of(what, name, num_elements);
}

LayerOutcome run_layer(const LayerCase& what, const RankGroup& group) {
  std::vector<RankOutcome> ranks(static_cast<std::size_t>(group.tp));
  run_group(group, [&](TpRank& rank) {
    ranks[static_cast<std::size_t>(rank.axis.rank())] = run_rank(what, rank);
  });
  LayerOutcome out;
  const RankOutcome& any = ranks.front();
  out.y.resize(any.y.size());
  out.dx.resize(any.dx.size());
  for (const RankOutcome& rank : ranks) {
    const bool is_first = &rank == &any;
    for (std::size_t m = 0; m < rank.y.size(); ++m) merge("y", rank.y[m], is_first, out.y[m]);
    for (std::size_t m = 0; m < rank.dx.size(); ++m) merge("dx", rank.dx[m], is_first, out.dx[m]);
    for (const auto& [name, part] : rank.gradients) {
      merge(name, part, is_first, out.gradients[name]);
    }
  }
  return out;
}

std::string difference(const LayerOutcome& got, const LayerOutcome& expected) {
  if (got.y.size() != expected.y.size() || got.dx.size() != expected.dx.size() ||
      got.gradients.size() != expected.gradients.size()) {
    return "numbers of tensors";
  }
  std::string all;
  const auto compare = [&](const std::string& name, const Floats& a, const Floats& b) {
    const std::string fault = bit_difference(a, b);
    if (!fault.empty()) all += name + ": " + fault + "; ";
  };
  for (std::size_t m = 0; m < got.y.size(); ++m) compare("y", got.y[m], expected.y[m]);
  for (std::size_t m = 0; m < got.dx.size(); ++m) compare("dx", got.dx[m], expected.dx[m]);
  for (const auto& [name, gradient] : got.gradients) {
    compare("d " + name, gradient, expected.gradients.at(name));
  }
  return all;
}

oracle::Matrix oracle_parameter(const LayerCase& what, const std::string& name, index_t rows,
                                index_t cols) {
  const index_t num_elements = rows > 0 ? rows * cols : cols;
  const Floats values = parameter_of(what, name, num_elements);
  if (rows == 0) return oracle::Matrix::vector({values.begin(), values.end()});
  return matrix_of(values, rows, cols);
}

std::string difference_from_oracle(const std::string& name, const Floats& got,
                                   const oracle::Matrix& expected, double bound,
                                   double* largest_deviation) {
  if (got.size() != expected.size()) return name + ": sizes; ";
  double largest = std::numeric_limits<double>::min();
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - expected[i]) / largest;
    if (largest_deviation) *largest_deviation = std::max(*largest_deviation, error);
    if (!(error <= bound)) {
      return name + ": element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(expected[i]) + "; ";
    }
  }
  return "";
}

std::string difference_from_oracle(const LayerCase& what, const LayerOutcome& got,
                                   const Oracle& oracle, double bound) {
  std::string all;
  oracle::NamedMatrices gradients;
  const index_t valid_out = what.out_features - what.pads;
  const auto without_pads = [&](const Floats& y) {
    Floats valid;
    for (index_t i = 0; i < what.out_rows() * what.out_features; ++i) {
      if (i % what.out_features < valid_out) valid.push_back(y[static_cast<std::size_t>(i)]);
    }
    return valid;
  };
  for (std::size_t m = 0; m < got.y.size(); ++m) {
    const auto index = static_cast<index_t>(m);
    const LayerTruth truth =
        oracle(matrix_of(input_of(what, index), what.in_rows(), what.in_features),
               matrix_of(without_pads(output_gradient_of(what, index)), what.out_rows(), valid_out),
               index);
    all += difference_from_oracle("y", without_pads(got.y[m]), truth.y, bound);
    if (what.has_input_gradient) all += difference_from_oracle("dx", got.dx[m], truth.dx, bound);
    for (const auto& [name, gradient] : truth.gradients) {
      const auto [sum, is_new] = gradients.try_emplace(name, gradient);
      for (std::size_t i = 0; !is_new && i < gradient.size(); ++i) sum->second[i] += gradient[i];
    }
  }
  if (gradients.size() != got.gradients.size()) all += "number of gradients; ";
  for (const auto& [name, gradient] : gradients) {
    all += difference_from_oracle("d " + name, got.gradients.at(name), gradient, bound);
  }
  return all;
}

}  // namespace weft::testing
