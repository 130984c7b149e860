// Coordinates and groups of a mesh, against pictures and against loops over all ranks.
#include <catch2/catch.hpp>

#include <atomic>
#include <string>
#include <vector>

#include "parallel/comm/local_transport.hpp"
#include "parallel/mesh.hpp"

namespace weft {

TEST_CASE("a mesh's picture") {
  const MeshShape shape({{"tp", 2}, {"dp", 3}}, "tp,dp");
  const MeshShape turned({{"tp", 2}, {"dp", 3}}, "dp,tp");
  REQUIRE(shape.num_ranks() == 6);
  REQUIRE(shape.ranks_along(3, "tp") == std::vector<int>{2, 3});
  REQUIRE(shape.ranks_along(3, "dp") == std::vector<int>{1, 3, 5});
  REQUIRE(turned.ranks_along(3, "tp") == std::vector<int>{0, 3});
  REQUIRE(turned.ranks_along(4, "dp") == std::vector<int>{3, 4, 5});
}

TEST_CASE("ranks and coordinates are inverse for all orders") {
  const std::vector<MeshAxis> axes = {{"tp", 2}, {"dp", 3}, {"pp", 4}};
  const auto order = GENERATE(as<std::string>{}, "tp,dp,pp", "tp,pp,dp", "dp,tp,pp", "dp, pp, tp",
                              "pp,tp,dp", "pp,dp,tp");
  const MeshShape shape(axes, order);
  for (int rank = 0; rank < 24; ++rank) {
    const auto place = shape.coordinates(rank);
    REQUIRE(shape.world_rank(place) == rank);
    int stride = 1, by_hand = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      REQUIRE(place[i] == shape.coordinate(rank, shape.axes()[i].name));
      REQUIRE(place[i] < shape.axes()[i].size);
      by_hand += place[i] * stride;
      stride *= shape.axes()[i].size;
    }
    REQUIRE(by_hand == rank);
    for (const MeshAxis& axis : axes) {
      const auto ranks = shape.ranks_along(rank, axis.name);
      REQUIRE(static_cast<int>(ranks.size()) == axis.size);
      REQUIRE(ranks[static_cast<std::size_t>(shape.coordinate(rank, axis.name))] == rank);
    }
  }
}

TEST_CASE("a mesh has a communicator per axis") {
  const auto order = GENERATE(as<std::string>{}, "tp,dp", "dp,tp");
  std::atomic<int> num_right{0};
  run_ranks(6, [&](Transport& transport) {
    Mesh mesh(transport, nullptr, {{"tp", 2}, {"dp", 3}}, order);
    const std::string mine = std::to_string(mesh.rank("tp")) + std::to_string(mesh.rank("dp"));
    const auto along_tp = mesh.axis("tp").all_gather_strings("names", mine);
    const auto along_dp = mesh.axis("dp").all_gather_strings("names", mine);
    const auto all = mesh.world().all_gather_strings("names", mine);
    bool right =
        all.size() == 6 && along_tp.size() == 2 && along_dp.size() == 3 && mesh.size("dp") == 3;
    for (int t = 0; t < 2; ++t)
      right = right && along_tp[static_cast<std::size_t>(t)] == std::to_string(t) + mine[1];
    for (int d = 0; d < 3; ++d)
      right =
          right && along_dp[static_cast<std::size_t>(d)] == mine.substr(0, 1) + std::to_string(d);
    num_right += right;
  });
  REQUIRE(num_right == 6);
}

TEST_CASE("meshes that do not fit are refused with a reason") {
  LocalWorld world(1);
  const auto transport = world.make_transport(0);
  const auto refused = [&](const std::vector<MeshAxis>& axes, const std::string& order) {
    try {
      Mesh(*transport, nullptr, axes, order);
    } catch (const Error& error) {
      REQUIRE(error.code() == ExitCode::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE(refused({{"tp", 2}, {"dp", 3}}, "tp,dp") ==
          "the mesh tp 2 x dp 3 needs 6 ranks, but 1 were started");
  for (const char* order : {"tp", "tp,tp", "tp,dp,pp", "tp,xx", ""}) {
    REQUIRE(refused({{"tp", 1}, {"dp", 1}}, order).find("tp,dp") != std::string::npos);
  }
  REQUIRE(refused({{"tp", 0}, {"dp", 1}}, "tp,dp").find("size 0") != std::string::npos);
  REQUIRE(refused({{"tp", 1}, {"dp", 1}}, "dp,tp").empty());
}

}  // namespace weft
