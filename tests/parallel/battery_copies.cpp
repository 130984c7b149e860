// All-gather, broadcast and strings: every algorithm, uneven and empty parts.
#include <algorithm>

#include "tests/parallel/battery_parts.hpp"

namespace weft::battery {

namespace {

void check_all_gather(Communicator& comm, Algorithm algorithm, index_t longest, bool in_place) {
  const std::string what = text(comm, "all-gather", algorithm, 0, longest);
  std::vector<index_t> cuts{0};
  for (int rank = 0; rank < comm.size(); ++rank)
    cuts.push_back(cuts.back() + (rank % 3 == 1 ? 0 : longest / (rank + 1)));
  const auto byte = [](int rank, index_t i) {
    return static_cast<unsigned char>(rank * 41 + i * 3 + 1);
  };
  std::vector<unsigned char> input, expected, output(static_cast<std::size_t>(cuts.back()), 255);
  const auto me = static_cast<std::size_t>(comm.rank());
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    for (index_t i = 0; i < cuts[r + 1] - cuts[r]; ++i) expected.push_back(byte(rank, i));
  }
  for (index_t i = 0; i < cuts[me + 1] - cuts[me]; ++i) input.push_back(byte(comm.rank(), i));
  if (in_place) std::copy(input.begin(), input.end(), output.begin() + cuts[me]);
  const std::uint64_t before = comm.bytes_sent();
  comm.force(algorithm);
  comm.start({"test.all_gather", AllGather{cuts, in_place ? nullptr : input.data(), output.data()}})
      .wait();
  comm.force(Algorithm::automatic);
  expect(output == expected, what);
  if (algorithm == Algorithm::direct) {
    expect(comm.bytes_sent() - before == input.size() * static_cast<std::size_t>(comm.size() - 1),
           what + ": bytes sent");
  }
}

void check_broadcast(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{70'001}}) {
      std::vector<unsigned char> buffer(length, static_cast<unsigned char>(comm.rank()));
      comm.start({"test.broadcast", Broadcast{root, static_cast<index_t>(length), buffer.data()}})
          .wait();
      for (const auto byte : buffer) expect(byte == root, "broadcast from " + std::to_string(root));
    }
  }
}

void check_strings(Communicator& comm) {
  const auto word = [](int rank) {
    return rank == 1
               ? std::string()
               : std::string(static_cast<std::size_t>(rank * 7 + 1), static_cast<char>('a' + rank));
  };
  const std::vector<std::string> words = comm.all_gather_strings("test.strings", word(comm.rank()));
  expect(static_cast<int>(words.size()) == comm.size(), "strings: number");
  for (int rank = 0; rank < comm.size(); ++rank)
    expect(words[static_cast<std::size_t>(rank)] == word(rank), "strings: word");
  for (const std::string& empty : comm.all_gather_strings("test.no_strings", ""))
    expect(empty.empty(), "strings: empty");

  for (int root = 0; root < comm.size(); ++root) {
    const auto at_root = comm.gather_strings("test.gather", root, word(comm.rank()));
    expect(static_cast<int>(at_root.size()) == (comm.rank() == root ? comm.size() : 0),
           "gathered strings: number");
    for (std::size_t rank = 0; rank < at_root.size(); ++rank)
      expect(at_root[rank] == word(static_cast<int>(rank)), "gathered strings: word");
    expect(comm.broadcast_string("test.text", root, word(comm.rank())) == word(root),
           "broadcast string");
  }
}

}  // namespace

void check_copies(Communicator& comm) {
  for (const auto algorithm : {Algorithm::direct, Algorithm::ring, Algorithm::automatic}) {
    for (const index_t longest : {index_t{0}, index_t{1}, index_t{50}, index_t{700'000}}) {
      check_all_gather(comm, algorithm, longest, false);
      check_all_gather(comm, algorithm, longest, true);
    }
  }
  check_broadcast(comm);
  check_strings(comm);
}

}  // namespace weft::battery
