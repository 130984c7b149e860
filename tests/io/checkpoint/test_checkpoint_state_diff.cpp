// Two checkpoints against each other: what differs, where first, and by how much.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "io/checkpoint/checkpoint_diff.hpp"
#include "tests/core/float_data.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;
using Kind = TensorDifference::Kind;

namespace {

using Change = std::function<void(float* up, float* norm)>;

// Values 0.5 i in each parameter, moments 0, then what `change` makes of the values of the first
// two; saved by one rank, and, on request, saved again by four.
std::string save_values(const SomeModel& model, const std::string& folder, index_t step,
                        const Change& change, const StateLayout& layout = {}) {
  on_state_ranks(model, {}, [&](StateRank& rank) {
    std::vector<float*> values;
    for (const auto& p : rank.parameters.all()) {
      for (index_t i = 0; i < p->spec.local_elements(); ++i)
        p->value[i] = 0.5f * static_cast<float>(i);
      values.push_back(p->value);
    }
    change(values[0], values[1]);
    rank.save(folder, step);
  });
  const std::string path = folder + "/" + step_folder_name(step);
  if (layout.num_ranks() == 1) return path;
  on_state_ranks(model, layout, [&](StateRank& rank) {
    LoadResult result;
    rank.load(path, result);
    rank.save(folder, step + 1);
  });
  return folder + "/" + step_folder_name(step + 1);
}

std::map<std::string, TensorDifference> differences(const std::string& a, const std::string& b) {
  std::map<std::string, TensorDifference> all;
  for (const auto& one : diff_checkpoints(open_checkpoint(a), open_checkpoint(b)))
    all[one.name + " " + one.kind] = one;
  return all;
}

const SomeModel& model() {
  static const SomeModel some{{"up", cut({40, 600}, 0)}, {"norm", whole({7})}};
  return some;
}
const Change nothing = [](float*, float*) {};

}  // namespace

TEST_CASE("values that differ: how many, the first, the largest", "[checkpoint][state][diff]") {
  const TemporaryFolder folder;
  const std::string a = save_values(model(), folder.path(), 1, nothing);
  const std::string b = save_values(model(), folder.path(), 10,
                                    [](float* up, float*) {
                                      up[2 * 600 + 5] += 0.25f;
                                      up[39 * 600 + 599] -= 3.0f;
                                      up[30 * 600] += 1.0f;
                                      up[0] = -0.0f;  // other bits, the same number
                                    },
                                    {.shards = 4, .tp = 2, .dp = 2, .zero = true});
  for (const bool turned : {false, true}) {
    const auto all = turned ? differences(b, a) : differences(a, b);
    REQUIRE(all.size() == 6);
    for (const auto& [name, one] : all) {
      INFO(name);
      CHECK((one.difference == Kind::equal) == (name != "up value"));
    }
    const TensorDifference& up = all.at("up value");
    CHECK(up.difference == Kind::values);
    CHECK(up.num_different == 4);
    CHECK(up.first == std::vector<index_t>{0, 0});
    CHECK(std::signbit(up.first_a) == turned);
    CHECK(std::signbit(up.first_b) != turned);
    CHECK(up.max_difference == 3.0);
  }
}

TEST_CASE("where one of two is no number", "[checkpoint][state][diff]") {
  const TemporaryFolder folder;
  const auto with = [&](index_t step, float value) {
    return save_values(model(), folder.path(), step, [&](float* up, float* norm) {
      norm[3] = value;
      up[599] = 7.0f;
    });
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto all = differences(with(1, 2.0f), with(2, nan));
  const TensorDifference& norm = all.at("norm value");
  CHECK(norm.difference == Kind::values);
  CHECK(norm.num_different == 1);
  CHECK(norm.first == std::vector<index_t>{3});
  CHECK(norm.first_a == 2.0f);
  CHECK(std::isnan(norm.first_b));
  CHECK(std::isnan(norm.max_difference));
  CHECK(all.at("up value").difference == Kind::equal);
  // NaNs of equal bits are equal.
  CHECK(differences(with(3, nan), with(4, nan)).at("norm value").difference == Kind::equal);
}

TEST_CASE("other shapes, and tensors that one alone has", "[checkpoint][state][diff]") {
  const TemporaryFolder folder;
  const SomeModel other{{"up", cut({40, 500}, 0)}, {"more", whole({7})}};
  const auto all = differences(save_values(model(), folder.path(), 1, nothing),
                               save_values(other, folder.path(), 2, nothing));
  REQUIRE(all.size() == 9);
  for (const char* kind : {"value", "exp_avg", "exp_avg_sq"}) {
    INFO(kind);
    const TensorDifference& up = all.at(std::string("up ") + kind);
    CHECK(up.difference == Kind::shape);
    CHECK(up.a == Shape{40, 600});
    CHECK(up.b == Shape{40, 500});
    CHECK(all.at(std::string("norm ") + kind).difference == Kind::only_in_a);
    CHECK(all.at(std::string("more ") + kind).difference == Kind::only_in_b);
  }
}

TEST_CASE("rows of a tensor, whoever wrote them", "[checkpoint][state][diff]") {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = open_checkpoint(
      save_values(model(), folder.path(), 1, nothing, {.shards = 4, .tp = 4, .dp = 2}));
  for (std::size_t i = 0; i < checkpoint.index.tensors.size(); ++i) {
    const TensorRecord& tensor = checkpoint.index.tensors[i];
    if (tensor.kind != "value") continue;
    const bool is_up = tensor.name == "up";
    const Range rows = is_up ? Range{17, 33} : Range{0, 1};
    const auto bits = read_rows(checkpoint, static_cast<index_t>(i), rows);
    const index_t width = is_up ? 600 : 7;
    Floats values, expected;
    for (const std::uint32_t word : bits) values.push_back(std::bit_cast<float>(word));
    for (index_t at = rows.begin * width; at < rows.end * width; ++at)
      expected.push_back(0.5f * static_cast<float>(at));
    CHECK(bit_difference(values, expected) == "");
  }
}
