#include "apps/agreement.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace weft {

void agree(Communicator& world, const std::string& phase, const std::function<void()>& body) {
  std::string mine;  // empty: fine; else one character of code, then the message
  try {
    body();
  } catch (const Error& error) {
    mine = static_cast<char>('0' + static_cast<int>(error.code())) + std::string(error.what());
  } catch (const std::exception& error) {
    mine = static_cast<char>('0' + static_cast<int>(ExitCode::failed)) + std::string(error.what());
  }
  const std::vector<std::string> all = world.all_gather_strings("agree." + phase, mine);
  int first = -1, num_failed = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (all[static_cast<std::size_t>(rank)].empty()) continue;
    ++num_failed;
    if (first < 0) first = rank;
  }
  if (first < 0) return;
  const std::string& text = all[static_cast<std::size_t>(first)];
  std::string message = text.substr(1);
  if (world.size() > 1 && num_failed < world.size()) {
    message += fmt::format(" (on rank {}; {} of {} ranks failed)", first, num_failed, world.size());
  }
  throw AgreedError(static_cast<ExitCode>(text[0] - '0'), message);
}

void require_equal(Communicator& world, const std::string& what, const std::string& value,
                   const std::string& remedy) {
  const std::vector<std::string> all = world.all_gather_strings("require_equal", value);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw AgreedError(
        ExitCode::usage,
        fmt::format("{} differs between ranks: rank 0 has \"{}\", rank {} has \"{}\". {}", what,
                    all[0], rank, all[rank], remedy));
  }
}

}  // namespace weft
