// A training run in this process, ranks as threads, on a small set of images or tokens: what tests
// of the trainer look at, gathered from all ranks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer.hpp"
#include "tests/core/float_data.hpp"
#include "tests/io/temporary_folder.hpp"

namespace weft::testing {

// 5 x 40 training images in a folder of their own; 150 of them to train on, 34 to validate on.
class SmallData {
 public:
  SmallData();
  const TrainingData& training() const { return training_; }
  operator const TrainingData&() const { return training_; }
  const SampleSet& samples() const { return *training_.samples; }
  const Split& split() const { return training_.split; }

 private:
  weft::test::TemporaryFolder folder_;
  TrainingData training_;
};

// One of it for a program.
const SmallData& small_data();

// As many samples of tokens, with a test part of 40. `small_text`: 6 tokens of 256, each one's
// label the next; `small_news`: up to 7 of 29 words, in 4 classes.
const TrainingData& small_text();
const TrainingData& small_news();
// small_news in length buckets of 3, 5 and 7 tokens.
const TrainingData& small_bucketed_news();
// What a plan of small_plan's kind trains on.
const TrainingData& data_of(const Plan& plan);

struct SmallLayout {
  index_t tp = 1, dp = 1, pp = 1;
  index_t zero = 0;
  bool sequence_parallel = false;
  const char* schedule = "1f1b";
};
Plan on_layout(Plan plan, const SmallLayout& layout);

// hidden 48, 2 layers; S = R = shards; a global batch of 4 microbatches of 4, or of 12 of 2. 150
// samples, the last batch of an epoch padded.
Plan small_plan(index_t shards);
// The same with a transformer of 12 heads, whose images are 2 x 2 patches.
Plan small_vit(index_t shards);
// On small_text: embedding and head are one table, unless told otherwise. On small_news.
Plan small_gpt(index_t shards);
Plan small_text_encoder(index_t shards);
// The same on small_bucketed_news.
Plan small_bucketed_encoder(index_t shards);

// Whole tensors by name.
using NamedFloats = std::map<std::string, Floats>;

struct RankFigures {
  int tp = 0, dp = 0, pp = 0;  // place on the mesh
  index_t held_elements = 0;
  std::array<std::uint64_t, num_memory_kinds> bytes{};  // in use between steps
  std::array<std::uint64_t, num_memory_kinds> peaks{};  // the most of each kind at once

  index_t bytes_of(MemoryKind kind) const { return at(bytes, kind); }
  index_t peak_of(MemoryKind kind) const { return at(peaks, kind); }

 private:
  static index_t at(const std::array<std::uint64_t, num_memory_kinds>& by_kind, MemoryKind kind) {
    return static_cast<index_t>(by_kind[static_cast<std::size_t>(kind)]);
  }
};

struct TrainingRun {
  std::vector<StepResult> steps;
  Evaluation evaluation;
  Hash128 loss_hash;
  Hash128 state_hash;
  NamedFloats initial;  // parameters, of all stages
  NamedFloats final;
  std::vector<RankFigures> ranks;
};

struct RunOptions {
  index_t num_steps = 1;
  bool evaluate = false;
  EvalSplit split = EvalSplit::validation;
  std::function<void(Trainer&)> before = {};       // on every rank, before the first step
  std::function<void(Trainer&)> before_step = {};  // before each one
};

// Throws the first rank's error, and where ranks do not agree in what must be equal on all:
// results, and what several of them hold.
TrainingRun train(const Plan& plan, const TrainingData& data, const RunOptions& options);

// Model, shards, lanes and layout, for messages.
std::string text_of(const Plan& plan);
// All that must not depend on a layout: hashes, figures of each step and of the evaluation, and
// what parameters came to, bit by bit.
void check_equal(const TrainingRun& run, const TrainingRun& base);

// body(trainer) on every rank of the plan; a single rank runs on the calling thread.
void on_ranks(const Plan& plan, const TrainingData& data,
              const std::function<void(Trainer&)>& body);

}  // namespace weft::testing
