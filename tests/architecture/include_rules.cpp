// Rules about #include lines: the folder law and the fences around third parties, each as a table.
#include <algorithm>
#include <array>

#include "tests/architecture/rules.hpp"

namespace weft::architecture {
namespace {

struct Law {
  std::string_view folder;
  std::vector<std::string_view> may_include;  // prefixes of paths
};

// The first row whose folder holds the file decides.
//
//   core <- comm <- mesh <- { tensor | data | pipeline } <- plan        (inside parallel)
//   core <- parallel <- { layers | io } <- apps <- { tests | perf }
const std::vector<Law>& folder_laws() {
  static const std::vector<Law> laws{
      {"core/", {"core/"}},
      {"parallel/comm/", {"core/", "parallel/comm/"}},
      {"parallel/mesh", {"core/", "parallel/comm/", "parallel/mesh"}},
      {"parallel/tensor/", {"core/", "parallel/comm/", "parallel/mesh", "parallel/tensor/"}},
      {"parallel/data/", {"core/", "parallel/comm/", "parallel/mesh", "parallel/data/"}},
      {"parallel/pipeline/", {"core/", "parallel/comm/", "parallel/mesh", "parallel/pipeline/"}},
      {"parallel/", {"core/", "parallel/"}},
      {"layers/", {"core/", "parallel/", "layers/"}},
      {"io/", {"core/", "parallel/", "io/"}},
      {"apps/", {"core/", "parallel/", "layers/", "io/", "apps/"}},
      {"tests/oracle/", {"tests/oracle/"}},
      {"tests/", {"core/", "parallel/", "layers/", "io/", "apps/", "tests/"}},
      {"perf/", {"core/", "parallel/", "layers/", "io/", "apps/", "tests/oracle/", "perf/"}},
  };
  return laws;
}

struct Fence {
  std::vector<std::string_view> headers;  // prefixes of what stands in the #include
  std::vector<std::string_view> allowed;  // patterns of paths, see matches(); none: nowhere yet
};

const std::vector<Fence>& fences() {
  static const std::vector<Fence> table{
      {{"mpi.h"}, {"parallel/comm/mpi_*", "perf/**"}},
      {{"ucp/", "ucs/", "uct/"}, {"parallel/comm/ucx_*"}},
      {{"nccl"}, {}},
      {{"hdf5", "H5"}, {"io/checkpoint/hdf5_handles.hpp"}},
      // Who includes this has the library, too.
      {{"io/checkpoint/hdf5_handles"}, {"io/checkpoint/hdf5_*"}},
      {{"Kokkos_"}, {"core/**", "layers/*.cpp", "apps/runtime.cpp", "tests/**", "perf/**"}},
      {{"cblas", "blis", "openblas", "mkl", "cublas"}, {"core/kernels/**", "perf/**"}},
      {{"cuda", "hip/"}, {"core/**"}},
      {{"toml++", "toml.hpp"}, {"io/plan_file*.cpp", "io/name_table.cpp"}},
      {{"CLI/"}, {"apps/**"}},
      {{"catch2/"}, {"tests/**"}},
  };
  return table;
}

// Glob: '*' is anything without '/', '**' at the end is anything.
bool matches(std::string_view pattern, std::string_view path) {
  if (pattern == "**") return true;
  if (pattern.empty() || path.empty()) return pattern == path || pattern == "*";
  if (pattern[0] != '*') {
    return pattern[0] == path[0] && matches(pattern.substr(1), path.substr(1));
  }
  return matches(pattern.substr(1), path) || (path[0] != '/' && matches(pattern, path.substr(1)));
}

bool any_prefix(const std::vector<std::string_view>& prefixes, std::string_view of) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return of.starts_with(prefix); });
}

// Calls check(file, line index, form, name) for each #include; form is '<' or '"'.
template <class Check>
void for_each_include(const Sources& sources, Check check) {
  for (const SourceFile& file : sources) {
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      const std::string header = included_by(file, i);
      if (!header.empty()) check(file, i, header[0], std::string_view(header).substr(1));
    }
  }
}

bool is_ours(std::string_view name) {
  return is_product(name) || is_under(name, "tests/") || is_under(name, "perf/");
}

}  // namespace

std::vector<Fault> folder_law(const Sources& sources) {
  std::vector<Fault> faults;
  for_each_include(
      sources, [&](const SourceFile& file, std::size_t i, char form, std::string_view name) {
        const auto& laws = folder_laws();
        const auto law = std::find_if(laws.begin(), laws.end(), [&](const Law& candidate) {
          return is_under(file.path, candidate.folder);
        });
        if (law == laws.end()) return;
        const std::string shown = "includes " + std::string(name);
        if (form == '"' && !is_ours(name)) {
          faults.push_back({file.path, i + 1,
                            shown + ": write our headers by their path from the root, "
                                    "all others with <>"});
        } else if (is_ours(name) && !any_prefix(law->may_include, name)) {
          faults.push_back(
              {file.path, i + 1, shown + ", which " + std::string(law->folder) + " may not"});
        }
      });
  return faults;
}

std::vector<Fault> third_party_fences(const Sources& sources) {
  std::vector<Fault> faults;
  for_each_include(
      sources, [&](const SourceFile& file, std::size_t i, char, std::string_view name) {
        for (const Fence& fence : fences()) {
          const bool allowed =
              std::any_of(fence.allowed.begin(), fence.allowed.end(),
                          [&](std::string_view pattern) { return matches(pattern, file.path); });
          if (any_prefix(fence.headers, name) && !allowed) {
            std::string where;
            for (const std::string_view pattern : fence.allowed) where.append(" ").append(pattern);
            faults.push_back({file.path, i + 1,
                              "includes " + std::string(name) +
                                  ", allowed in:" + (where.empty() ? " no file yet" : where)});
          }
        }
      });
  return faults;
}

std::vector<Fault> oracle_is_std_only(const Sources& sources) {
  std::vector<Fault> faults;
  for_each_include(
      sources, [&](const SourceFile& file, std::size_t i, char form, std::string_view name) {
        if (!is_under(file.path, "tests/oracle/")) return;
        const bool is_test = is_under(file.path, "tests/oracle/test_");
        // A standard header has neither a folder nor an extension.
        const bool is_std = form == '<' && name.find_first_of("/.") == std::string_view::npos;
        const bool is_allowed =
            is_std || is_under(name, "tests/oracle/") || (is_test && name == "catch2/catch.hpp");
        if (!is_allowed) {
          faults.push_back({file.path, i + 1, "the oracle includes " + std::string(name)});
        }
      });
  return faults;
}

std::vector<Fault> own_header_first(const Sources& sources) {
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) {
    const std::string own = own_header_of(file, sources);
    if (own.empty()) continue;
    std::size_t line = 0;
    std::string first;
    for (std::size_t i = 0; i < file.code.size() && first.empty(); ++i) {
      first = included_by(file, i);
      line = i + 1;
    }
    if (first != "\"" + own) {
      faults.push_back({file.path, line, "the first #include must be " + own});
    }
  }
  return faults;
}

std::vector<Fault> world_is_named_once(const Sources& sources) {
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) {
    if (!is_product(file.path)) continue;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      for (const Word& word : words_of(file.code[i])) {
        if (word.text == "MPI_COMM_WORLD") {
          faults.push_back({file.path, i + 1, "MPI_COMM_WORLD, which may be named once in all"});
        }
      }
    }
  }
  if (faults.size() <= 1) faults.clear();
  return faults;
}

}  // namespace weft::architecture
