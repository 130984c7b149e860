#include <catch2/catch.hpp>

#include "battery.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {

TEST_CASE("ranks that are threads pass the battery") {
  const int num_ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 12, 16);
  CAPTURE(num_ranks);
  REQUIRE_NOTHROW(run_ranks(num_ranks, [](Transport& transport) { run_battery(transport, false); }));
}

TEST_CASE("every number of leaves and ranks sums by the tree", "[sweep]") {
  const int num_ranks = GENERATE(range(1, 17));
  CAPTURE(num_ranks);
  REQUIRE_NOTHROW(run_ranks(num_ranks, [](Transport& transport) { run_battery(transport, true); }));
}

TEST_CASE("transports are made by name") {
  const auto local = make_transport("local", nullptr, nullptr);
  REQUIRE(local->size() == 1);
  REQUIRE(local->rank() == 0);
  run_battery(*local, false);
  try {
    make_transport("pigeon", nullptr, nullptr);
    FAIL("an unknown transport was made");
  } catch (const Error& error) {
    REQUIRE(error.code() == ExitCode::usage);
    for (const std::string& name : built_in_transports()) REQUIRE(std::string(error.what()).find(name) != std::string::npos);
  }
}

}  // namespace weft
