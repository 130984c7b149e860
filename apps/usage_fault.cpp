#include "apps/usage_fault.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "parallel/plan/nearest.hpp"

namespace weft {

namespace {

// The command that was reached, by its subcommands' names.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// "ckpt diff: "; of the program itself nothing.
std::string place_of(const CLI::App& command) {
  std::string names;
  for (const CLI::App* each = &command; each->get_parent() != nullptr; each = each->get_parent())
    names = each->get_name() + (names.empty() ? ": " : " ") + names;
  return names;
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* each : command.get_options())
    for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
  return names;
}

// The first option, else the first word, that no command took; empty: none.
std::string unexpected_word(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  for (const std::string& word : words)
    if (word.starts_with("-")) return word;
  return words.empty() ? "" : words.front();
}

}  // namespace

std::string usage_fault(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string place = place_of(command);
  const std::string word = unexpected_word(app);
  if (word.starts_with("-")) {
    const std::vector<std::string> options = options_of(command);
    return fmt::format("{}unknown option {}; did you mean {}?", place, word,
                       options[nearest_name(word, options)]);
  }
  const std::vector<std::string> commands = commands_of(command);
  if (!commands.empty()) {
    if (word.empty())
      return fmt::format("{}expected a command, one of {}", place, fmt::join(commands, ", "));
    return fmt::format("{}unknown command {}; did you mean {}?", place, word,
                       commands[nearest_name(word, commands)]);
  }
  return fmt::format("{}{}", place, error.what());
}

bool is_first_process() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(variable)) return std::string_view(rank) == "0";
  }
  return true;
}

}  // namespace weft
