// The parameters of all models are those that layers/FORMAT.md lists: name, shape, the dim that is
// cut over tp, initial values, decay; and what checkpoints call them.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/logical_tensor.hpp"
#include "layers/gpt.hpp"
#include "layers/mlp_classifier.hpp"
#include "layers/text_classifier.hpp"
#include "layers/vit_classifier.hpp"
#include "tests/layers/rank_group.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t h = 48, ratio = 3, blocks = 2, classes = 10, heads = 4, d = h / heads;
constexpr index_t shards = 4, padded_classes = 12;

struct Listed {
  std::string name;
  Shape shape;
  int dim;      // cut; -1: not
  float bound;  // uniform in +- this, or
  float constant;
};

float in(index_t features) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(features)));
}

using List = std::vector<Listed>;

void add_norm(List& list, const std::string& name) {
  list.push_back({name + ".gain", {h}, -1, 0.0f, 1.0f});
  list.push_back({name + ".bias", {h}, -1, 0.0f, 0.0f});
}

// Rows of the tables in FORMAT.md: cut along "in" or along "out".
void add_in(List& list, const std::string& name, index_t outputs, index_t inputs) {
  list.push_back({name + ".weight", {outputs, inputs}, 1, in(inputs), 0.0f});
  list.push_back({name + ".bias", {outputs}, -1, 0.0f, 0.0f});
}

void add_out(List& list, const std::string& name, index_t outputs, index_t inputs) {
  list.push_back({name + ".weight", {outputs, inputs}, 0, in(inputs), 0.0f});
  list.push_back({name + ".bias", {outputs}, 0, 0.0f, 0.0f});
}

List listed_of_mlp() {
  List list;
  add_in(list, "stem", h, 3072);
  for (const std::string block : {"block.0.", "block.1."}) {
    add_norm(list, block + "norm");
    add_out(list, block + "up", ratio * h, h);
    add_in(list, block + "down", h, ratio * h);
  }
  add_norm(list, "final_norm");
  add_out(list, "head", classes, h);
  return list;
}

void add_blocks(List& list) {
  for (const std::string block : {"block.0.", "block.1."}) {
    add_norm(list, block + "norm1");
    add_out(list, block + "qkv", 3 * h, h);
    add_in(list, block + "proj", h, h);
    add_norm(list, block + "norm2");
    add_out(list, block + "up", ratio * h, h);
    add_in(list, block + "down", h, ratio * h);
  }
}

List listed_of_vit() {
  List list;
  add_in(list, "patch", h, 3 * 8 * 8);
  list.push_back({"position", {16, h}, -1, 0.0346410162f, 0.0f});
  add_blocks(list);
  add_norm(list, "final_norm");
  add_out(list, "head", classes, h);
  return list;
}

void make_mlp(ParameterSet& parameters, TensorParallel& tp) {
  make_mlp_classifier({.input_features = 3072,
                       .layers = blocks,
                       .hidden = h,
                       .feed_forward = ratio * h,
                       .num_classes = classes,
                       .padded_classes = padded_classes},
                      {.blocks = {0, blocks}}, parameters, tp);
}

void make_vit(ParameterSet& parameters, TensorParallel& tp) {
  make_vit_classifier({.patches = {.channels = 3, .side = 32, .patch = 8},
                       .layers = blocks,
                       .hidden = h,
                       .heads = heads,
                       .feed_forward = ratio * h,
                       .num_classes = classes,
                       .padded_classes = padded_classes},
                      {.blocks = {0, blocks}}, parameters, tp);
}

constexpr index_t words = 29, padded_words = 32, tokens = 9;

List listed_of_text(bool generates) {
  List list;
  list.push_back({"embedding.weight", {words, h}, 0, 0.0346410162f, 0.0f});
  list.push_back({"position", {tokens, h}, -1, 0.0346410162f, 0.0f});
  add_blocks(list);
  add_norm(list, "final_norm");
  add_out(list, "head", generates ? words : classes, h);
  if (generates) list.pop_back();  // no bias
  return list;
}

constexpr TextSpec text_spec{.vocabulary = words,
                             .padded_vocabulary = padded_words,
                             .tokens = tokens,
                             .hidden = h,
                             .heads = heads,
                             .feed_forward = ratio * h};

void make_text(ParameterSet& parameters, TensorParallel& tp) {
  make_text_classifier(
      {.text = text_spec, .num_classes = classes, .padded_classes = padded_classes},
      {.blocks = {0, blocks}}, parameters, tp);
}

void make_generator(ParameterSet& parameters, TensorParallel& tp) {
  make_gpt(text_spec, {.blocks = {0, blocks}}, parameters, tp);
}

using Make = void (*)(ParameterSet&, TensorParallel&);

void check_parameters(Make make, const List& listed) {
  run_group({.shards = shards}, [&](TpRank& rank) {
    ParameterSet parameters;
    make(parameters, rank.tp);
    REQUIRE(parameters.all().size() == listed.size());
    for (std::size_t i = 0; i < listed.size(); ++i) {
      const Parameter& p = *parameters.all()[i];
      INFO(p.name << " " << p.spec.text());
      CHECK(p.name == listed[i].name);
      CHECK(p.spec.global() == listed[i].shape);
      CHECK(p.spec.dim() == listed[i].dim);
      CHECK(p.initial.uniform_bound == listed[i].bound);
      CHECK(p.initial.constant == listed[i].constant);
      CHECK(p.decays == p.name.ends_with(".weight"));
      if (!p.spec.is_replicated()) {
        CHECK(p.spec.num_shards() == shards);
        CHECK(p.spec.padded_extent() == round_up(p.spec.global()[p.spec.dim()], shards));
      }
    }
  });
}

}  // namespace

TEST_CASE("the parameters of the MLP are the documented ones", "[mlp]") {
  check_parameters(make_mlp, listed_of_mlp());
}

TEST_CASE("the parameters of the transformer are the documented ones", "[vit]") {
  check_parameters(make_vit, listed_of_vit());
}

TEST_CASE("the parameters of the models of text are the documented ones", "[text]") {
  check_parameters(make_text, listed_of_text(false));
  check_parameters(make_generator, listed_of_text(true));
}

TEST_CASE("to checkpoints, q, k and v are tensors of their own", "[vit]") {
  for (const Make make : {make_mlp, make_vit, make_text, make_generator}) {
    run_group({.shards = shards}, [&](TpRank& rank) {
      ParameterSet parameters;
      make(parameters, rank.tp);
      for (const auto& p : parameters.all()) {
        INFO(p->name);
        const std::size_t place = p->name.find("qkv");
        std::vector<LogicalTensor> expected{{p->name, p->spec.global()}};
        if (place != std::string::npos) {
          expected.clear();
          Shape shape = p->spec.global();
          shape[0] = h;
          for (const char* which : {"q", "k", "v"})
            expected.push_back({std::string(p->name).replace(place, 3, which), shape});
        }
        CHECK(logical_tensors(*p) == expected);
      }
    });
  }
}

TEST_CASE("row d head + j of q is row 3 d head + j of qkv", "[vit]") {
  run_group({.shards = shards}, [&](TpRank& rank) {
    ParameterSet parameters;
    make_vit(parameters, rank.tp);
    for (const auto& p : parameters.all()) {
      if (p->name.find("qkv") == std::string::npos) continue;
      const index_t length = p->spec.global().num_dims() == 2 ? h : 1;
      for (index_t row = 0; row < h; ++row) {
        for (index_t which = 0; which < 3; ++which) {
          // A head is a piece here, the first rows of which are q's.
          const index_t head = row / d, stored = which * d + row % d;
          const Box box = length == h ? Box{{row, row + 1}, {0, h}} : Box{{0, 1}, {row, row + 1}};
          CHECK(runs_of(*p, head, {which, box}) ==
                std::vector<StoredRun>{{p->spec.offset(head) + stored * length, 0, length}});
        }
      }
    }
  });
}
