#include "parallel/data/replica_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "core/host_name.hpp"
#include "parallel/comm/gather_values.hpp"
#include "parallel/data/replicas.hpp"

namespace weft {

namespace {

// What a rank says of its state where nothing is wrong. Sums over tensors, each times an odd key of
// its own: one tensor that differs always changes them, and parts of a copy add up.
struct Summary {
  std::uint64_t sums[2][2] = {};  // [held by all of tp][state of the optimizer]
  std::int64_t owned = 0;         // elements whose optimizer state is here
  std::int64_t all = 0;           // elements that it could be of
  std::uint64_t tied = 0;         // of a tied parameter's values, where a stage has them
};

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

class Check {
 public:
  Check(const Device& device, const ParameterSet& parameters, const Optimizer& optimizer,
        Mesh& mesh, const TiedParameter* tied)
      : mesh_(mesh),
        world_(mesh.world()),
        all_elements_(everything_of(parameters)),
        tensors_(held_tensors(parameters, optimizer, all_elements_)),
        fingerprints_(tensors_.size()) {
    device.host_tasks("weft/replica_check", static_cast<index_t>(tensors_.size()), [&](index_t i) {
      const auto tensor = static_cast<std::size_t>(i);
      fingerprints_[tensor] = tensors_[tensor].fingerprint();
    });
    mine_.owned = optimizer.owned().num_elements();
    mine_.all = parameters.flat_elements();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::uint64_t key = (2 * i + 1) * 0x9e3779b97f4a7c15u;
      mine_.sums[tensors_[i].parameter->spec.is_replicated()][tensors_[i].is_state()] +=
          key * fingerprints_[i];
    }
    if (tied != nullptr && mesh.size("pp") > 1) add_tied(*tied);
  }

  std::string fault() {
    const std::vector<Summary> summaries = gather_summaries();
    const std::optional<int> stage = stage_that_differs(summaries);
    if (stage) return describe(*stage);
    const auto tied_of = [&](int rank) { return summaries[at(rank)].tied; };
    for (const CopyGroup& group : tied_copies_of(mesh_.shape())) {
      if (differs(group, tied_of)) return describe_tied();
    }
    return "";
  }

 private:
  struct Place {
    std::size_t tensor = 0;
    CopyGroup group;
    std::size_t num_more = 0;  // tensors that differ, too
  };

  // In place of a stage: the first and the last of them, with what they have in common.
  static constexpr int tied_stages = -1;

  void add_tied(const TiedParameter& tied) {
    const Parameter* p = tied.original() != nullptr ? tied.original() : tied.copy();
    if (p == nullptr) return;
    tied_elements_ = FlatRanges({{p->offset, p->offset + p->spec.local_elements()}});
    tied_tensor_ = HeldTensor{p, "", &tied_elements_, p->value};
    mine_.tied = tied_tensor_->fingerprint();
  }

  std::string describe_tied() {
    tensors_.clear();
    fingerprints_.clear();
    if (tied_tensor_) {
      tensors_.push_back(*tied_tensor_);
      fingerprints_.push_back(mine_.tied);
    }
    return describe(tied_stages);
  }

  std::vector<CopyGroup> copies_of_tensor(int stage, const HeldTensor& tensor) const {
    if (stage == tied_stages) return tied_copies_of(mesh_.shape());
    return copies_of(mesh_.shape(), stage, tensor.parameter->spec.is_replicated(),
                     tensor.is_state() && is_divided_);
  }

  std::vector<Summary> gather_summaries() {
    std::vector<Summary> all;
    for (const auto& one : all_gather_values(world_, "replicas.summary", std::vector<Summary>{mine_}))
      all.push_back(one.front());
    return all;
  }

  // Whether dp ranks hold parts of the optimizer's state, as all of a stage's together tell.
  bool is_divided(const std::vector<Summary>& summaries, int stage) const {
    const MeshShape& shape = mesh_.shape();
    std::int64_t owned = 0, all = 0;
    for (int rank = 0; rank < shape.num_ranks(); ++rank) {
      if (shape.coordinate(rank, "pp") != stage || shape.coordinate(rank, "tp") != 0) continue;
      owned += summaries[at(rank)].owned;
      all = summaries[at(rank)].all;
    }
    return shape.size("dp") > 1 && owned == all;
  }

  std::optional<int> stage_that_differs(const std::vector<Summary>& summaries) {
    for (int stage = 0; stage < mesh_.size("pp"); ++stage) {
      is_divided_ = is_divided(summaries, stage);
      for (const bool is_replicated : {false, true}) {
        for (const bool is_state : {false, true}) {
          const auto sum_of = [&](int rank) {
            return summaries[at(rank)].sums[is_replicated][is_state];
          };
          for (const CopyGroup& group :
               copies_of(mesh_.shape(), stage, is_replicated, is_state && is_divided_)) {
            if (differs(group, sum_of)) return stage;
          }
        }
      }
    }
    return std::nullopt;
  }

  template <class SumOfRank>
  static auto sum_of(const Copy& copy, const SumOfRank& sum_of_rank) {
    std::uint64_t sum = 0;
    for (const int rank : copy) sum += sum_of_rank(rank);
    return sum;
  }

  template <class SumOfRank>
  static bool differs(const CopyGroup& group, const SumOfRank& sum_of_rank) {
    const std::uint64_t first = sum_of(group.front(), sum_of_rank);
    return std::any_of(group.begin(), group.end(),
                       [&](const Copy& copy) { return sum_of(copy, sum_of_rank) != first; });
  }

  // Of all ranks, on a stage that differs: the first tensor, and in it the first group of copies.
  Place find_place(int stage, const std::vector<std::vector<std::uint64_t>>& all) const {
    Place place{.tensor = tensors_.size(), .group = {}};
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto sum_of = [&](int rank) { return all[at(rank)][i]; };
      for (const CopyGroup& group : copies_of_tensor(stage, tensors_[i])) {
        if (!differs(group, sum_of)) continue;
        if (place.tensor < tensors_.size()) {
          ++place.num_more;
        } else {
          place.tensor = i;
          place.group = group;
        }
        break;
      }
    }
    return place;
  }

  // Collective. What is wrong on `stage`; its ranks find it out, the others take part.
  std::string describe(int stage) {
    const bool is_mine =
        stage == tied_stages ? tied_tensor_.has_value() : mesh_.rank("pp") == stage;
    const auto prints =
        all_gather_values(world_, "replicas.tensors", is_mine ? fingerprints_ : std::vector<std::uint64_t>{});
    const Place place = is_mine ? find_place(stage, prints) : Place{};
    bool holds_copy = false;
    for (const Copy& copy : place.group)
      holds_copy |= std::count(copy.begin(), copy.end(), world_.rank()) > 0;

    std::vector<std::uint64_t> my_blocks;
    if (holds_copy) my_blocks = tensors_[place.tensor].block_fingerprints();
    const auto blocks = all_gather_values(world_, "replicas.blocks", my_blocks);
    const std::optional<index_t> block = first_difference(place.group, blocks);
    std::vector<std::uint32_t> my_elements;
    if (holds_copy && block) my_elements = tensors_[place.tensor].block(*block);
    const auto elements = all_gather_values(world_, "replicas.elements", my_elements);
    const auto hosts = world_.all_gather_strings("replicas.hosts", host_name());

    // One who holds a copy knows which global indices its elements have.
    std::string text;
    if (!place.group.empty() && place.group.front().front() == world_.rank())
      text = tensor_text(place) + elements_text(place, prints, block, elements) +
             suspects_text(place, prints, elements, hosts);
    std::string all;
    for (const std::string& one : world_.all_gather_strings("replicas.text", text)) all += one;
    // Not even one tensor differs: the sums were wrong on their way.
    return all.empty() ? "sums over the state of ranks differ, but no tensor does" : all;
  }

  // The first block, or element of one, in which copies differ: numbers[rank] are those of a rank,
  // none where it holds nothing, and those of a copy's ranks add up. None: read once more, copies
  // are equal.
  template <class T>
  static std::optional<index_t> first_difference(const CopyGroup& group,
                                                 const std::vector<std::vector<T>>& numbers) {
    const auto sums_of = [&](const Copy& copy) {
      std::vector<T> sums;
      for (const int rank : copy) {
        const std::vector<T>& part = numbers[at(rank)];
        sums.resize(std::max(sums.size(), part.size()));
        for (std::size_t i = 0; i < part.size(); ++i) sums[i] += part[i];
      }
      return sums;
    };
    if (group.empty()) return std::nullopt;
    const std::vector<T> first = sums_of(group.front());
    std::size_t least = first.size();
    for (const Copy& copy : group) {
      const std::vector<T> other = sums_of(copy);
      const auto [mine, theirs] =
          std::mismatch(first.begin(), first.end(), other.begin(), other.end());
      least = std::min(least, static_cast<std::size_t>(mine - first.begin()));
    }
    if (least == first.size()) return std::nullopt;
    return static_cast<index_t>(least);
  }

  // Copies by what they hold, the largest party first; of equal ones the one with the lowest rank.
  static std::vector<CopyGroup> parties_of(const Place& place,
                                           const std::vector<std::vector<std::uint64_t>>& prints) {
    std::map<std::uint64_t, CopyGroup> by_sum;
    for (const Copy& copy : place.group)
      by_sum[sum_of(copy, [&](int rank) { return prints[at(rank)][place.tensor]; })].push_back(
          copy);
    std::vector<CopyGroup> parties;
    for (auto& [sum, party] : by_sum) parties.push_back(std::move(party));
    std::sort(parties.begin(), parties.end(), [](const CopyGroup& a, const CopyGroup& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    return parties;
  }

  // Of a copy that ranks share, those who hold the block that differs.
  static std::vector<int> ranks_of(const CopyGroup& party,
                                   const std::vector<std::vector<std::uint32_t>>& elements) {
    std::vector<int> all, holders;
    for (const Copy& copy : party) all.insert(all.end(), copy.begin(), copy.end());
    std::sort(all.begin(), all.end());
    std::copy_if(all.begin(), all.end(), std::back_inserter(holders),
                 [&](int rank) { return !elements[at(rank)].empty(); });
    return holders.empty() ? all : holders;
  }

  static std::string name_of(const std::vector<int>& ranks) {
    return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
  }

  std::string tensor_text(const Place& place) const {
    std::string text = fmt::format("copies of {} differ", tensors_[place.tensor].name());
    if (place.num_more > 0)
      text += fmt::format(" (and of {} more {} on this stage)", place.num_more,
                          place.num_more == 1 ? "tensor" : "tensors");
    return text;
  }

  // Each party's bits in the first place where they are not all the same.
  std::string elements_text(const Place& place,
                            const std::vector<std::vector<std::uint64_t>>& prints,
                            std::optional<index_t> block,
                            const std::vector<std::vector<std::uint32_t>>& elements) const {
    const std::optional<index_t> in_block = first_difference(place.group, elements);
    if (!block || !in_block) return ", but no longer when they are read again. ";
    std::string text = fmt::format(", first in {}:",
                                   tensors_[place.tensor].element_name(1024 * *block + *in_block));
    const char* separator = " ";
    for (const CopyGroup& party : parties_of(place, prints)) {
      const std::vector<int> ranks = ranks_of(party, elements);
      const std::uint32_t bits = elements[at(ranks.front())][static_cast<std::size_t>(*in_block)];
      text += fmt::format("{}{} (bits {:08x}) on {}", separator, std::bit_cast<float>(bits), bits,
                          name_of(ranks));
      separator = ", ";
    }
    return text + ". ";
  }

  std::string suspects_text(const Place& place,
                            const std::vector<std::vector<std::uint64_t>>& prints,
                            const std::vector<std::vector<std::uint32_t>>& elements,
                            const std::vector<std::string>& hosts) const {
    const std::vector<CopyGroup> parties = parties_of(place, prints);
    const std::size_t num_copies = place.group.size(), most = parties.front().size();
    if (2 * most <= num_copies) {
      return fmt::format(
          "No majority among {} copies says which is right. Suspect the memory of {}", num_copies,
          hosts_text(ranks_of(place.group, elements), hosts));
    }
    CopyGroup suspects;
    for (std::size_t i = 1; i < parties.size(); ++i)
      suspects.insert(suspects.end(), parties[i].begin(), parties[i].end());
    const std::vector<int> ranks = ranks_of(suspects, elements);
    return fmt::format("In the minority, {} of {} copies: {}. Suspect the memory of {}",
                       num_copies - most, num_copies, name_of(ranks), hosts_text(ranks, hosts));
  }

  static std::string hosts_text(const std::vector<int>& ranks,
                                const std::vector<std::string>& hosts) {
    std::vector<std::string> names;
    for (const int rank : ranks) {
      if (std::count(names.begin(), names.end(), hosts[at(rank)]) == 0)
        names.push_back(hosts[at(rank)]);
    }
    return fmt::format("{} {}", names.size() == 1 ? "host" : "hosts", fmt::join(names, ", "));
  }

  Mesh& mesh_;
  Communicator& world_;
  FlatRanges all_elements_;
  std::vector<HeldTensor> tensors_;
  std::vector<std::uint64_t> fingerprints_;  // of each
  Summary mine_;
  bool is_divided_ = false;  // of the stage looked at
  FlatRanges tied_elements_;
  std::optional<HeldTensor> tied_tensor_;
};

}  // namespace

std::string replica_fault(const Device& device, const ParameterSet& parameters,
                          const Optimizer& optimizer, Mesh& mesh, const TiedParameter* tied) {
  return Check(device, parameters, optimizer, mesh, tied).fault();
}

}  // namespace weft
