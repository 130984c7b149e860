#include "core/kernels/initialize.hpp"

#include "core/hash.hpp"
#include "core/random.hpp"

namespace weft::kernels {

void initialize(Context& context, const Parameter& parameter) {
  const ShardSpec& spec = parameter.spec;
  const random::Key key = random::key_of(context.numerics.seed, Stream::initial);
  const std::uint64_t name = hash64(parameter.name);
  const auto name_high = static_cast<std::uint32_t>(name >> 32);
  const auto name_low = static_cast<std::uint32_t>(name);
  const index_t row_length = spec.global()[spec.global().num_dims() - 1];
  const float bound = parameter.initial.uniform_bound;
  const float constant = parameter.initial.constant;

  for (index_t shard = spec.owned().begin; shard < spec.owned().end; ++shard) {
    float* value = parameter.value_of(shard);
    const Box valid = spec.valid(shard);
    const index_t stored_cols = spec.block(shard).cols.size();
    const index_t num_cols = valid.cols.size();
    context.device.parallel_for(
        "weft/initialize", valid.num_elements(), KOKKOS_LAMBDA(index_t i) {
          const index_t row = i / num_cols;
          const index_t col = i % num_cols;
          const index_t global = (valid.rows.begin + row) * row_length + valid.cols.begin + col;
          const random::Words words =
              random::words_at(key, name_high, name_low, static_cast<std::uint64_t>(global / 4));
          const float uniform = random::uniform(words.word[global % 4]);
          value[row * stored_cols + col] =
              bound > 0.0f ? (2.0f * uniform - 1.0f) * bound : constant;
        });
  }
}

}  // namespace weft::kernels
