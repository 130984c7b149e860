// The battery of collectives on ranks that are threads, for every algorithm and many group sizes.
#include <catch2/catch.hpp>

#include "parallel/comm/local_transport.hpp"
#include "parallel/comm/transport_registry.hpp"
#include "tests/parallel/battery.hpp"

namespace weft {

// Sanitised builds are too slow for every number of leaves.
#ifdef WEFT_SANITIZED
constexpr bool full = false;
#else
constexpr bool full = true;
#endif

TEST_CASE("every number of leaves and ranks passes the battery on threads") {
  const int num_ranks = full ? GENERATE(range(1, 17)) : GENERATE(1, 2, 3, 4, 5, 8);
  CAPTURE(num_ranks);
  REQUIRE_NOTHROW(run_ranks(num_ranks, [](Transport& transport) { run_battery(transport, full); }));
}

TEST_CASE("transports are made by name") {
  const auto session = make_session_of_one();
  for (const std::string& name : {std::string("local"), std::string("auto")}) {
    const auto local = make_transport(name, *session);
    REQUIRE(local->name() == "local");
    REQUIRE(local->size() == 1);
    REQUIRE(local->rank() == 0);
    run_battery(*local, false);
  }
  try {
    make_transport("pigeon", *session);
    FAIL("an unknown transport was made");
  } catch (const Error& error) {
    REQUIRE(error.code() == ExitCode::usage);
    for (const std::string& name : built_in_transports())
      REQUIRE(std::string(error.what()).find(name) != std::string::npos);
  }
}

}  // namespace weft
