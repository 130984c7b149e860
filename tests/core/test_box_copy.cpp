// Tensors out of the memory of ranks on one layout, in boxes, and into that of ranks on another
// one: every bit arrives, once, and nothing else changes.
#include <catch2/catch.hpp>

#include <cstring>
#include <functional>

#include "core/box_copy.hpp"
#include "tests/core/logical_elements.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t untouched = 0x7f812345u;  // a NaN that arithmetic would change

// What an element is everywhere: any bits, a NaN's and a denormal number's among them.
std::uint32_t word_of(const LogicalElement& e) {
  const std::uint64_t place =
      static_cast<std::uint64_t>(((e.tensor * 4096) + e.row) * 4096 + e.col + 1);
  const auto word = static_cast<std::uint32_t>((place * 0x9e3779b97f4a7c15u) >> 32);
  return place % 5 == 0 ? word | 0x7f800000u : place % 5 == 1 ? word & 0x807fffffu : word;
}

// A rank's part of one parameter; it keeps numbers of some ranges of it.
struct Keeper {
  Parameter parameter;
  FlatRanges ranges;
  Tensor numbers;

  HeldNumbers held() const { return {ranges, numbers.data()}; }

  // All words it keeps, in order, `word` where the element is a valid one.
  Words expected(const std::function<std::uint32_t(const LogicalElement&)>& word) const {
    Words words(static_cast<std::size_t>(ranges.num_elements()), untouched);
    for (const auto& [local, element] : logical_elements(parameter)) {
      const index_t flat = parameter.offset + local;
      ranges.for_each_in({flat, flat + 1}, [&, &what = element](Range, index_t at) {
        words[static_cast<std::size_t>(at)] = word(what);
      });
    }
    return words;
  }
  index_t num_valid() const {
    index_t valid = 0;
    expected([&](const LogicalElement&) { return ++valid, 0u; });
    return valid;
  }
  void set(const Words& words) const {
    copy_to_device(numbers.raw(), words.data(), numbers.num_bytes());
  }
  Words words() const {
    Words words(static_cast<std::size_t>(ranges.num_elements()));
    copy_to_host(words.data(), numbers.raw(), numbers.num_bytes());
    return words;
  }
};

// The keepers of all ranks of a layout: `owners` that divide the storage of each tp rank in any
// stretches, as ranks of dp do with moments. One owner keeps all, as with values.
std::vector<Keeper> keepers_of(Arena& arena, const GlobalParameter& global, index_t owners,
                               RandomParameters& random) {
  const index_t shards = random.shards();
  const index_t tp = global.dim < 0 ? 1 : random.number(1, shards);
  const index_t pads = random.number(0, 3) / 3;
  std::vector<Keeper> keepers;
  for (index_t rank = 0; rank < tp; ++rank) {
    Parameter parameter = global.on(shards, tp, rank, pads);
    parameter.offset = 64 * random.number(0, 3);
    const index_t end = parameter.offset + parameter.spec.local_elements();
    std::vector<std::vector<Range>> owned(static_cast<std::size_t>(owners));
    for (index_t at = 0; at < end + 10;) {
      const index_t next = owners == 1 ? end + 10 : at + random.number(1, end / 3 + 1);
      owned[static_cast<std::size_t>(random.number(0, owners - 1))].push_back({at, next});
      at = next;
    }
    for (const auto& ranges : owned) {
      Keeper keeper{parameter, FlatRanges(ranges), {}};
      keeper.numbers = Tensor(arena, MemoryKind::optimizer, {keeper.ranges.num_elements()});
      keeper.set(Words(static_cast<std::size_t>(keeper.ranges.num_elements()), untouched));
      keepers.push_back(std::move(keeper));
    }
  }
  return keepers;
}

// A piece of a file: a box, and its words one byte away from where floats are.
struct Piece {
  TensorBox box;
  std::vector<char> bytes;

  explicit Piece(const TensorBox& of)
      : box(of), bytes(static_cast<std::size_t>(4 * of.box.num_elements() + 1)) {}
  char* at(index_t element) { return bytes.data() + 1 + 4 * element; }

  // Calls copy(elements) with the box in stretches of any length; the sum of what it returns.
  index_t in_chunks(RandomParameters& random, const std::function<index_t(Range)>& copy) const {
    index_t copied = 0;
    for (index_t at = 0; at < box.box.num_elements();) {
      const index_t end =
          std::min(box.box.num_elements(), at + random.number(1, box.box.num_elements()));
      copied += copy({at, end});
      at = end;
    }
    return copied;
  }
};

// Writes what a keeper keeps, in boxes.
void write(const Keeper& from, RandomParameters& random, std::vector<Piece>& pieces) {
  const Parameter& p = from.parameter;
  for (index_t shard = p.spec.owned().begin; shard < p.spec.owned().end; ++shard) {
    const index_t begin = p.offset + p.spec.offset(shard);
    from.ranges.for_each_in(
        {begin, begin + p.spec.block(shard).num_elements()}, [&](Range flat, index_t) {
          const Range local{flat.begin - p.offset, flat.end - p.offset};
          for (const TensorBox& box : boxes_of(p, shard, local)) {
            Piece& piece = pieces.emplace_back(box);
            CHECK(piece.in_chunks(random, [&](Range elements) {
              return gather_box(p, box, elements, from.held(), piece.at(elements.begin));
            }) == box.box.num_elements());
          }
        });
  }
}

void read(const Keeper& to, RandomParameters& random, std::vector<Piece>& pieces) {
  index_t placed = 0;
  for (Piece& piece : pieces) {
    placed += piece.in_chunks(random, [&](Range elements) {
      return scatter_box(to.parameter, piece.box, elements, piece.at(elements.begin), to.held());
    });
  }
  CHECK(placed == to.num_valid());
}

}  // namespace

TEST_CASE("from any layout to any other, every bit arrives", "[box_copy]") {
  Arena arena;
  RandomParameters random(51);
  for (int i = 0; i < 200; ++i) {
    const GlobalParameter global = random.next();
    std::vector<Piece> pieces;
    index_t elements = 0;
    for (const Keeper& from : keepers_of(arena, global, random.number(1, 4), random)) {
      INFO("case " << i << ", from " << from.parameter.spec.text());
      const Words before = from.expected(word_of);
      from.set(before);
      write(from, random, pieces);
      CHECK(from.words() == before);
    }
    for (const Piece& piece : pieces) elements += piece.box.box.num_elements();
    CHECK(elements == global.global.num_elements());
    for (const Keeper& to : keepers_of(arena, global, random.number(1, 4), random)) {
      INFO("case " << i << ", to " << to.parameter.spec.text());
      read(to, random, pieces);
      CHECK(to.words() == to.expected(word_of));
    }
  }
}

TEST_CASE("of a box that is kept in part, the rest stays as it is", "[box_copy]") {
  Arena arena;
  RandomParameters random(52);
  for (int i = 0; i < 100; ++i) {
    const GlobalParameter global = random.next();
    for (const Keeper& keeper : keepers_of(arena, global, random.number(1, 3), random)) {
      INFO("case " << i << ", " << keeper.parameter.spec.text());
      keeper.set(keeper.expected(word_of));
      const auto tensors = logical_tensors(keeper.parameter);
      index_t gathered = 0;
      for (index_t t = 0; t < static_cast<index_t>(tensors.size()); ++t) {
        const Shape& shape = tensors[static_cast<std::size_t>(t)].global;
        const bool is_vector = shape.num_dims() == 1;
        const TensorBox all{t, {{0, is_vector ? 1 : shape[0]}, {0, shape[is_vector ? 0 : 1]}}};
        Words dense(static_cast<std::size_t>(all.box.num_elements()), untouched);
        Words expected = dense;
        keeper.expected([&](const LogicalElement& e) {
          if (e.tensor == t)
            expected[static_cast<std::size_t>(e.row * all.box.cols.size() + e.col)] = word_of(e);
          return 0u;
        });
        const Range elements{0, all.box.num_elements()};
        gathered += gather_box(keeper.parameter, all, elements, keeper.held(), dense.data());
        CHECK(dense == expected);
      }
      CHECK(gathered == keeper.num_valid());
    }
  }
}

TEST_CASE("what is kept as a file has it is one part", "[box_copy]") {
  const FlatRanges everything({{0, 1 << 20}});
  const Parameter p = GlobalParameter{{96, 64}, 1, {}}.on(4, 2, 1);
  const TensorBox piece{0, box_of_piece(p, 3, 0)};
  const index_t begin = p.spec.offset(3), n = piece.box.num_elements();
  CHECK(kept_parts(p, piece, {0, n}, everything) == std::vector<BoxPart>{{0, begin, n}});
  CHECK(kept_parts(p, piece, {5, n - 3}, everything) ==
        std::vector<BoxPart>{{5, begin + 5, n - 8}});
  CHECK(kept_parts(p, piece, {7, 7}, everything).empty());
  // Owners of its two halves.
  const index_t half = begin + n / 2;
  CHECK(kept_parts(p, piece, {0, n}, FlatRanges({{0, half}})) ==
        std::vector<BoxPart>{{0, begin, n / 2}});
  CHECK(kept_parts(p, piece, {0, n}, FlatRanges({{half, 1 << 20}})) ==
        std::vector<BoxPart>{{n / 2, 0, n / 2}});
  // The picture of the header: one part a row.
  const Parameter columns = GlobalParameter{{2, 6}, 1, {}}.on(3, 3, 1);
  CHECK(kept_parts(columns, {0, {{0, 2}, {0, 6}}}, {0, 12}, everything) ==
        std::vector<BoxPart>{{2, 0, 2}, {8, 2, 2}});
}
