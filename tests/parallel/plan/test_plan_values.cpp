// validate(): values of single keys out of range, with their messages.
#include <catch2/catch.hpp>
#include <limits>

#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

struct Case {
  Spoil spoil;
  const char* fault;
};

const double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("values out of range") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Case> cases = {
      {[](Plan& p) { p.model.kind = "resnet"; },
       "model.kind: expected \"mlp\", \"vit\", \"text_encoder\" or \"gpt\"; found \"resnet\", "
       "which "
       "is not in this version; nearest legal: model.kind = \"vit\""},
      {[](Plan& p) {
         p.model.kind = "gpt";
         p.model.heads = 8;
       },
       "model.kind: expected \"mlp\" or \"vit\" for task.dataset = \"cifar10\"; found \"gpt\"; "
       "nearest "
       "legal: model.kind = \"vit\""},
      {[](Plan& p) {
         p.task.dataset = "ag_news";
         p.task.augment = true;
       },
       "model.kind: expected \"text_encoder\" for task.dataset = \"ag_news\"; found \"mlp\""},
      {[](Plan& p) { p.task.vocabulary = 7; },
       "task.vocabulary: task.dataset = \"cifar10\" does not use it; remove it, or set "
       "task.dataset = "
       "\"ag_news\""},
      {[](Plan& p) { p.task.accept.metric = "accuracy"; },
       "task.accept.at_least: expected the least or the most accuracy that is accepted, or both; "
       "found neither; nearest legal: task.accept.at_least = 0.6"},
      {[](Plan& p) { p.task.accept.at_most = 0.5; },
       "task.accept.metric: expected a metric for the range that is to be reached; found \"none\" "
       "with a bound"},
      {[](Plan& p) {
         p.task.accept.metric = "roc_auc";
         p.task.accept.at_least = 0.7;
       },
       "task.accept.metric: expected \"accuracy\", \"loss\" or \"macro_f1\": areas under curves "
       "are of "
       "two classes, cifar10 has 10; found \"roc_auc\""},
      {[](Plan& p) { p.model.kind = "vit"; },
       "model.heads: expected an integer from 1 to 65536; found 0; nearest legal: model.heads = 1"},
      {[](Plan& p) { p.model.layers = 0; },
       "model.layers: expected an integer from 1 to 1024; found 0; nearest legal: model.layers = "
       "1"},
      {[](Plan& p) { p.model.hidden = -3; },
       "model.hidden: expected an integer from 1 to 65536; found -3; nearest legal: model.hidden = "
       "1"},
      {[](Plan& p) { p.model.mlp_ratio = 1000; },
       "model.mlp_ratio: expected an integer from 1 to 64; found 1000; nearest legal: "
       "model.mlp_ratio = 64"},
      {[](Plan& p) { p.model.dropout = 1.0; },
       "model.dropout: expected a number in [0, 1), such as 0.1; found 1.0"},
      {[](Plan& p) { p.model.dropout = -0.5; },
       "model.dropout: expected a number in [0, 1); found -0.5; nearest legal: model.dropout = "
       "0.0"},
      {[=](Plan& p) { p.model.dropout = nan; },
       "model.dropout: expected a number in [0, 1), such as 0.1; found nan"},
      {[](Plan& p) { p.optimizer.lr = 0.0; },
       "optimizer.lr: expected a finite number greater than 0, such as 1e-3; found 0.0"},
      {[=](Plan& p) { p.optimizer.lr = infinity; },
       "optimizer.lr: expected a finite number greater than 0, such as 1e-3; found inf"},
      {[](Plan& p) { p.optimizer.clip_norm = -1; },
       "optimizer.clip_norm: expected a finite number of at least 0; found -1.0; nearest legal: "
       "optimizer.clip_norm = 0.0"},
      {[](Plan& p) { p.optimizer.beta2 = 1; },
       "optimizer.betas: expected [a, b], each a number in [0, 1), such as [0.9, 0.999]; found "
       "[0.9, 1.0]"},
      {[](Plan& p) { p.numerics.seed = std::uint64_t{1} << 56; },
       "numerics.seed: expected an integer from 0 to 72057594037927935; found 72057594037927936; "
       "nearest legal: numerics.seed = 72057594037927935"},
      {[](Plan& p) { p.numerics.dtype = "bf16"; },
       "numerics.dtype: expected \"f32\"; found \"bf16\", which is not in this version; nearest "
       "legal: numerics.dtype = \"f32\""},
      {[](Plan& p) { p.task.validation = 0; },
       "task.split.validation: expected an integer from 1 to 1073741824; found 0; nearest legal: "
       "task.split.validation = 1"},
      {[](Plan& p) { p.run.steps = 0; },
       "run.steps: expected an integer from 1 to 1073741824; found 0; nearest legal: run.steps = "
       "1"},
      {[](Plan& p) { p.name = "a/b"; },
       "name: expected a name without /; found \"a/b\"; nearest legal: name = \"a-b\""},
  };
  for (const Case& c : cases) CHECK(faults_of(c.spoil) == c.fault);
}

TEST_CASE("values of the layout out of range") {
  const std::vector<Case> cases = {
      {[](Plan& p) { p.layout.zero = 2; },
       "layout.zero: expected an integer from 0 to 1; found 2, which is not in this version; "
       "nearest legal: layout.zero = 1"},
      {[](Plan& p) { p.layout.zero = 4; },
       "layout.zero: expected an integer from 0 to 1; found 4; nearest legal: layout.zero = 1"},
      {[](Plan& p) { p.layout.schedule = "zero_bubble"; },
       "layout.schedule: expected \"1f1b\" or \"gpipe\"; found \"zero_bubble\", which is not in "
       "this version; nearest legal: layout.schedule = \"1f1b\""},
      {[](Plan& p) {
         p.layout.stages = {2, 0};
       },
       "layout.stages: expected \"even\", \"measured\" or a list of integers from 1 to 1024; found "
       "[2, 0]; nearest legal: layout.stages = \"even\""},
      {[](Plan& p) { p.comm.bucket_bytes = 0; },
       "comm.bucket_bytes: expected an integer from 1 to 1073741824; found 0; nearest legal: "
       "comm.bucket_bytes = 1"},
      {[](Plan& p) { p.comm.timeout_s = 0; },
       "comm.timeout_s: expected a number in (0, 1000000], such as 600.0; found 0.0"},
      {[=](Plan& p) { p.comm.timeout_s = infinity; },
       "comm.timeout_s: expected a number in (0, 1000000]; found inf; nearest legal: "
       "comm.timeout_s = 1000000.0"},
      {[](Plan& p) { p.layout.threads = 0; },
       "layout.threads: expected an integer from 1 to 1024; found 0; nearest legal: layout.threads "
       "= 1"},
      {[](Plan& p) { p.checkpoint.every_steps = -200; },
       "checkpoint.every_steps: expected an integer from 0 to 1073741824; found -200; nearest "
       "legal: checkpoint.every_steps = 0"},
      {[](Plan& p) { p.checkpoint.keep = 0; },
       "checkpoint.keep: expected an integer from 1 to 1000; found 0; nearest legal: "
       "checkpoint.keep = 1"},
      {[](Plan& p) { p.checkpoint.keep = 1001; },
       "checkpoint.keep: expected an integer from 1 to 1000; found 1001; nearest legal: "
       "checkpoint.keep = 1000"},
      {[](Plan& p) { p.checkpoint.overhead = 1.0; },
       "checkpoint.overhead: expected a number in [0, 1), such as 0.02; found 1.0"},
      {[](Plan& p) { p.checkpoint.keep_every = -1; },
       "checkpoint.keep_every: expected an integer from 0 to 1073741824; found -1; nearest legal: "
       "checkpoint.keep_every = 0"},
      {[](Plan& p) { p.checkpoint.keep_best = 1001; },
       "checkpoint.keep_best: expected an integer from 0 to 1000; found 1001; nearest legal: "
       "checkpoint.keep_best = 1000"},
      {[](Plan& p) { p.layout.order = "tp"; },
       "layout.order: expected \"tp,dp,pp\", \"tp,pp,dp\", \"dp,tp,pp\", \"dp,pp,tp\", "
       "\"pp,tp,dp\" or \"pp,dp,tp\"; found \"tp\"; nearest legal: layout.order = \"tp,dp,pp\""},
  };
  for (const Case& c : cases) CHECK(faults_of(c.spoil) == c.fault);
}
