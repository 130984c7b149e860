// How ranks fail together: here they are threads.
#include <catch2/catch.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/agreement.hpp"
#include "parallel/comm/local_transport.hpp"

using namespace weft;

namespace {

// What `body` throws on each of `num_ranks` ranks; all alike, or the test fails.
template <class Body>
AgreedError agreed_error(int num_ranks, Body body) {
  std::vector<std::string> messages(static_cast<std::size_t>(num_ranks));
  std::vector<ExitCode> codes(static_cast<std::size_t>(num_ranks), ExitCode::done);
  run_ranks(num_ranks, [&](Transport& transport) {
    Communicator world(transport, nullptr, "world", 0, all_ranks(transport));
    const auto rank = static_cast<std::size_t>(transport.rank());
    try {
      body(world);
    } catch (const AgreedError& error) {
      messages[rank] = error.what();
      codes[rank] = error.code();
    }
    world.barrier();  // still in step
  });
  for (std::size_t rank = 1; rank < messages.size(); ++rank) {
    REQUIRE(messages[rank] == messages[0]);
    REQUIRE(codes[rank] == codes[0]);
  }
  return {codes[0], messages[0]};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("machines that compute otherwise are named, on all ranks alike") {
  const AgreedError error = agreed_error(4, [](Communicator& world) {
    const std::string fingerprint = world.rank() >= 2 ? "AMD EPYC, OpenBLAS ZEN" : "Xeon, SKYLAKEX";
    require_equal(world, "the arithmetic fingerprint", fingerprint, "Ask for one kind of node");
  });
  CHECK(error.code() == ExitCode::usage);
  CHECK(error.what() == std::string("the arithmetic fingerprint differs between ranks: rank 0 has "
                                    "\"Xeon, SKYLAKEX\", rank 2 has \"AMD EPYC, OpenBLAS ZEN\". "
                                    "Ask for one kind of node"));
}

TEST_CASE("equal values are no error") {
  const AgreedError error = agreed_error(
      3, [](Communicator& world) { require_equal(world, "the text", "same", "nothing"); });
  CHECK(error.code() == ExitCode::done);
}

TEST_CASE("the first failing rank's error is everyone's, whatever kind of exception it was") {
  const AgreedError one = agreed_error(3, [](Communicator& world) {
    agree(world, "data", [&] {
      if (world.rank() == 1) throw Error(ExitCode::data, "the disk is gone");
    });
  });
  CHECK(one.code() == ExitCode::data);
  CHECK(contains(one.what(), "the disk is gone (on rank 1; 1 of 3 ranks failed)"));

  const AgreedError other = agreed_error(3, [](Communicator& world) {
    agree(world, "data", [&] { throw std::out_of_range(std::to_string(world.rank())); });
  });
  CHECK(other.code() == ExitCode::failed);
  CHECK(other.what() == std::string("0"));
}
