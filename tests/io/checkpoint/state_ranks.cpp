#include "tests/io/checkpoint/state_ranks.hpp"

#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "core/device.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/buckets.hpp"

namespace weft::testing {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t number_of(const std::string& text) {
  std::uint64_t number = 0xcbf29ce484222325u;
  for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return number;
}

std::string name_of(const Parameter& p, index_t tensor) {
  return p.turns.names.empty() ? p.name : p.turns.names[static_cast<std::size_t>(tensor)];
}

}  // namespace

std::string StateLayout::text() const {
  std::ostringstream text;
  text << "tp " << tp << " x dp " << dp << (zero ? ", ZeRO" : "") << ", " << shards
       << " shards, buckets of " << bucket_bytes << ", " << pads << " more pads, order " << order;
  return text.str();
}

SomeModel random_model(RandomParameters& random, index_t num_parameters) {
  SomeModel model;
  for (index_t i = 0; i < num_parameters; ++i) {
    NamedParameter one{"block." + std::to_string(i) + ".weight", random.next()};
    for (std::string& name : one.global.turns.names)
      name = "block." + std::to_string(i) + ".turn" + name + ".weight";
    model.push_back(one);
  }
  return model;
}

StateLayout random_layout(RandomParameters& random) {
  StateLayout layout;
  layout.shards = random.shards();
  layout.tp = static_cast<int>(random.number(1, std::min<index_t>(layout.shards, 4)));
  layout.dp = static_cast<int>(random.number(1, 4));
  layout.zero = random.number(0, 1) == 1;
  layout.bucket_bytes = random.number(1, 8) * 1000;
  layout.pads = random.number(0, 2) / 2;
  layout.order = random.number(0, 1) == 1 ? "tp,dp" : "dp,tp";
  return layout;
}

std::uint32_t bits_of(const std::string& tensor, const std::string& kind,
                      const LogicalElement& element, std::uint64_t salt) {
  const std::uint64_t place =
      static_cast<std::uint64_t>(element.row) << 32 | static_cast<std::uint64_t>(element.col);
  const std::uint64_t all =
      mixed(mixed(number_of(tensor) + 3 * number_of(kind) + 7 * salt) + mixed(place + 1));
  const auto word = static_cast<std::uint32_t>(all >> 32);
  switch (all % 8) {
    case 0:
      return word | 0x7f800001u;  // a NaN, any payload, quiet or not
    case 1:
      return word & 0x807fffffu;  // denormal
    case 2:
      return word & 0x80000000u;  // 0 and -0
    case 3:
      return (word & 0x80000000u) | 0x7f800000u;  // infinite
    default:
      return word;
  }
}

StateRank::StateRank(const SomeModel& model, const StateLayout& layout, Transport& transport)
    : context(1, {.num_pieces = layout.shards, .num_token_blocks = layout.shards, .seed = 5}),
      mesh(transport, &context.trace, {{"tp", layout.tp}, {"dp", layout.dp}}, layout.order),
      zero_(layout.zero) {
  for (const NamedParameter& one : model) {
    // Turns fill whole pieces, as Turns asks for.
    const index_t pads = one.global.turns.names.empty() ? layout.pads : 0;
    const Parameter made = one.global.on(layout.shards, layout.tp, mesh.rank("tp"), pads);
    parameters.add(one.name, made.spec, {}, GradientRows::all).turns = made.turns;
  }
  parameters.allocate(context);
  const auto buckets = make_buckets(flat_layout(parameters), layout.bucket_bytes, layout.dp);
  slice_ = slices_of(buckets, mesh.rank("dp"));
  optimizer = make_adamw(context, {}, zero_ ? slice_ : everything_of(parameters));
}

StateRank::Words StateRank::expected(const StateKind& kind, std::uint64_t salt) const {
  Words words(static_cast<std::size_t>(kind.held.num_elements()), untouched);
  for (const auto& p : parameters.all()) {
    for (const auto& [local, element] : logical_elements(*p)) {
      const index_t flat = p->offset + local;
      const std::uint32_t bits = bits_of(name_of(*p, element.tensor), kind.name, element, salt);
      kind.held.for_each_in({flat, flat + 1},
                            [&](Range, index_t at) { words[static_cast<std::size_t>(at)] = bits; });
    }
  }
  return words;
}

void StateRank::fill(std::uint64_t salt) {
  for (const StateKind& kind : state().kinds) {
    const Words words = expected(kind, salt);
    copy_to_device(kind.data, words.data(), words.size() * sizeof(float));
  }
}

void StateRank::clear() {
  for (const StateKind& kind : state().kinds) {
    const Words words(static_cast<std::size_t>(kind.held.num_elements()), untouched);
    copy_to_device(kind.data, words.data(), words.size() * sizeof(float));
  }
}

std::string StateRank::difference(std::uint64_t salt) {
  for (const StateKind& kind : state().kinds) {
    const Words wanted = expected(kind, salt);
    Words words(wanted.size());
    copy_to_host(words.data(), kind.data, words.size() * sizeof(float));
    const auto [got, want] = std::mismatch(words.begin(), words.end(), wanted.begin());
    if (got == words.end()) continue;
    std::ostringstream text;
    text << std::hex << kind.name << ": number 0x" << (got - words.begin()) << " of 0x"
         << words.size() << " is " << *got << ", not " << *want;
    return text.str();
  }
  return "";
}

FlatRanges StateRank::share() {
  const int tp = mesh.rank("tp"), tp_size = mesh.size("tp");
  return zero_ ? weft::share_to_write(parameters, tp, tp_size, slice_)
               : weft::share_to_write(parameters, tp, tp_size, mesh.rank("dp"), mesh.size("dp"));
}

namespace {

CheckpointOptions options_for(const std::string& folder, index_t keep, bool read_back) {
  return {.folder = folder,
          .retention = {.keep = keep},
          .read_back = read_back,
          .program = "0.0",
          .plan_name = "some",
          .layout = "some"};
}

}  // namespace

SaveResult StateRank::save(const std::string& folder, index_t step, index_t keep, bool read_back) {
  return CheckpointWriter(mesh.world(), options_for(folder, keep, read_back), some_identity())
      .save(state(), share(), progress_at(step));
}

std::unique_ptr<CheckpointWriter> StateRank::make_async_writer(const std::string& folder,
                                                               index_t keep) {
  auto writer = std::make_unique<CheckpointWriter>(mesh.world(), options_for(folder, keep, true),
                                                   some_identity());
  writer->make_staging(context.arena, state(), share());
  return writer;
}

std::string StateRank::load(const std::string& path, const LocalState& into, LoadResult& result) {
  const Checkpoint checkpoint = open_checkpoint(path);
  const std::string unknown = find_unknown(checkpoint, find_held(checkpoint, into), axes());
  if (!unknown.empty()) return unknown;
  result = load_state(checkpoint, into);
  return compare_fingerprints(checkpoint, result.sums, axes());
}

void on_state_ranks(const SomeModel& model, const StateLayout& layout,
                    const std::function<void(StateRank&)>& body) {
  run_ranks(layout.num_ranks(), [&](Transport& transport) {
    StateRank rank(model, layout, transport);
    body(rank);
  });
}

RunIdentity some_identity() {
  return {
      .plan = "name = \"some\"", .plan_hash = "0123", .split = "{}", .data = "d", .numerics = "n"};
}

RunProgress progress_at(index_t step) {
  RunProgress progress{.step = step, .epoch = step / 10, .losses = {}};
  for (index_t i = 0; i < step; ++i) progress.losses.push_back(1.0 / static_cast<double>(i + 3));
  return progress;
}

std::string save_state(const SomeModel& model, const StateLayout& layout, const std::string& folder,
                       index_t step, std::uint64_t salt) {
  on_state_ranks(model, layout, [&](StateRank& rank) {
    rank.fill(salt);
    const SaveResult saved = rank.save(folder, step);
    if (!saved.is_saved || !saved.fault.empty())
      throw std::runtime_error(layout.text() + " does not save: " + saved.fault);
  });
  return folder + "/" + step_folder_name(step);
}

}  // namespace weft::testing
