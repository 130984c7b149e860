// What checkpoints call a parameter's elements, against a list of all of them.
#include <catch2/catch.hpp>

#include "core/logical_tensor.hpp"
#include "tests/core/logical_elements.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

using Elements = std::map<index_t, LogicalElement>;

bool lies_in(const Box& box, const LogicalTensor& tensor) {
  const bool is_vector = tensor.global.num_dims() == 1;
  return box.rows.begin >= 0 && box.rows.end <= (is_vector ? 1 : tensor.global[0]) &&
         box.cols.begin >= 0 && box.cols.end <= tensor.global[is_vector ? 0 : 1];
}

// Checks the runs of a box and takes what they reach out of `left`; "" or what is wrong.
std::string fault_of(const Parameter& p, index_t shard, const TensorBox& box, Elements& left) {
  if (box.box.num_elements() <= 0) return "empty box";
  if (!lies_in(box.box, logical_tensors(p)[static_cast<std::size_t>(box.tensor)])) return "outside";
  index_t position = 0, end = -1;
  for (const StoredRun& run : runs_of(p, shard, box)) {
    if (run.position != position) return "positions do not follow each other";
    if (run.local == end) return "two runs that are one";
    if (run.length <= 0) return "empty run";
    for (index_t i = 0; i < run.length; ++i, ++position) {
      const LogicalElement expected{box.tensor, box.box.rows.begin + position / box.box.cols.size(),
                                    box.box.cols.begin + position % box.box.cols.size()};
      const auto found = left.find(run.local + i);
      if (found == left.end()) return "a pad, an element outside, or one twice";
      if (found->second != expected) return "another element";
      left.erase(found);
    }
    end = run.local + run.length;
  }
  return position == box.box.num_elements() ? "" : "not all positions";
}

std::string fault_of(const Parameter& p, const Elements& all, index_t shard, Range local) {
  Elements left(all.lower_bound(local.begin), all.lower_bound(local.end));
  const std::vector<TensorBox> boxes = boxes_of(p, shard, local);
  if (boxes.size() > logical_tensors(p).size() + 2) return "too many boxes";
  for (const TensorBox& box : boxes) {
    const std::string fault = fault_of(p, shard, box, left);
    if (!fault.empty()) return fault;
  }
  return left.empty() ? "" : "elements in no box";
}

// Stretches of all pieces that a rank holds, which begin and end anywhere, pads included.
std::string fault_of(const Parameter& p, RandomParameters& random) {
  const Elements all = logical_elements(p);
  for (index_t shard = p.spec.owned().begin; shard < p.spec.owned().end; ++shard) {
    const index_t begin = p.spec.offset(shard), n = p.spec.block(shard).num_elements();
    for (int i = 0; i < 6; ++i) {
      Range local{begin + random.number(0, n), begin + random.number(0, n)};
      if (local.begin > local.end) std::swap(local.begin, local.end);
      if (i == 0) local = {begin, begin + n};
      const std::string fault = fault_of(p, all, shard, local);
      if (!fault.empty()) {
        return fault + ": elements " + std::to_string(local.begin) + " to " +
               std::to_string(local.end) + ", piece " + std::to_string(shard) + " of " +
               p.spec.text();
      }
    }
  }
  return "";
}

Parameter qkv(index_t tp, index_t rank) {
  // 4 heads of 2 rows, 5 columns, in 4 pieces.
  return GlobalParameter{{24, 5}, 0, {{"q", "k", "v"}, 2}}.on(4, tp, rank);
}

}  // namespace

TEST_CASE("boxes and runs name every stored element once", "[logical_tensor]") {
  RandomParameters random(41);
  for (int i = 0; i < 800; ++i) {
    const GlobalParameter global = random.next();
    const index_t shards = random.shards(), tp = random.number(1, shards);
    const index_t rank = random.number(0, tp - 1), pads = random.number(0, 3) / 3;
    INFO("case " << i << ", turns of " << global.turns.rows << " rows of "
                 << global.turns.names.size() << " tensors");
    CHECK(fault_of(global.on(shards, tp, rank, pads), random) == "");
  }
}

TEST_CASE("the pieces of all ranks are each tensor once", "[logical_tensor]") {
  RandomParameters random(42);
  for (int i = 0; i < 200; ++i) {
    const GlobalParameter global = random.next();
    const index_t shards = random.shards(), tp = random.number(1, shards);
    INFO("case " << i << ": " << global.on(shards, 1, 0).spec.text());
    std::map<LogicalElement, int> times;
    index_t in_all = 0;
    for (const LogicalTensor& tensor : logical_tensors(global.on(shards, 1, 0)))
      in_all += tensor.global.num_elements();
    CHECK(in_all == global.global.num_elements());
    for (index_t rank = 0; rank < (global.dim < 0 ? 1 : tp); ++rank) {
      const Parameter p = global.on(shards, tp, rank);
      for (index_t s = p.spec.owned().begin; s < p.spec.owned().end; ++s) {
        for (index_t t = 0; t < static_cast<index_t>(logical_tensors(p).size()); ++t) {
          const Box box = box_of_piece(p, s, t);
          for (index_t row = box.rows.begin; row < box.rows.end; ++row) {
            for (index_t col = box.cols.begin; col < box.cols.end; ++col) ++times[{t, row, col}];
          }
        }
      }
    }
    CHECK(static_cast<index_t>(times.size()) == in_all);
    for (const auto& [element, number] : times) REQUIRE(number == 1);
  }
}

TEST_CASE("what is stored in one stretch is one run", "[logical_tensor]") {
  const auto runs_of_piece = [](const Parameter& p, index_t shard) {
    return runs_of(p, shard, {0, box_of_piece(p, shard, 0)});
  };
  for (const int dim : {-1, 0, 1}) {
    const Parameter p = GlobalParameter{{36, 48}, dim, {}}.on(12, 3, 1);
    const index_t shard = p.spec.owned().end - 1;
    CHECK(runs_of_piece(p, shard) ==
          std::vector<StoredRun>{{p.spec.offset(shard), 0, p.spec.valid(shard).num_elements()}});
  }
  const Parameter vector = GlobalParameter{{100}, 0, {}}.on(4, 2, 1);
  CHECK(runs_of_piece(vector, 3) == std::vector<StoredRun>{{64, 0, 25}});
  const Parameter padded = GlobalParameter{{10, 6}, 0, {}}.on(4, 2, 1);
  CHECK(runs_of_piece(padded, 3) == std::vector<StoredRun>{{64, 0, 6}});
}

TEST_CASE("the picture of q, k and v in turns", "[logical_tensor]") {
  const Parameter p = qkv(2, 1);
  CHECK(logical_tensors(p) ==
        std::vector<LogicalTensor>{{"q", {8, 5}}, {"k", {8, 5}}, {"v", {8, 5}}});
  // Piece 3 is head 3 alone: 2 rows each of q, k and v.
  const index_t begin = p.spec.offset(3);
  CHECK(boxes_of(p, 3, {begin, begin + 30}) == std::vector<TensorBox>{{0, {{6, 8}, {0, 5}}},
                                                                      {1, {{6, 8}, {0, 5}}},
                                                                      {2, {{6, 8}, {0, 5}}}});
  // The end of q's last row, k, and the begin of v's first one.
  CHECK(boxes_of(p, 3, {begin + 8, begin + 21}) == std::vector<TensorBox>{{0, {{7, 8}, {3, 5}}},
                                                                          {1, {{6, 8}, {0, 5}}},
                                                                          {2, {{6, 7}, {0, 1}}}});
  // Both of a rank's heads, in one piece: one run a turn.
  const Parameter two = GlobalParameter{{24, 5}, 0, {{"q", "k", "v"}, 2}}.on(2, 2, 1);
  CHECK(runs_of(two, 1, {1, {{4, 8}, {0, 5}}}) ==
        std::vector<StoredRun>{{10, 0, 10}, {40, 10, 10}});
  CHECK(runs_of(two, 1, {1, {{5, 7}, {2, 4}}}) == std::vector<StoredRun>{{17, 0, 2}, {42, 2, 2}});
  const Parameter bias = GlobalParameter{{24}, 0, {{"q", "k", "v"}, 2}}.on(2, 2, 1);
  CHECK(logical_tensors(bias)[2] == LogicalTensor{"v", {8}});
  CHECK(boxes_of(bias, 1, {1, 9}) == std::vector<TensorBox>{{0, {{0, 1}, {5, 8}}},
                                                            {1, {{0, 1}, {4, 7}}},
                                                            {2, {{0, 1}, {4, 6}}}});
}

TEST_CASE("a piece of pads alone has no boxes", "[logical_tensor]") {
  const Parameter p = GlobalParameter{{10, 6}, 0, {}}.on(12, 1, 0);
  for (const index_t shard : {10, 11}) {
    const index_t begin = p.spec.offset(shard);
    CHECK(boxes_of(p, shard, {begin, begin + 6}).empty());
    CHECK(box_of_piece(p, shard, 0).num_elements() == 0);
    CHECK(runs_of(p, shard, {0, box_of_piece(p, shard, 0)}).empty());
  }
  const Parameter vector = GlobalParameter{{10}, 0, {}}.on(12, 1, 0);
  CHECK(boxes_of(vector, 11, {vector.spec.offset(11), vector.spec.offset(11) + 1}).empty());
  // Columns that are pads alone, and pieces without a column.
  const Parameter columns = GlobalParameter{{6, 10}, 1, {}}.on(12, 1, 0);
  CHECK(boxes_of(columns, 11, {columns.spec.offset(11), columns.spec.offset(11) + 6}).empty());
  Parameter uneven = columns;
  uneven.spec = ShardSpec::cut({6, 10}, 1, 10, 12, {0, 12});
  CHECK(boxes_of(uneven, 0, {0, 0}).empty());
}

TEST_CASE("elements of a box as boxes", "[logical_tensor]") {
  const Box whole{{3, 7}, {10, 15}};
  for (index_t begin = 0; begin <= 20; ++begin) {
    for (index_t end = begin; end <= 20; ++end) {
      index_t at = begin;
      const std::vector<Box> boxes = boxes_of(whole, {begin, end});
      bool are_equal = boxes.size() <= 3;
      for (const Box& box : boxes) {
        are_equal = are_equal && box.num_elements() > 0;
        for (index_t row = box.rows.begin; row < box.rows.end; ++row) {
          for (index_t col = box.cols.begin; col < box.cols.end; ++col, ++at)
            are_equal = are_equal && row == 3 + at / 5 && col == 10 + at % 5;
        }
      }
      INFO(begin << " to " << end);
      CHECK((are_equal && at == end));
    }
  }
  CHECK(boxes_of(whole, {0, 20}) == std::vector<Box>{whole});
  CHECK(boxes_of(whole, {5, 15}) == std::vector<Box>{{{4, 6}, {10, 15}}});
}
